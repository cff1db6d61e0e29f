// SPDX-License-Identifier: Apache-2.0
// Code is run by key and by button; output and value are shown, and variables stay.
import assert from "node:assert/strict";

export default async function (stage) {
  const page = await stage.open();
  assert.equal(await stage.run("x = 21\nprint('seen', x)\nx * 2"), "ok");
  await stage.expectOutput(/seen 21/);
  await stage.expectOutput(/value\s+42/);
  await stage.type("x + 1");
  await page.getByRole("button", { name: /^Run/ }).click();
  await stage.expectOutput(/value\s+22/);
  assert.match(await page.locator("#status").innerText(), /run 2.*ok.* ms/s);

  // Alone, nothing is there and nothing stays.
  await page.locator("#mode").selectOption("once");
  assert.equal(await stage.run("x"), "error");
  await stage.expectOutput(/NameError: name 'x' is not defined/);
}
