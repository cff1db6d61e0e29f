// SPDX-License-Identifier: Apache-2.0
// make_editor: writes src/server/page/codemirror.js, the one bundle of the page that is not
// written by hand: the parts of CodeMirror that editor.js uses, from the versions in
// tests/node/package-lock.json, with the licence of each package in its head. The bundle is
// committed, since building execpy must not need npm; a test makes it again and compares.
//
//     (cd tests/node && npm ci) && node tools/make_editor.mjs [OUTPUT]
import { createRequire } from "node:module";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const packages = process.env.EXECPY_NODE ?? join(root, "tests/node");
const { build } = createRequire(join(packages, "package.json"))("esbuild");

const USED = {
  "@codemirror/state": ["EditorState", "Prec"],
  "@codemirror/view": ["EditorView", "drawSelection", "highlightActiveLine",
    "highlightActiveLineGutter", "highlightSpecialChars", "keymap", "lineNumbers"],
  "@codemirror/commands": ["defaultKeymap", "history", "historyKeymap", "indentWithTab"],
  "@codemirror/language": ["HighlightStyle", "bracketMatching", "indentOnInput", "indentUnit",
    "syntaxHighlighting"],
  "@codemirror/lang-python": ["pythonLanguage"],
  "@codemirror/lint": ["lintGutter", "lintKeymap", "setDiagnostics"],
  "@lezer/highlight": ["tags"],
};

// The licence texts of the packages whose code is in the bundle, each text once.
function licences(inputs) {
  const names = new Set();
  for (const [path, { bytesInOutput }] of Object.entries(inputs)) {
    const name = path.match(/node_modules\/((?:@[^/]+\/)?[^/]+)\/(?!.*node_modules)/)?.[1];
    if (name && bytesInOutput)
      names.add(name);
  }
  const byText = new Map();
  for (const name of [...names].sort()) {
    const folder = join(packages, "node_modules", name);
    const file = ["LICENSE", "LICENSE.md", "LICENSE.txt"].map((leaf) => join(folder, leaf)).find(existsSync);
    const text = readFileSync(file, "utf8").replace(/^\s+|\s+$/g, "");
    const { version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    byText.set(text, [...byText.get(text) ?? [], `${name} ${version}`]);
  }
  return [...byText].map(([text, who]) => `${who.join(", ")}:\n\n${text}`).join("\n\n");
}

const made = await build({
  stdin: {
    contents: Object.entries(USED).map(([name, what]) => `export { ${what.join(", ")} } from "${name}";`).join("\n"),
    resolveDir: packages,
  },
  absWorkingDir: packages,
  bundle: true, minify: true, write: false, metafile: true,
  format: "esm", target: "es2022", charset: "ascii", legalComments: "none", lineLimit: 120,
});
const head = `/*! Made by tools/make_editor.mjs; do not edit.\n\n${licences(Object.values(made.metafile.outputs)[0].inputs)} */\n`;
writeFileSync(process.argv[2] ?? join(root, "src/server/page/codemirror.js"), head + made.outputFiles[0].text);
