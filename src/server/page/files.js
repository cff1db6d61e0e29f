// SPDX-License-Identifier: Apache-2.0
// files: what is in the workspace, to drop in and to fetch. In a session that is the
// session's; for single runs the page holds what goes in, and what the last one made.
import { ask, part, parts, send } from "./api.js";
import { button, byId, element, notice, save } from "./dom.js";
import { base64ToBytes, bytes } from "./text.js";

export class Files {
  // session(): makes one when there is none. current(): its id, or null. single(): whether
  // runs stand alone.
  constructor({ session, current, single }) {
    Object.assign(this, { session, current, single });
    this.attached = new Map(); // path → File
    this.made = [];            // the files of the last single run's result
    const input = byId("files-input");
    byId("files-add").addEventListener("click", () => input.click());
    input.addEventListener("change", () => {
      this.add([...input.files]);
      input.value = "";
    });
    this.watchDrops();
  }

  watchDrops() {
    const sign = byId("drop");
    const holdsFiles = (event) => event.dataTransfer?.types.includes("Files");
    addEventListener("dragover", (event) => {
      if (holdsFiles(event)) {
        event.preventDefault();
        sign.hidden = false;
      }
    });
    addEventListener("dragleave", (event) => { sign.hidden ||= event.relatedTarget === null; });
    addEventListener("drop", (event) => {
      sign.hidden = true;
      if (holdsFiles(event)) {
        event.preventDefault();
        event.stopPropagation(); // the editor would type them in
        this.add([...event.dataTransfer.files]);
      }
    }, { capture: true });
  }

  async add(files) {
    try {
      if (this.single()) {
        files.forEach((file) => this.attached.set(file.name, file));
      } else {
        const id = await this.session();
        for (const file of files)
          await send("PUT", `v1/sessions/${part(id)}/files/${parts(file.name)}`, { body: file });
      }
      notice(`${files.map(({ name }) => name).join(", ")}: in the workspace.`);
    } catch (error) {
      notice(error.message);
    }
    await this.refresh();
  }

  // What a single run is given, as the request has it.
  async forRun() {
    return Promise.all([...this.attached].map(async ([path, file]) => {
      const raw = new Uint8Array(await file.arrayBuffer());
      let text = "";
      for (let at = 0; at < raw.length; at += 0x8000)
        text += String.fromCharCode(...raw.subarray(at, at + 0x8000));
      return { path, content_base64: btoa(text) };
    }));
  }

  has(path) {
    return [...byId("files").children].some((row) => row.dataset.path === path);
  }

  async refresh() {
    let rows = [];
    if (this.single()) {
      rows = [...[...this.attached].map(([path, file]) => this.row(path, file.size, "put in", () => file, () => this.attached.delete(path))),
        ...this.made.filter((file) => file.content_base64 !== undefined).map((file) =>
          this.row(file.path, file.size, "made", () => new Blob([base64ToBytes(file.content_base64)], { type: file.media_type })))];
    } else if (this.current()) {
      rows = await this.ofSession(this.current());
    }
    byId("files").replaceChildren(...rows);
    byId("files-empty").hidden = rows.length > 0;
  }

  async ofSession(id) {
    const base = `v1/sessions/${part(id)}/files`;
    try {
      const { files } = await ask("GET", base);
      return files.filter(({ type }) => type === "file").map(({ path, size }) => this.row(path, size, "",
        async () => (await send("GET", `${base}/${parts(path)}`, { accept: "*/*" })).blob(),
        () => send("DELETE", `${base}/${parts(path)}`)));
    } catch {
      return []; // said elsewhere: whoever ran or rolled back hears why
    }
  }

  row(path, size, word, fetchBlob, remove) {
    const name = path.split("/").at(-1);
    const act = (action) => async () => {
      try {
        await action();
      } catch (error) {
        notice(error.message);
      }
    };
    return element("li", { "data-path": path },
      button(path, act(async () => save(await fetchBlob(), name)), { class: "plain path", title: "Fetch", "aria-label": `Fetch ${path}` }),
      word && element("span", { class: "quiet" }, word),
      element("span", { class: "size" }, bytes(size)),
      remove && button("✕", act(async () => {
        await remove();
        await this.refresh();
      }), { class: "plain small", title: "Delete", "aria-label": `Delete ${path}` }));
  }
}
