// SPDX-License-Identifier: Apache-2.0
// Findings are underlined while one types, listed, and gone with their cause.
import assert from "node:assert/strict";

export default async function (stage) {
  const page = await stage.open();
  await stage.choosePolicy("strict");
  await stage.type("# 🐍 counted as one\ns = '🐍'; import subprocess; subprocess.run(['ls'])\nprnt(s)\n");
  await page.locator("#verdict.block").waitFor();
  const marked = await page.locator("#editor .cm-lintRange-error").allTextContents();
  assert.match(marked.join(""), /^(import )?subprocess/, `underlined: ${marked}`);
  assert.equal(await page.locator("#editor .cm-lintRange-warning").innerText(), "prnt");
  assert.match(await page.locator("#problems").innerText(), /refused\s+2:.*'subprocess' is not allowed/s);
  assert.match(await page.locator("#verdict").innerText(), /would be refused/);
  await page.locator("#problems button", { hasText: "prnt" }).click();
  await page.keyboard.insertText("print");
  await page.waitForFunction(() => !document.getElementById("problems").innerText.includes("prnt"));
  await stage.screenshot("findings");
  await stage.type("print(1)");
  await page.locator("#verdict.allow").waitFor();
  assert.equal(await page.locator("#editor .cm-lintRange").count(), 0);
}
