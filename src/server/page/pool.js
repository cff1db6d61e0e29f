// SPDX-License-Identifier: Apache-2.0
// pool: the daemon's numbers, asked again while the page can be seen, and the choices that
// it offers.
import { ask } from "./api.js";
import { byId, element } from "./dom.js";
import { plural } from "./text.js";

const EVERY_MS = 2000, AFTER_FAILURE_MS = 8000;

function gauge(name, value, title, kind = "") {
  return element("li", { class: kind, title }, element("span", { class: "quiet" }, `${name} `), element("b", {}, value));
}

function offer(select, names, first) {
  const chosen = select.value;
  select.replaceChildren(element("option", { value: "" }, first), ...names.map((name) => element("option", { value: name }, name)));
  select.value = names.includes(chosen) ? chosen : "";
}

// A field for a limit: what holds when nothing is typed, and what may be typed.
function bound(field, { default: initial, least, most }, unit) {
  field.placeholder = `${initial / unit}`;
  field.min = Math.ceil(least / unit);
  field.max = Math.floor(most / unit);
}

const of = (name, now, most, title) => gauge(name, most ? `${now} of ${most}` : `${now}`, title);

// What a session is best begun from that shall run this code first: sessions, unlike runs,
// are not looked at for that by the daemon. The richest that is named comes last.
const IMPORTS = [["numpy", /numpy/], ["pandas", /pandas/], ["plot", /matplotlib|seaborn|\.plot\b/]];

export function templateFor(code) {
  const offered = [...byId("template").options].map(({ value }) => value);
  return IMPORTS.findLast(([name, pattern]) => offered.includes(name) && pattern.test(code))?.[0] ?? "";
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
      offer(byId("policy"), info.policies, "default");
      offer(byId("template"), info.templates.map(({ name }) => name), "auto");
      const { time_ms: time, memory_bytes: memory } = info.limits;
      bound(byId("time"), time, 1000);
      bound(byId("memory"), memory, 1048576);
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
      of("runs", info.tenant.runs, info.tenant.runs_max, "runs of yours that go on now"),
      of("sessions", info.tenant.sessions, info.tenant.sessions_max, "sessions of yours that live now"));
  }
}
