// SPDX-License-Identifier: Apache-2.0
// api: requests to the daemon that served the page, and the events of a run.
import { askForKey, key } from "./key.js";

// An answer that says no (RFC 9457), or none at all (status 0).
export class Problem extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

// Whether what was asked about is not there, or not any more.
export const isGone = (error) => error.status === 404 || error.status === 410;

async function problem(response) {
  let said;
  try {
    said = await response.json();
  } catch {
    said = {};
  }
  return new Problem(response.status, said.detail || said.title || `The daemon answers ${response.status}.`);
}

// The response to a request that went well. Asks for a key when the daemon wants one, unless
// it is a quiet request, which nobody waits for.
export async function send(method, path, { json, body, accept = "application/json", signal, quiet = false } = {}) {
  const headers = { Accept: accept };
  if (json !== undefined) {
    headers["Content-Type"] = "application/json";
    body = JSON.stringify(json);
  } else if (body !== undefined) {
    headers["Content-Type"] = "application/octet-stream";
  }
  for (let tried = false; ; tried = true) {
    if (key())
      headers.Authorization = `Bearer ${key()}`;
    let response;
    try {
      response = await fetch(path, { method, headers, body, signal, cache: "no-store", redirect: "error" });
    } catch (error) {
      throw error.name === "AbortError" ? error : new Problem(0, "The daemon does not answer.");
    }
    if (response.ok)
      return response;
    if (response.status !== 401 || quiet || !await askForKey(tried))
      throw await problem(response);
  }
}

export async function ask(method, path, options) {
  const response = await send(method, path, options);
  return response.status === 204 ? null : response.json();
}

// Yields {event, data} as they come (the event stream format of the HTML standard, of which
// the daemon uses `event`, `data` and comments). Posts, which EventSource cannot do.
export async function* events(path, json, signal) {
  const response = await send("POST", path, { json, accept: "text/event-stream", signal });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "", event = "", data = [];
  for (;;) {
    const { value, done } = await reader.read();
    if (done)
      return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines.map((text) => text.replace(/\r$/, ""))) {
      if (line === "") {
        if (data.length)
          yield { event: event || "message", data: JSON.parse(data.join("\n")) };
        event = "";
        data = [];
      } else if (line.startsWith("event:")) {
        event = line.slice(6).trim();
      } else if (line.startsWith("data:")) {
        data.push(line.slice(5).replace(/^ /, ""));
      }
    }
  }
}

export const part = (text) => encodeURIComponent(text);
// A path inside a workspace, whose slashes stay.
export const parts = (path) => path.split("/").map(encodeURIComponent).join("/");
