// SPDX-License-Identifier: Apache-2.0
// output: everything that became of a run, as it comes and at its end. Text of a guest
// becomes text nodes; its pictures and markup are bundle.js's.
import { bundleNode } from "./bundle.js";
import { element } from "./dom.js";
import { findingItem } from "./findings.js";
import { bytes, milliseconds, overtyped, plural, withoutEscapes } from "./text.js";

// A browser lays out no more than this at once without pain; the rest is counted.
const SHOWN_CHARACTERS_MAX = 400000;

// What stands for a status, beside its colour: a sign and words.
export const STATUSES = {
  ok: ["good", "✓", "ok"],
  error: ["bad", "✕", "error"],
  blocked: ["bad", "⊘", "blocked, nothing ran"],
  anomaly: ["bad", "⚠", "anomaly, ended"],
  timeout: ["warn", "◷", "time limit"],
  cpu_limit: ["warn", "◷", "processor time limit"],
  memory_limit: ["warn", "▤", "memory limit"],
  output_limit: ["warn", "▤", "output limit"],
  disk_limit: ["warn", "▤", "disk limit"],
  crashed: ["bad", "✕", "crashed"],
  cancelled: ["warn", "■", "cancelled"],
  internal_error: ["bad", "!", "execpy failed"],
  running: ["busy", "…", "running"],
};

export function statusBadge(status) {
  const [kind, sign, words] = STATUSES[status] ?? ["warn", "?", status];
  return element("span", { class: `badge ${kind}` }, element("span", { "aria-hidden": "true" }, sign), ` ${words}`);
}

// Text of one stream. What one run prints piece by piece is laid out once a frame.
class Stream {
  constructor(name, place) {
    this.name = name;
    this.waiting = "";
    this.line = ""; // behind the last newline: a carriage return may still take it back
    this.shown = 0;
    this.dropped = 0;
    this.done = document.createTextNode("");
    this.open = document.createTextNode("");
    this.pre = element("pre", { class: `stream ${name}`, "aria-label": name }, this.done, this.open);
    place.append(this.pre);
  }

  add(text) {
    if (!this.waiting)
      requestAnimationFrame(() => this.flush());
    this.waiting += text;
  }

  flush() {
    const text = overtyped(this.line + withoutEscapes(this.waiting));
    this.waiting = "";
    const cut = text.lastIndexOf("\n") + 1;
    const room = SHOWN_CHARACTERS_MAX - this.shown;
    const whole = text.slice(0, Math.min(cut, room));
    this.shown += whole.length;
    this.dropped += cut - whole.length;
    this.done.appendData(whole);
    this.line = text.slice(cut);
    // Of the line that is still open only its end can matter, however long it grows.
    this.open.data = this.line.slice(-10000);
    if (this.dropped)
      this.pre.dataset.dropped = `${plural(this.dropped, "character")} more are not shown`;
  }

  // Takes a text off the end, if it is what stands there.
  cut(tail) {
    if (this.waiting)
      this.flush();
    const text = this.done.data + this.open.data;
    if (!tail || !text.endsWith(tail))
      return;
    this.done.data = text.slice(0, -tail.length);
    this.open.data = "";
    this.pre.hidden = this.done.data === "";
  }
}

// The line of code that a frame stands for, with what is meant marked.
function frameSource(frame) {
  const { source, line, column, end_line: endLine, end_column: endColumn } = frame;
  if (!source)
    return null;
  if (!column || !endColumn || (endLine && endLine !== line))
    return element("code", {}, source.trimEnd());
  const characters = [...source];
  return element("code", {}, characters.slice(0, column - 1).join(""),
    element("mark", {}, characters.slice(column - 1, endColumn - 1).join("")),
    characters.slice(endColumn - 1).join("").trimEnd());
}

const isOwn = (frame) => frame.file === "main.py" || /^<run \d+>$/.test(frame.file);

function frameItem(frame, goTo) {
  const own = isOwn(frame);
  const where = `${own ? "" : `${frame.file.split("/").slice(-2).join("/")}, `}${frame.line ? `line ${frame.line}` : "?"}${frame.function && frame.function !== "<module>" ? ` in ${frame.function}` : ""}`;
  return element("li", {},
    own && frame.line ? element("button", { type: "button", class: "plain place", onclick: () => goTo(frame) }, where) : element("span", { class: "place", title: frame.file }, where),
    frameSource(frame));
}

