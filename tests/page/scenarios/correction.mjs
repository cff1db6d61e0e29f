// SPDX-License-Identifier: Apache-2.0
// An error is shown with its place and hint; the place leads into the code; corrected, it runs.
import assert from "node:assert/strict";

export default async function (stage) {
  const page = await stage.open();
  assert.equal(await stage.run("def mean(rows):\n    return sum(rows) / len(rows)\n\nmean([])"), "error");
  await stage.expectOutput(/ZeroDivisionError: division by zero/);
  assert.equal((await stage.output()).match(/ZeroDivisionError/g).length, 1, "said once");
  assert.equal(await page.locator("#output .frames mark").last().innerText(), "sum(rows) / len(rows)");
  await page.getByRole("button", { name: "line 2 in mean" }).click();
  await page.keyboard.insertText("sum(rows) / max(len(rows), 1)");
  assert.match(await stage.editorText(), /return sum\(rows\) \/ max\(len\(rows\), 1\)/);
  assert.equal(await stage.run(), "ok");
  await stage.expectOutput(/value\s+0\.0/);

  await stage.choosePolicy("strict");
  assert.equal(await stage.run("import os\nos.system('id')"), "blocked, nothing ran");
  await stage.expectOutput(/SecurityError: module 'os' is not allowed/);
  assert.match(await page.locator("#output .error .hint").innerText(), /os\.system/);
  await stage.screenshot("blocked");
}
