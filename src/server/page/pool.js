// SPDX-License-Identifier: Apache-2.0
// pool: the daemon's numbers, asked again while the page can be seen, and the choices that
// it offers.
import { ask, send } from "./api.js";
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

// A field for a limit: what holds when nothing is typed, and what may be typed.
function bound(field, { default: initial, least, most }, unit) {
  field.placeholder = `${initial / unit}`;
  field.min = Math.ceil(least / unit);
  field.max = Math.floor(most / unit);
}

// The samples of a text of Prometheus': {name: [[{label: value}, number], …]}. Of its format
// only what the daemon writes.
function samples(text) {
  const found = {};
  for (const line of text.split("\n")) {
    const [, name, labels = "", value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    if (name)
      (found[name] ??= []).push([Object.fromEntries([...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, key, word]) => [key, word])), Number(value)]);
  }
  return found;
}

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
      const response = await send("GET", "metrics", { accept: "text/plain", quiet: true });
      this.show(samples(await response.text()));
    } catch (error) {
      pause = AFTER_FAILURE_MS;
      byId("pool").replaceChildren(gauge("daemon", error.message, "", "bad"));
    }
    if (document.visibilityState === "visible")
      this.timer = setTimeout(() => this.poll(), pause);
  }

  show(found) {
    const one = (name) => found[name]?.[0][1] ?? 0;
    const queue = one("execpy_queue_length");
    byId("pool").replaceChildren(
      ...(found.execpy_pool_parked ?? []).map(([{ template }, parked]) => gauge(template, `${parked}`, `${plural(parked, "cell")} of ${template} parked, waiting for code`)),
      gauge("runs", `${one("execpy_runs_running")}`, "runs that go on now"),
      ...queue ? [gauge("waiting", `${queue}`, "requests that wait for a cell", "warn")] : [],
      gauge("sessions", `${one("execpy_sessions")}`, "sessions that live now"),
      gauge("memory", bytes(one("execpy_memory_bytes")), "held by templates and parked cells"));
  }
}
