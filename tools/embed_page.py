# SPDX-License-Identifier: Apache-2.0
"""embed_page: writes the page's files into a C source: the table of src/server/page/assets.h.

    embed_page.py INPUT… OUTPUT
"""
import hashlib
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from embed import literal  # noqa: E402

MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


def main(*sources, target):
    with open(target, "w", encoding="ascii") as file:
        file.write('/* Made by tools/embed_page.py. */\n#include "server/page/assets.h"\n')
        rows = []
        for number, path in enumerate(map(pathlib.Path, sources)):
            text = path.read_text(encoding="utf-8")
            file.write(f"\nstatic const char asset_{number}[] =\n")
            file.writelines(f'\t"{literal(line)}"\n' for line in text.splitlines(keepends=True))
            file.write('\t"";\n')
            tag = hashlib.sha256(text.encode()).hexdigest()[:32]
            rows.append(f'\t{{"{path.name}", "{MEDIA_TYPES[path.suffix]}", "\\"{tag}\\"",'
                        f' asset_{number}, sizeof asset_{number} - 1}},\n')
        file.write("\nconst struct page_asset page_assets[] = {\n")
        file.writelines(rows)
        file.write("\t{0},\n};\n")


if __name__ == "__main__":
    main(*sys.argv[1:-1], target=sys.argv[-1])
