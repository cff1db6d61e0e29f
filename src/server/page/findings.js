// SPDX-License-Identifier: Apache-2.0
// findings: what the verifier says of the code, asked while one types.
import { ask } from "./api.js";
import { byId, element } from "./dom.js";
import { plural } from "./text.js";

const PAUSE_MS = 350;
const ABOUT_NAMES = new Set(["undefined-name", "file-not-found"]);
const WORDS = { block: "refused", warn: "warning", note: "note" };

// One finding as an entry of a list, which leads to its place in the code.
export function findingItem(finding, goTo) {
  return element("li", { class: `finding ${finding.severity}` },
    element("button", { type: "button", class: "plain", onclick: () => goTo(finding) },
      element("span", { class: "severity" }, WORDS[finding.severity] ?? finding.severity),
      finding.line && element("span", { class: "place" }, `${finding.line}:${finding.column ?? 1}`),
      element("span", {}, finding.message)),
    finding.hint && element("p", { class: "hint" }, finding.hint));
}

export class Findings {
  // policy(): the name of the one to judge by, or "". known(name): whether the session has
  // seen this name, of a variable or a file: a check is about code that stands alone.
  constructor(editor, { policy, known }) {
    Object.assign(this, { editor, policy, known });
    this.timer = 0;
    this.asked = 0;
  }

  // The code changed: ask when nothing more is typed for a moment.
  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.now(), PAUSE_MS);
  }

  async now() {
    clearTimeout(this.timer);
    const code = this.editor.text, mine = ++this.asked;
    if (!code.trim()) {
      this.show({ decision: "allow", findings: [] });
      return;
    }
    try {
      const verdict = await ask("POST", "v1/check", { json: { code, ...this.policy() && { policy: this.policy() } }, quiet: true });
      // An answer about text that is not there any more would underline the wrong words.
      if (mine === this.asked && code === this.editor.text)
        this.show({ ...verdict, findings: verdict.findings.filter((finding) => !ABOUT_NAMES.has(finding.rule) || !this.known(this.editor.named(finding))) });
    } catch (error) {
      if (mine === this.asked)
        byId("verdict").textContent = `not known: ${error.message}`;
    }
  }

  show({ decision, findings }) {
    this.editor.showFindings(findings);
    const list = byId("problems");
    list.replaceChildren(...findings.map((finding) => findingItem(finding, (place) => this.editor.goTo(place))));
    const verdict = byId("verdict");
    verdict.className = decision;
    verdict.textContent = decision === "block" ? `✕ would be refused, ${plural(findings.length, "finding")}`
      : `✓ may run${findings.length ? `, ${plural(findings.length, "finding")}` : ""}`;
  }
}
