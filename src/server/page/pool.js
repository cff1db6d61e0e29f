// SPDX-License-Identifier: Apache-2.0
// pool: the daemon's numbers, asked again while the page can be seen, and the choices that
// it offers.
import { ask } from "./api.js";
import { byId, element } from "./dom.js";
import { bytes, plural } from "./text.js";

const EVERY_MS = 2000, AFTER_FAILURE_MS = 8000;

function gauge(name, value, title, kind = "") {
  return element("li", { class: kind, title }, element("span", { class: "quiet" }, `${name} `), element("b", {}, value));
}

function offer(select, names, first) {
  const chosen = select.value;
  select.replaceChildren(element("option", { value: "" }, first), ...names.map((name) => element("option", { value: name }, name)));
  select.value = names.includes(chosen) ? chosen : "";
}

export class Pool {
  constructor() {
    this.timer = 0;
    document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && this.poll());
  }

  // The first time asks for a key, if one is needed; later polls are quiet.
  async start() {
    try {
      const info = await ask("GET", "v1/info");
      offer(byId("policy"), info.policies.map((policy) => policy.name ?? policy), "default");
      offer(byId("template"), info.templates.map((template) => template.name), "auto");
    } catch {
      // The poll says it.
    }
    this.poll();
  }

  async poll() {
    clearTimeout(this.timer);
    let pause = EVERY_MS;
    try {
      this.show(await ask("GET", "v1/info", { quiet: true }));
    } catch (error) {
      pause = AFTER_FAILURE_MS;
      byId("pool").replaceChildren(gauge("daemon", error.message, "", "bad"));
    }
    if (document.visibilityState === "visible")
      this.timer = setTimeout(() => this.poll(), pause);
  }

  show(info) {
    byId("pool").replaceChildren(
      ...info.templates.map(({ name, parked }) => gauge(name, `${parked}`, `${plural(parked, "cell")} of ${name} parked, waiting for code`)),
      gauge("runs", `${info.runs}`, "runs that go on now"),
      gauge("sessions", `${info.sessions}`, "sessions that live now"),
      gauge("memory", bytes(info.memory_bytes), "of all cells together"));
  }
}
