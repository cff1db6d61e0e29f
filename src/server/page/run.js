// SPDX-License-Identifier: Apache-2.0
// run: one run at a time, from the request to its end, in a session or alone.
import { ask, events, isGone, part, Problem } from "./api.js";
import { byId, notice } from "./dom.js";
import { Output, statusLine } from "./output.js";
import { templateFor } from "./pool.js";

export class Runner {
  constructor({ editor, findings, history, files, tree }) {
    Object.assign(this, { editor, findings, history, files, tree });
    this.going = null; // {node, abort, interrupted}
    this.singles = 0;
    this.runs = 0; // of the page, of all kinds: told to who waits for the end of one
    byId("run").addEventListener("click", () => this.run());
    byId("interrupt").addEventListener("click", () => this.interrupt());
  }

  single() {
    return byId("mode").value === "once";
  }

  limits() {
    const time = Number(byId("time").value), memory = Number(byId("memory").value);
    return { ...time && { time_ms: time * 1000 }, ...memory && { memory_bytes: memory * 1048576 } };
  }

  policy() {
    return byId("policy").value;
  }

  // What is asked for beside the code. Template and memory are a session's from its beginning.
  wish() {
    const limits = this.limits(), policy = this.policy();
    const template = byId("template").value || (this.single() ? "" : templateFor(this.editor.text));
    return { ...Object.keys(limits).length && { limits }, ...policy && { policy }, ...template && { template } };
  }

  async run() {
    if (this.going)
      return;
    const code = this.editor.text;
    const output = new Output((place) => this.editor.goTo(place));
    this.going = { abort: new AbortController(), node: null, interrupted: false };
    this.show("run", output, "running");
    let result = null;
    try {
      result = this.single() ? await this.alone(code, output) : await this.inSession(code, output);
    } catch (error) {
      this.failed(error, output);
    }
    this.going = null;
    byId("status").dataset.runs = ++this.runs;
    byId("run").disabled = false;
    byId("interrupt").disabled = true;
    await this.files.refresh();
    return result;
  }

  show(label, output, status, result) {
    byId("run").disabled = status === "running";
    byId("interrupt").disabled = status !== "running";
    byId("status").replaceChildren(...statusLine(label, status, result));
    if (byId("output").firstChild !== output.node)
      byId("output").replaceChildren(output.node);
  }

  async alone(code, output) {
    const files = await this.files.forRun();
    const json = { code, ...this.wish(), ...files.length && { files }, return_files: true };
    const result = await this.follow("v1/run", json, output);
    this.files.made = result.files;
    this.ended(`single run ${++this.singles}`, output, result);
    return result;
  }

  async inSession(code, output) {
    const id = await this.history.session(this.wish());
    const node = this.going.node = this.history.run(code);
    node.output = output;
    let result = null;
    try {
      const { time_ms: time } = this.limits(), policy = this.policy();
      result = await this.follow(`v1/sessions/${part(id)}/run`,
        { code, ...time && { limits: { time_ms: time } }, ...policy && { policy } }, output);
      await this.history.ended(node, result);
      this.ended(`run ${node.number ?? ""}`, output, result);
    } catch (error) {
      await this.history.ended(node, null);
      if (isGone(error))
        this.history.gone(id);
      throw error;
    }
    return result;
  }

  // Shows a run as it comes; its result at the end.
  async follow(path, json, output) {
    let result = null;
    for await (const { event, data } of events(path, json, this.going.abort.signal)) {
      if (event === "stdout" || event === "stderr")
        output.text(event, data.text);
      else if (event === "display")
        output.display(data);
      else if (event === "finding")
        output.finding(data);
      else if (event === "problem")
        throw new Problem(data.status, data.detail);
      else if (event === "result")
        result = data;
    }
    if (!result)
      throw new Problem(0, "The daemon ended the run without a result.");
    return result;
  }

  ended(label, output, result) {
    output.result(result);
    this.show(label, output, result.status, result);
    this.findings.show({ decision: result.status === "blocked" ? "block" : "allow", findings: result.findings });
  }

  failed(error, output) {
    const stopped = error.name === "AbortError";
    output.failure(stopped ? "Ended by closing its connection; what it left is not known." : error.message);
    this.show("run", output, stopped ? "cancelled" : "internal_error");
  }

  // A session's run gets a KeyboardInterrupt first. Whose client goes away is ended: that is
  // the way for a single run, and for the second time.
  async interrupt() {
    const { going } = this;
    if (!going)
      return;
    if (going.interrupted || !going.node) {
      going.abort.abort();
      return;
    }
    going.interrupted = true;
    try {
      await ask("POST", `v1/sessions/${part(going.node.session)}/interrupt`);
    } catch (error) {
      if (this.going === going)
        notice(error.message);
    }
  }

  // Another run of the history is looked at.
  look(node) {
    if (this.going)
      return;
    if (node.output && node.result) {
      this.show(`run ${node.number ?? ""}`, node.output, node.status, node.result);
    } else {
      const output = new Output((place) => this.editor.goTo(place));
      output.rest.append(node.kind === "start" ? "Nothing ran here yet." : "Its output is not kept.");
      this.show(node.kind === "start" ? node.name : `run ${node.number ?? ""}`, output, node.status);
    }
  }
}
