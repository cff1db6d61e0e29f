// SPDX-License-Identifier: Apache-2.0
// Pyodide in Node, in its two ways.
//
//   node pyodide.mjs PACKAGE once CODE MODULE…      load, run, print, end
//   node pyodide.mjs PACKAGE serve SOCKET MODULE…   one interpreter kept for all runs; the wire is
//                                                   that of bench/client/server.c
//
// PACKAGE is the directory of the npm package. A kept interpreter shares its modules and files
// among all runs: each gets only globals of its own.
import { readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";

const [, , directory, mode, argument, ...modules] = process.argv;
const { loadPyodide } = await import(pathToFileURL(directory + "/pyodide.mjs"));
const pyodide = await loadPyodide();

let out = [], said = [];
pyodide.setStdout({ write: (bytes) => (out.push(Buffer.from(bytes)), bytes.length) });
pyodide.setStderr({ write: (bytes) => (said.push(Buffer.from(bytes)), bytes.length) });

for (const module of modules) {
  try {
    await pyodide.loadPackage(module.split(".")[0], { messageCallback() {}, errorCallback() {} });
    pyodide.runPython(`import ${module}`);
  } catch {
    const name = module.split(".")[0];
    console.log(`unable: ${name} is not in Pyodide's npm package, and its wheel cannot be fetched`);
    process.exit(1);
  }
}

function run(code) {
  out = [];
  said = [];
  const globals = pyodide.toPy({ __name__: "__main__" });
  try {
    pyodide.runPython(code, { globals, filename: "main.py" });
    return "0";
  } catch (error) {
    said.push(Buffer.from(error.message));
    return "1";
  } finally {
    pyodide.runPython("import sys; sys.stdout.flush()");
    globals.destroy();
  }
}

// A loop ends only when somebody else asks for it: a thread that watches the clock.
const clock = new Int32Array(new SharedArrayBuffer(8)); // runs begun; time limit
const interrupt = new Uint8Array(new SharedArrayBuffer(1));
const watch = `
  const { workerData: { clock, interrupt } } = require("node:worker_threads");
  for (let seen = 0; ; ) {
    Atomics.wait(clock, 0, seen);
    seen = Atomics.load(clock, 0);
    if (seen % 2 && Atomics.wait(clock, 0, seen, clock[1]) === "timed-out")
      interrupt[0] = 2;
  }`;

function limited(code, timeMs) {
  clock[1] = timeMs || 5000;
  Atomics.add(clock, 0, 1);
  Atomics.notify(clock, 0);
  const status = run(code);
  Atomics.add(clock, 0, 1);
  Atomics.notify(clock, 0);
  interrupt[0] = 0;
  return status;
}

function fetched() {
  try {
    const file = Buffer.from(pyodide.FS.readFile("plot.png"));
    pyodide.FS.unlink("plot.png");
    return file;
  } catch {
    return Buffer.alloc(0);
  }
}

function serve(path) {
  rmSync(path, { force: true });
  new Worker(watch, { eval: true, workerData: { clock, interrupt } }).unref();
  pyodide.setInterruptBuffer(interrupt);
  createServer((socket) => {
    let data = Buffer.alloc(0);
    socket.on("data", (more) => {
      data = Buffer.concat([data, more]);
      if (data.length < 12 || data.length < 12 + data.readUInt32LE(8))
        return;
      const status = Buffer.from(limited(data.toString("utf8", 12), data.readUInt32LE(0)));
      const file = data.readUInt32LE(4) ? fetched() : Buffer.alloc(0);
      const parts = [status, Buffer.concat(out), Buffer.concat(said), file];
      data = Buffer.alloc(0);
      const head = Buffer.alloc(16);
      parts.forEach((part, i) => head.writeUInt32LE(part.length, 4 * i));
      socket.write(Buffer.concat([head, ...parts]));
    });
    socket.on("error", () => {});
  }).listen(path, () => console.log("ready"));
}

if (mode === "serve") {
  serve(argument);
} else {
  const status = run(readFileSync(argument, "utf8"));
  process.stdout.write(Buffer.concat(out));
  process.stderr.write(Buffer.concat(said));
  process.exitCode = Number(status);
}
