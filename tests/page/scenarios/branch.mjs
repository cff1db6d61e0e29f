// SPDX-License-Identifier: Apache-2.0
// A branch is a session of its own: what is done in it does not show where it came from.
import assert from "node:assert/strict";

export default async function (stage) {
  const page = await stage.open();
  assert.equal(await stage.run("rows = [1]\nopen('f', 'w').write('one')"), "ok");
  assert.equal(await stage.run("rows.append(2)\nopen('f', 'w').write('two')"), "ok");

  // From an older node: the session itself ends up where it was.
  await stage.node(1).click();
  await stage.action("Branch").click();
  await page.locator("#tree [aria-current=step]", { hasText: "branch 1" }).waitFor();
  assert.equal(await stage.run("rows.append('branch'); rows, open('f').read()"), "ok");
  await stage.expectOutput(/\(\[1, 'branch'\], 'one'\)/);

  // The session from which it came still has what it had. (Both count their runs on.)
  await page.locator("#tree .said", { hasText: "rows.append(2)" }).click();
  await stage.action("Go on here").click();
  await page.locator("#tree [aria-current=step]", { hasText: "rows.append(2)" }).waitFor();
  assert.equal(await stage.run("rows, open('f').read()"), "ok");
  await stage.expectOutput(/\(\[1, 2\], 'two'\)/);
  await stage.screenshot("branch");

  // And the branch what it had; both end with the button.
  await page.locator("#tree .said", { hasText: "rows.append('branch')" }).click();
  await stage.action("Go on here").click();
  await page.locator("#tree [aria-current=step]", { hasText: "'branch'" }).waitFor();
  assert.equal(await stage.run("rows"), "ok");
  await stage.expectOutput(/\[1, 'branch'\]/);
  await page.locator("#end-session").click();
  await page.locator("#end-session:disabled").waitFor();
  assert.equal(await page.locator("#tree .kept").count(), 0);
}
