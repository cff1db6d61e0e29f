// SPDX-License-Identifier: Apache-2.0
// main: puts the parts of the page together.
import { byId } from "./dom.js";
import { Editor } from "./editor.js";
import { Files } from "./files.js";
import { Findings } from "./findings.js";
import { History } from "./history.js";
import { watchKeyButton } from "./key.js";
import { Pool } from "./pool.js";
import { Runner } from "./run.js";
import { Tree } from "./tree.js";

const EXAMPLE = `import matplotlib.pyplot as plt
import pandas as pd

rivers = pd.DataFrame({
    "river": ["Nile", "Amazon", "Yangtze", "Danube"],
    "km": [6650, 6400, 6300, 2850],
})
rivers.plot.barh(x="river", y="km", legend=False, figsize=(5, 2.2))
plt.tight_layout()
print("longest:", rivers.river[rivers.km.idxmax()])
rivers
`;
const DRAFT = "execpy.draft";

const apple = /Mac|iPhone|iPad/.test(navigator.platform);
byId("run").querySelector("kbd").textContent = apple ? "⌘↵" : "Ctrl ↵";

let runner = null;
const editor = new Editor(byId("editor"), {
  text: sessionStorage.getItem(DRAFT) ?? EXAMPLE,
  changed: () => {
    sessionStorage.setItem(DRAFT, editor.text);
    findings.later();
  },
  run: () => runner.run(),
});
const single = () => byId("mode").value === "once";
const history = new History(() => tree?.draw());
const findings = new Findings(editor, {
  policy: () => byId("policy").value,
  known: (name) => !single() && (history.mentions(name) || files.has(name)),
});
const files = new Files({
  session: () => history.session(runner.wish()),
  current: () => history.current,
  single,
});
const tree = new Tree(history, {
  look: (node) => runner.look(node),
  edit: (code) => {
    editor.text = code;
    editor.focus();
  },
  moved: () => files.refresh(),
});
runner = new Runner({ editor, findings, history, files });

byId("policy").addEventListener("change", () => findings.now());
byId("mode").addEventListener("change", () => {
  files.refresh();
  findings.now();
});
byId("help-open").addEventListener("click", () => byId("help-dialog").showModal());
watchKeyButton();

// The parts of the page in the order in which F6 goes through them.
const stops = () => [editor, byId("output"), document.querySelector("#tree [tabindex='0']") ?? byId("end-session"), byId("files-add")];
let stop = 0;
addEventListener("keydown", (event) => {
  const open = document.querySelector("dialog[open]");
  if (event.key === "Escape" && !open && runner.going) {
    event.preventDefault();
    runner.interrupt();
  } else if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !open && !event.defaultPrevented) {
    event.preventDefault();
    runner.run();
  } else if (event.key === "F6") {
    event.preventDefault();
    stop = (stop + (event.shiftKey ? 3 : 1)) % 4;
    stops()[stop].focus();
  } else if (event.key === "F1") {
    event.preventDefault();
    byId("help-dialog").showModal();
  }
});

await new Pool().start();
await history.load();
await files.refresh();
await findings.now();
// On a phone the focus would bring up the keyboard over the page.
if (matchMedia("(pointer: fine)").matches)
  editor.focus();
