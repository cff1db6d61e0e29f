// SPDX-License-Identifier: Apache-2.0
// Everything without a pointer, and the focus can be seen.
import assert from "node:assert/strict";

const focused = (page) => page.evaluate(() => document.activeElement.id || document.activeElement.getAttribute("role"));

export default async function (stage) {
  const page = await stage.open();
  await stage.run("x = 1");
  await stage.run("x = 2");

  // Out of the editor, in which Tab indents.
  assert.equal(await focused(page), "editor");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Shift+Tab");
  assert.notEqual(await focused(page), "editor");
  assert.equal(await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle), "solid");

  // To the history by F6, back to run 1 by R, and into the editor again.
  for (let tries = 0; await focused(page) !== "treeitem" && tries < 6; tries++)
    await page.keyboard.press("F6");
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("Enter");
  assert.match(await page.locator("#node").innerText(), /run 1/);
  await page.keyboard.press("r");
  await page.locator("#tree [aria-current=step]", { hasText: "x = 1" }).waitFor();
  for (let tries = 0; await focused(page) !== "editor" && tries < 6; tries++)
    await page.keyboard.press("F6");
  await page.keyboard.press("Control+a");
  await page.keyboard.type("x");
  await page.keyboard.press("Control+Enter");
  await stage.expectOutput(/value\s+1/);

  // A finding by F8, help by F1.
  await page.keyboard.press("Control+a");
  await page.keyboard.type("\nprnt(1)");
  await page.locator("#editor .cm-lintRange").waitFor();
  await page.keyboard.press("F8");
  await page.locator("#editor .cm-tooltip", { hasText: "prnt" }).waitFor();
  await page.keyboard.press("F1");
  await page.locator("#help-dialog[open]").waitFor();
  await page.keyboard.press("Escape");
  await page.locator("#help-dialog[open]").waitFor({ state: "detached" });

  // What has no text has a name.
  const nameless = await page.evaluate(() => [...document.querySelectorAll("button, input, select, iframe, [role]")]
    .filter((node) => !(node.textContent.trim() || node.ariaLabel || node.title || node.labels?.length || node.getAttribute("aria-labelledby")))
    .map((node) => node.outerHTML));
  assert.deepEqual(nameless, []);
}
