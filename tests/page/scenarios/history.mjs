// SPDX-License-Identifier: Apache-2.0
// The tree of a session: roll back, branch off, names, runs that left nothing, a reload.
import assert from "node:assert/strict";

export default async function (stage) {
  const page = await stage.open();
  assert.equal(await stage.run("x = 1\nopen('f', 'w').write('one')"), "ok");
  assert.equal(await stage.run("x = 2\nopen('f', 'w').write('two')"), "ok");
  assert.equal(await stage.run("1 +"), "blocked, nothing ran");
  assert.equal(await page.locator("#tree [role=treeitem]").count(), 4);

  // Back to run 1: its variables and files; the next run branches off.
  await stage.node(1).click();
  assert.match(await page.locator("#node").innerText(), /run 1/);
  await stage.action("Roll back to here").click();
  await page.locator("#tree [aria-current=step]", { hasText: "x = 1" }).waitFor();
  assert.equal(await stage.run("print('x is', x, open('f').read())\nx = 10"), "ok");
  await stage.expectOutput(/x is 1 one/);
  const branch = page.locator("#tree [aria-level='2']");
  assert.match(await branch.innerText(), /print\('x is'/);
  assert.equal(await branch.getAttribute("aria-current"), "step");

  // And over to the other line.
  await stage.node(2).click();
  await stage.action("Roll back to here").click();
  assert.equal(await stage.run("x, open('f').read()"), "ok");
  await stage.expectOutput(/\(2, 'two'\)/);

  // A name is the session's, for every client.
  await stage.action("Name…").click();
  await page.keyboard.type("before the end");
  await page.keyboard.press("Enter");
  await page.locator("#tree .name", { hasText: "before the end" }).waitFor();

  // An older run's code comes back into the editor.
  await stage.node(1).click();
  await stage.action("Edit").click();
  assert.match(await stage.editorText(), /^x = 1/);
  await stage.screenshot("history");

  await page.reload();
  await page.locator("#tree [role=treeitem]").nth(5).waitFor();
  assert.equal(await stage.run("x += 1; x"), "ok");
  await stage.expectOutput(/value\s+3/);
}
