// SPDX-License-Identifier: Apache-2.0
// Output is shown while the run goes on, in the order of both streams.
import assert from "node:assert/strict";

export default async function (stage) {
  const page = await stage.open();
  await stage.start(`import sys, time, pathlib
print("first")
while not pathlib.Path("go").exists():
    time.sleep(0.02)
print("second", file=sys.stderr)
sys.stderr.flush()
time.sleep(0.2)
print("third")
for step in range(5):
    print(f"\\rstep {step}", end="")
print()`);
  await stage.expectOutput(/first/);
  assert.ok(await page.locator("#interrupt").isEnabled(), "the run goes on");
  assert.doesNotMatch(await stage.output(), /third/);
  await page.evaluate(() => {}); // the page still answers
  await page.keyboard.press("Escape");
  assert.equal(await stage.ended(), "cancelled");

  assert.equal(await stage.run("import sys\nprint('a')\nprint('b', file=sys.stderr)\nprint('c')\nfor n in range(4): print(f'\\rstep {n}', end='')\nprint()"), "ok");
  await stage.expectOutput(/c\nstep 3/);
  assert.match(await page.locator("#output .stream.stderr").innerText(), /b/);
  assert.doesNotMatch(await stage.output(), /step 1/, "a carriage return begins the line again");
}
