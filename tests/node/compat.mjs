// SPDX-License-Identifier: Apache-2.0
// The clients of other servers, against this one. Prints what came back as JSON.
//
// usage: compat.mjs e2b|piston URL [KEY]
const [what, url, key] = process.argv.slice(2);

// In debug mode the client of E2B knows one port, and none of these knows our keys.
const fetchIt = globalThis.fetch;
globalThis.fetch = (input, init = {}) => fetchIt(
  String(input).replace("http://localhost:49999", url),
  key ? { ...init, headers: { ...init.headers, Authorization: `Bearer ${key}` } } : init);

async function thrown(promise) {
  try {
    await promise;
    return null;
  } catch (error) {
    return { name: error.name, message: error.message };
  }
}

// What an execution has, pictures as the first bytes of their base64.
function plain(execution) {
  return {
    text: execution.text ?? null,
    stdout: execution.logs.stdout.join(""),
    stderr: execution.logs.stderr.join(""),
    error: execution.error ?? null,
    count: execution.executionCount,
    results: execution.results.map((result) => ({
      formats: result.formats(), main: result.isMainResult ?? null, text: result.text ?? null,
      html: result.html ?? null, json: result.json ?? null, chart: result.chart ?? null,
      extra: result.extra, png: result.png?.slice(0, 12) ?? null,
    })),
  };
}

async function e2b() {
  process.env.E2B_DEBUG = "true";
  const { Sandbox } = await import("@e2b/code-interpreter");
  const sandbox = await Sandbox.create();
  const run = async (code, options) => plain(await sandbox.runCode(code, options));
  const found = {};

  found.value = await run("x = 41\n'text'");
  found.kept = await run("x + 1");
  found.streams = await run(
    "import sys\nprint('out ä')\nprint('err', file=sys.stderr)\nprint('more')");

  // Told as it comes.
  const events = [];
  const steps = await run(
    "import time\nfor i in range(3):\n    print(i, flush=True)\n    time.sleep(0.2)\n"
    + "display('shown')\n1 / 0", {
      onStdout: (output) => { events.push([output.line, Date.now()]); },
      onResult: (result) => { events.push([result.text, Date.now()]); },
      onError: (error) => { events.push([error.name, Date.now()]); },
    });
  found.callbacks = { events, steps };

  found.error = await run("def f(n):\n    return 1 / n\nf(0)");
  found.syntax = await run("def");
  found.caught = await run(
    "import traceback\ntry:\n    1 / 0\nexcept Exception:\n    traceback.print_exc()\nprint(2)");
  found.exit = await run("raise SystemExit(3)");
  found.refused = await run("open('/etc/passwd', 'w')");
  found.envs = await run("import os\nos.environ['WHO'], os.environ.get('HOME')",
    { envs: { WHO: "me" } });
  found.envsGone = await run("os.environ.get('WHO')");
  found.bundle = await run(
    "class Thing:\n    def _repr_mimebundle_(self, **_):\n"
    + "        return {'text/plain': 'thing', 'application/json': {'a': [1, 2]},\n"
    + "                'application/x.own+json': {'b': 1}, 'text/html': '<b>thing</b>'}\n"
    + "display(Thing())");

  // A crash and a limit, and what is left afterwards.
  found.crash = await run("x = 'changed'\nimport os\nos.abort()");
  found.afterCrash = await run("x");
  found.memory = await run("y = bytearray(1 << 33)");
  found.afterMemory = await run("x");
  found.abandoned = await thrown(run("while True: pass", { timeoutMs: 500 }));
  found.afterAbandoned = await run("x");

  // Contexts.
  const first = await sandbox.createCodeContext({ cwd: "/home/user/deep/er" });
  const second = await sandbox.createCodeContext();
  found.contexts = { first, second, listed: await sandbox.listCodeContexts() };
  found.apart = [
    await run("import os\nx = 'first'\nopen('file', 'w').write('kept')\nos.getcwd()",
      { context: first }),
    await run("import os\n'x' in globals(), os.listdir('/workspace')", { context: second }),
    await run("x"),
  ];
  const hung = thrown(run("import time\ntime.sleep(60)", { context: first }));
  await new Promise((resolve) => setTimeout(resolve, 300));
  await sandbox.restartCodeContext(first);
  found.hung = await hung;
  found.restarted = await run("import os\n'x' in globals(), os.getcwd(), open('file').read()",
    { context: first });
  await sandbox.removeCodeContext(first);
  await sandbox.removeCodeContext(second.id);
  found.removed = await thrown(run("1", { context: first }));
  found.removedTwice = await thrown(sandbox.removeCodeContext(first));
  found.left = await sandbox.listCodeContexts();
  found.language = await thrown(run("1", { language: "javascript" }));
  found.directory = await thrown(sandbox.createCodeContext({ cwd: "/proc/none" }));

  // Charts, of which the picture is not all.
  found.charts = (await run(`import datetime
import matplotlib.pyplot as plt
plt.plot([1, 2, 3], [4, 5, 6], label='a')
plt.axhline(5)
plt.title('Title')
plt.xlabel('time (s)')
plt.ylabel('speed [m/s]')
plt.show()
plt.scatter([1, 2], [3, float('nan')], label='dots')
plt.show()
plt.bar(['a', 'b'], [1, 2], label='first')
plt.bar(['a', 'b'], [3, 4], bottom=[1, 2], label='second')
plt.show()
plt.pie([90, 10], labels=['No', 'Yes'], startangle=90)
plt.show()
plt.boxplot([[85, 90, 78, 92, 88, 20], [95, 89, 76, 91, 84, 87]], labels=['A', 'B'])
plt.show()
plt.plot([datetime.date(2024, 1, 1), datetime.date(2024, 1, 2)], [1, 2])
plt.yscale('log')
plt.show()
figure, (left, right) = plt.subplots(1, 2)
left.plot([1, 2])
right.barh(['q'], [7])
figure.suptitle('Both')
plt.show()
plt.imshow([[1, 2], [3, 4]])
plt.colorbar()
plt.show()
plt.plot(range(30000))
None
`)).results;
  await sandbox.kill();
  return found;
}

async function piston() {
  const { PistonClient } = (await import("piston-api-client")).default;
  const client = new PistonClient({ server: url });
  const run = (content, more) => client.execute(
    { language: "python", version: "*", files: [{ content }], ...more });

  return {
    runtimes: await client.runtimes(),
    ok: await run("import sys\nprint(sys.argv[1:], input())\nprint('e', file=sys.stderr)",
      { args: ["a", "b"], stdin: "line" }),
    files: await client.execute({
      language: "py3", version: "3.x", files: [
        { name: "start.py", content: "import helper\nprint(helper.word, open('raw').read())" },
        { name: "helper.py", content: "word = 'ä'" },
        { name: "raw", content: "aGV4", encoding: "base64" },
      ],
    }),
    error: await run("1 / 0"),
    slow: await run("print(1, flush=True)\nwhile True: pass", { run_timeout: 300 }),
    unknown: await client.execute({ language: "rust", version: "*", files: [{ content: "" }] }),
  };
}

// Clients leave timers and connections behind, for which Node would wait.
const found = JSON.stringify(await { e2b, piston }[what]());
process.stdout.write(found, () => process.exit(0));
