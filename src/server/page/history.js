// SPDX-License-Identifier: Apache-2.0
// history: the runs of sessions as a tree, and the calls that move in it.
//
// Theory of operation. Each run of a session is a node beneath the one whose state it began
// with. Behind each run that left a state the page keeps a checkpoint, so that one can return
// to it; a session may have few, so the oldest that nobody named is given up for a new one. A
// branch (`fork`) is a session of its own, which begins at its node. A session's head is the
// node whose variables it has now; a run that crashed or was refused left no state, so it is
// a leaf and the head stays where it was.
import { ask, isGone, part, Problem } from "./api.js";

const CHECKPOINTS_MAX = 8; // of a session (SESSION_CHECKPOINTS in docs/limits.md)
const STORE = "execpy.history";

export class History {
  // changed(): draw it again.
  constructor(changed) {
    this.changed = changed;
    this.nodes = [];
    this.sessions = new Map(); // id → its head
    this.current = null;       // the session in which the next run happens
    this.chosen = null;        // the node that is looked at
  }

  get head() {
    return this.current && this.sessions.get(this.current);
  }

  // What is behind a node: the run that goes on its line, runs that left no state, and what
  // branches off.
  behind(node) {
    const all = this.nodes.filter(({ parent }) => parent === node.id);
    const next = all.find(({ session, leaf }) => session === node.session && !leaf) ?? null;
    return { next, leaves: all.filter(({ leaf }) => leaf), branches: all.filter((child) => child !== next && !child.leaf) };
  }

  find(id) {
    return this.nodes.find((node) => node.id === id) ?? null;
  }

  add(node) {
    const added = { id: this.nodes.length, checkpoint: null, name: "", result: null, ...node };
    this.nodes.push(added);
    return added;
  }

  // Whether a run from which the head comes mentions a name.
  mentions(name) {
    const word = (text) => text.split(/[^\p{L}\p{N}_]+/u).includes(name);
    for (let node = this.head; node; node = this.find(node.parent)) {
      if (word(node.code))
        return true;
    }
    return false;
  }

  // A session to run in: the current one, or a fresh one.
  async session(wish) {
    if (!this.current) {
      const { id } = await ask("POST", "v1/sessions", { json: wish });
      this.begin(id, null, "start");
      await this.keep(this.head);
    }
    return this.current;
  }

  begin(session, parent, name) {
    const node = this.add({ session, parent, kind: "start", status: "ok", code: "", name });
    this.sessions.set(session, node);
    this.current = session;
    this.chosen = node;
    this.changed();
    return node;
  }

  // A run begins beneath the head.
  run(code) {
    const node = this.add({ session: this.current, parent: this.head.id, kind: "run", status: "running", code });
    this.chosen = node;
    this.changed();
    return node;
  }

  async ended(node, result) {
    node.result = result;
    node.status = result?.status ?? "internal_error";
    node.number = result?.session?.run || null;
    node.leaf = !result?.session?.run || result.session.restored || result.status === "blocked";
    if (this.sessions.has(node.session) && !node.leaf) {
      this.sessions.set(node.session, node);
      await this.keep(node);
    }
    this.changed();
  }

  // Keeps the state of a head. That it cannot be kept takes nothing but the way back.
  async keep(node) {
    try {
      await this.checkpoint(node, node.kind === "start" ? "start" : `run-${node.number}`);
    } catch (error) {
      node.notKept = error.message;
    }
  }

  // Names a head's state, for the user and for every other client of the session.
  async name(node, name) {
    // One state has one name: the one before it goes first.
    if (node.checkpoint && node.checkpoint !== name) {
      await this.drop(node.session, node.checkpoint);
      node.checkpoint = null;
    }
    try {
      await this.checkpoint(node, name);
      node.name = name;
    } catch (error) {
      await this.keep(node);
      throw error;
    }
    this.changed();
  }

