// SPDX-License-Identifier: Apache-2.0
// A run is interrupted by key and by button, in a session and alone; variables survive it.
import assert from "node:assert/strict";

export default async function (stage) {
  const page = await stage.open();
  assert.equal(await stage.run("kept = 'kept'"), "ok");
  await stage.start("print('begun', flush=True)\nimport time\nwhile True:\n    time.sleep(0.01)");
  await stage.expectOutput(/begun/);
  await page.keyboard.press("Escape");
  assert.equal(await stage.ended(), "cancelled");
  await stage.start("print('again', flush=True)\nwhile True:\n    pass");
  await stage.expectOutput(/again/);
  await page.getByRole("button", { name: /^Interrupt/ }).click();
  assert.equal(await stage.ended(), "cancelled");
  assert.equal(await stage.run("kept"), "ok");
  await stage.expectOutput(/'kept'/);

  await page.locator("#mode").selectOption("once");
  await stage.start("print('alone', flush=True)\nwhile True:\n    pass");
  await stage.expectOutput(/alone/);
  await page.keyboard.press("Escape");
  assert.equal(await stage.ended(), "cancelled");
}