// The frames of the user's code and the last of all; of libraries in between, how many.
function frameItems(frames, goTo) {
  const items = [];
  let others = 0;
  for (const [n, frame] of frames.entries()) {
    const shown = isOwn(frame) || n === frames.length - 1;
    if (shown && others)
      items.push(element("li", { class: "quiet" }, `${plural(others, "frame")} of libraries`));
    others = shown ? 0 : others + 1;
    if (shown)
      items.push(frameItem(frame, goTo));
  }
  return items;
}

function errorNode(error, goTo) {
  return element("section", { class: "error", "aria-label": "Error" },
    element("p", { class: "message" }, element("strong", {}, error.type), error.message ? `: ${error.message}` : ""),
    error.hint && element("p", { class: "hint" }, error.hint),
    error.frames.length > 0 && element("ol", { class: "frames", "aria-label": "Where" }, ...frameItems(error.frames, goTo)),
    error.traceback && element("details", {}, element("summary", {}, "Traceback"), element("pre", {}, withoutEscapes(error.traceback))));
}

function sessionNode({ restored, lost }) {
  return restored && element("p", { class: "told warn" }, `The session was restored to before this run${lost.length ? `; lost: ${lost.join("; ")}` : ""}.`);
}

// One run's part of the output panel.
export class Output {
  // goTo(range): the user wants to see this place of the code.
  constructor(goTo) {
    this.goTo = goTo;
    this.streams = element("div", { class: "streams" });
    this.rest = element("div", { class: "rest" });
    this.node = element("article", {}, this.streams, this.rest);
    this.stream = null;
    this.displays = 0;
    this.findings = null;
  }

  // Output in the order in which it came: another stream, or a picture, begins a new part.
  text(name, text) {
    if (this.stream?.name !== name)
      this.stream = new Stream(name, this.streams);
    this.stream.add(text);
  }

  display(bundle) {
    this.stream = null;
    this.streams.append(bundleNode(bundle, `display ${++this.displays}`));
  }

  finding(finding) {
    if (!this.findings) {
      this.findings = element("ol", { class: "findings", "aria-label": "Findings of the run" });
      this.node.append(this.findings);
    }
    this.findings.append(findingItem(finding, this.goTo));
  }

  // The result holds everything once more: only what was not streamed is added.
  result(result) {
    const streamed = this.streams.hasChildNodes();
    for (const name of ["stdout", "stderr"]) {
      if (!streamed && result[name])
        this.text(name, result[name]);
    }
    for (const bundle of result.displays.slice(this.displays))
      this.display(bundle);
    const { output, anomaly, error, value, session } = result;
    // What the error says already is not said twice, be it a finding or Python's own words.
    if (error?.traceback && this.stream?.name === "stderr")
      this.stream.cut(withoutEscapes(error.traceback));
    if (!this.findings) {
      result.findings.filter(({ message, line }) => result.status !== "blocked" || message !== error.message || line !== error.frames[0]?.line)
        .forEach((finding) => this.finding(finding));
    }
    const parts = [
      value && bundleNode(value, "value"),
      output.truncated && element("p", { class: "told warn" }, `Output was cut: ${bytes(output.dropped_bytes)} dropped.`),
      anomaly && element("p", { class: "told bad" }, element("strong", {}, anomaly.event), `${anomaly.detail ? `: ${anomaly.detail}` : ""}${anomaly.line ? `, line ${anomaly.line}` : ""} (${anomaly.action})`),
      error && errorNode(error, this.goTo),
      session && sessionNode(session),
      !result.stdout && !result.stderr && !result.displays.length && !value && !error && !anomaly && element("p", { class: "quiet" }, "No output."),
    ];
    this.rest.append(...parts.filter(Boolean));
  }

  failure(message) {
    this.rest.append(element("p", { class: "told bad" }, message));
  }
}

// Who, how it ended and what it cost, as one line.
export function statusLine(label, status, result) {
  const { usage, timing, template, warm, exit_code: code, signal } = result ?? {};
  return [element("span", { class: "which" }, label), statusBadge(status),
    result && element("span", { class: "numbers" }, [
      code ? `exit ${code}` : "", signal ? `signal ${signal}` : "",
      milliseconds(timing.total_ms), `cpu ${milliseconds(usage.cpu_ms)}`, `peak ${bytes(usage.memory_peak_bytes)}`,
      template && `${template}${warm ? ", warm" : ""}`,
    ].filter(Boolean).join(" · "))].filter(Boolean);
}