  // Makes a checkpoint of the session's state of now, which is the node's.
  async checkpoint(node, name) {
    const kept = this.nodes.filter(({ session, checkpoint }) => session === node.session && checkpoint);
    const oldest = kept.find((other) => other !== node && other.checkpoint !== other.name);
    if (kept.length >= CHECKPOINTS_MAX && oldest) {
      await this.drop(node.session, oldest.checkpoint);
      oldest.checkpoint = null;
    }
    await this.call(node.session, "checkpoint", { name });
    // A name that was there already is taken over.
    for (const other of kept.filter(({ checkpoint }) => checkpoint === name))
      Object.assign(other, { checkpoint: null, name: other.kind === "start" ? other.name : "" });
    node.checkpoint = name;
  }

  drop(session, name) {
    return ask("DELETE", `v1/sessions/${part(session)}/checkpoints/${part(name)}`);
  }

  isHead(node) {
    return this.sessions.get(node.session) === node;
  }

  canReturn(node) {
    return this.sessions.has(node.session) && (this.isHead(node) || node.checkpoint !== null);
  }

  async rollBack(node) {
    let lost = [];
    if (!this.isHead(node))
      ({ lost = [] } = await this.call(node.session, "rollback", { name: node.checkpoint }) ?? {});
    this.sessions.set(node.session, node);
    this.current = node.session;
    this.changed();
    return lost;
  }

  // A session more, which begins with the node's state. A fork has the state of now, so a
  // session whose state is another goes there and comes back.
  async branch(node) {
    const head = this.sessions.get(node.session);
    if (node !== head && head.checkpoint === null)
      throw new Problem(0, "The newest state has no checkpoint to come back to: roll back first.");
    if (node !== head)
      await this.call(node.session, "rollback", { name: node.checkpoint });
    let made;
    try {
      made = await this.call(node.session, "fork", { n: 1 });
    } finally {
      if (node !== head)
        await this.call(node.session, "rollback", { name: head.checkpoint });
    }
    const begun = this.begin(made.sessions[0].id, node.id, `branch ${this.sessions.size}`);
    await this.keep(begun);
    this.changed();
    return begun;
  }

  call(session, action, json) {
    return ask("POST", `v1/sessions/${part(session)}/${action}`, { json });
  }

  // Ends every session of the tree. What was seen stays to be looked at.
  async end() {
    const sessions = [...this.sessions.keys()];
    this.forget();
    await Promise.allSettled(sessions.map((id) => ask("DELETE", `v1/sessions/${part(id)}`)));
  }

  forget() {
    this.sessions.clear();
    this.current = null;
    this.nodes.forEach((node) => { node.checkpoint = null; });
    this.changed();
  }

  // The tree outlives a reload of the tab, as its sessions do; outputs do not.
  store() {
    const nodes = this.nodes.map(({ result, output, ...node }) => node);
    const sessions = [...this.sessions].map(([id, head]) => [id, head.id]);
    sessionStorage.setItem(STORE, JSON.stringify({ nodes, sessions, current: this.current, chosen: this.chosen?.id }));
  }

  async load() {
    const stored = JSON.parse(sessionStorage.getItem(STORE) ?? "null");
    if (!stored)
      return;
    this.nodes = stored.nodes.map((node) => ({ ...node, result: null, status: node.status === "running" ? "cancelled" : node.status }));
    this.sessions = new Map(stored.sessions.map(([id, head]) => [id, this.find(head)]));
    this.current = stored.current;
    this.chosen = this.find(stored.chosen);
    this.changed();
    for (const id of [...this.sessions.keys()])
      await ask("GET", `v1/sessions/${part(id)}`).catch((error) => isGone(error) && this.gone(id));
  }

  // A session ended without us: of itself, by its age, or with the daemon.
  gone(id) {
    this.sessions.delete(id);
    for (const node of this.nodes.filter(({ session }) => session === id))
      node.checkpoint = null;
    if (this.current === id)
      this.current = [...this.sessions.keys()].at(-1) ?? null;
    this.changed();
  }
}
