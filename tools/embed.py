# SPDX-License-Identifier: Apache-2.0
"""embed: writes files' text, one after the other, into a C source: `const char NAME[]` and
`const size_t NAME_length`.

    embed.py NAME INPUT… OUTPUT
"""
import sys

# A question mark, since two of them could begin a trigraph.
ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "?": "\\?"}


def literal(text):
    # Bytes beyond ASCII in octal, which unlike hexadecimal ends after three digits.
    return "".join(ESCAPES.get(c) or (c if " " <= c <= "~" else
                                      "".join(f"\\{b:03o}" for b in c.encode()))
                   for c in text)


def main(name, *sources, target):
    lines = []
    for source in sources:
        with open(source, encoding="utf-8") as file:
            lines += file.read().splitlines(keepends=True)
    with open(target, "w", encoding="ascii") as file:
        file.write("/* Made by tools/embed.py. */\n#include <stddef.h>\n\n"
                   f"extern const char {name}[];\nextern const size_t {name}_length;\n\n"
                   f"const char {name}[] =\n")
        file.writelines(f'\t"{literal(line)}"\n' for line in lines)
        file.write(f'\t"";\nconst size_t {name}_length = sizeof {name} - 1;\n')


if __name__ == "__main__":
    main(*sys.argv[1:-1], target=sys.argv[-1])
