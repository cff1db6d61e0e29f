// SPDX-License-Identifier: Apache-2.0
// A daemon with keys: the page asks for one, keeps it in the tab, and says when it is wrong.
import assert from "node:assert/strict";

export default async function (stage, { key }) {
  const page = await stage.open({ ready: false });
  await page.locator("#key-dialog[open]").waitFor();
  await stage.screenshot("key");
  await page.locator("#key").fill("wrong");
  await page.keyboard.press("Enter");
  await page.locator("#key-dialog[open]", { hasText: "does not know this key" }).waitFor();
  await page.locator("#key").fill(key);
  await page.keyboard.press("Enter");
  await page.locator("#verdict.allow").waitFor();
  assert.equal(await stage.run("print(55)"), "ok");
  await stage.expectOutput(/55/);
  assert.equal(await page.evaluate((secret) => JSON.stringify({ ...localStorage }).includes(secret), key), false);
  assert.equal(await page.evaluate((secret) => JSON.stringify({ ...sessionStorage }).includes(secret), key), true);
  assert.equal(await page.evaluate(() => document.cookie), "");

  // Another tab does not have it.
  await stage.open({ ready: false });
  await stage.page.locator("#key-dialog[open]").waitFor();
}
