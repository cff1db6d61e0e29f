// SPDX-License-Identifier: Apache-2.0
// tree: the history as a tree to click and to walk through with the keys. A line of runs
// stays on its level; only what branches off is moved in.
import { button, byId, element, notice } from "./dom.js";
import { statusBadge, STATUSES } from "./output.js";
import { firstLine } from "./text.js";

export class Tree {
  // look(node): show its output. edit(code): put it into the editor. moved(): the session's
  // state is another.
  constructor(history, { look, edit, moved }) {
    Object.assign(this, { history, look, edit, moved });
    this.place = byId("tree");
    this.place.addEventListener("keydown", (event) => this.onKey(event));
    byId("end-session").addEventListener("click", () => this.act(() => this.history.end(), "The sessions were ended."));
  }

  draw() {
    const { history } = this;
    const focused = this.place.contains(document.activeElement);
    const roots = history.nodes.filter(({ parent }) => parent === null);
    this.place.replaceChildren(...roots.flatMap((node) => this.line(node, 1)));
    byId("tree-empty").hidden = history.nodes.length > 0;
    byId("end-session").disabled = history.sessions.size === 0;
    this.drawNode();
    if (focused)
      this.place.querySelector("[tabindex='0']")?.focus();
    history.store();
  }

  // A node and the runs behind it, each with what branches off from it.
  line(node, level) {
    const items = [];
    for (let at = node; at; ) {
      const { next, leaves, branches } = this.history.behind(at);
      const item = this.item(at, level);
      if (branches.length)
        item.append(element("ul", { role: "group" }, ...branches.flatMap((branch) => this.line(branch, level + 1))));
      items.push(item, ...leaves.map((leaf) => this.item(leaf, level)));
      at = next;
    }
    return items;
  }

  item(node, level) {
    const { history } = this;
    const here = node === history.head, head = history.isHead(node), chosen = node === history.chosen;
    const [kind, sign, words] = STATUSES[node.status];
    const said = node.kind === "start" ? node.name : firstLine(node.code);
    const label = element("span", { class: "label", onclick: () => this.choose(node) },
      element("span", { class: `sign ${kind}`, title: words }, node.kind === "start" ? "○" : sign),
      node.kind === "run" && element("span", { class: "number" }, node.number ?? "–"),
      element("span", { class: node.kind === "start" ? "said start" : "said" }, said),
      node.kind === "run" && node.name && element("span", { class: "name" }, node.name),
      node.kind === "run" && node.status !== "ok" && element("span", { class: `word ${kind}` }, words.split(",")[0]),
      head && element("span", { class: here ? "here now" : "here" }, here ? "now" : "head"));
    return element("li", {
      role: "treeitem", class: history.canReturn(node) ? "kept" : "gone", tabIndex: chosen ? 0 : -1,
      "aria-level": level, "aria-selected": chosen, "aria-current": here ? "step" : null,
      "aria-label": `${node.kind === "start" ? said : `run ${node.number ?? ""}: ${said}`}, ${words}${here ? ", the session is here" : ""}`,
      "data-node": node.id,
    }, label);
  }

  choose(node) {
    this.history.chosen = node;
    this.look(node);
    this.draw();
    this.place.querySelector("[tabindex='0']")?.focus();
  }

  // What can be done with the chosen node.
  drawNode() {
    const { history } = this, node = history.chosen, place = byId("node");
    place.hidden = !node;
    if (!node)
      return;
    const here = node === history.head, possible = history.canReturn(node);
    const title = node.kind === "start" ? node.name : `run ${node.number ?? "that did not begin"}`;
    place.replaceChildren(
      element("p", {}, element("strong", {}, title), " ", statusBadge(node.status)),
      element("p", { class: "buttons" },
        button(history.isHead(node) ? "Go on here" : "Roll back to here", () => this.rollBack(node), { disabled: !possible || here }),
        button("Branch", () => this.branch(node), { disabled: !possible, title: "A session more, with the variables of this run" }),
        button("Name…", () => this.naming(node), { disabled: !history.isHead(node) }),
        button("Edit", () => this.edit(node.code), { disabled: node.kind !== "run", title: "Put this run's code into the editor" })),
      possible ? "" : element("p", { class: "quiet" }, this.why(node)));
  }

  why(node) {
    if (!this.history.sessions.has(node.session))
      return "Its session has ended.";
    if (node.notKept)
      return `It has no checkpoint: ${node.notKept}`;
    return node.leaf ? "It left no state to return to." : "Its checkpoint was given up for newer ones.";
  }

  async act(action, done) {
    try {
      const said = await action();
      notice(said ?? done);
      this.moved();
    } catch (error) {
      notice(error.message);
    }
    this.draw();
  }

  // Of the head of another branch nothing needs to be rolled back.
  rollBack(node) {
    const head = this.history.isHead(node);
    return this.act(async () => {
      const lost = await this.history.rollBack(node);
      return lost.length ? `Rolled back; lost: ${lost.join("; ")}.` : null;
    }, head ? "The next run goes on from there." : "Rolled back: variables and files are as they were there.");
  }

  branch(node) {
    return this.act(async () => { await this.history.branch(node); }, "The next run is in the new branch.");
  }

  naming(node) {
    const field = element("input", { type: "text", maxLength: 63, value: node.name, "aria-label": "Name of the checkpoint" });
    const form = element("form", { class: "naming", onsubmit: (event) => {
      event.preventDefault();
      if (field.value.trim())
        this.act(() => this.history.name(node, field.value.trim()).then(() => null), "The checkpoint has its name.");
    } }, field, element("button", {}, "Keep"));
    byId("node").append(form);
    field.focus();
  }

  onKey(event) {
    const items = [...this.place.querySelectorAll("[role=treeitem]")];
    const at = items.indexOf(event.target.closest("[role=treeitem]"));
    if (at < 0 || event.ctrlKey || event.metaKey || event.altKey)
      return;
    const node = this.history.find(Number(items[at].dataset.node));
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1,
      ArrowLeft: items.indexOf(items[at].parentElement.closest("[role=treeitem]")),
      ArrowRight: items[at].querySelector("[role=treeitem]") ? at + 1 : -1 }[event.key];
    if (to !== undefined)
      items[to]?.focus();
    else if (event.key === "Enter" || event.key === " ")
      this.choose(node);
    else if (event.key.toLowerCase() === "r" && this.history.canReturn(node))
      this.rollBack(node);
    else if (event.key.toLowerCase() === "b" && this.history.canReturn(node))
      this.branch(node);
    else
      return;
    event.preventDefault();
  }
}
