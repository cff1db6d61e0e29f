// SPDX-License-Identifier: Apache-2.0
// A branch is a session of its own: what is done in it does not show where it came from. A
// daemon that makes no branches says so, and nothing is lost by asking.
import assert from "node:assert/strict";

export default async function (stage) {
  const page = await stage.open();
  assert.equal(await stage.run("rows = [1]"), "ok");
  assert.equal(await stage.run("rows.append(2)"), "ok");
  await stage.node(1).click();
  await stage.action("Branch").click();
  await page.locator("#notice").waitFor();
  if (!/there is nothing at this path/.test(await page.locator("#notice").innerText())) {
    await page.locator("#tree .now").locator("xpath=..", { hasText: "branch" }).waitFor();
    assert.equal(await stage.run("rows.append('branch'); rows"), "ok");
    await stage.expectOutput(/\[1, 'branch'\]/);
  }

  // The session from which it came still has what it had. (Both count their runs on.)
  await page.locator("#tree .said", { hasText: "rows.append(2)" }).click();
  if (await stage.action("Go on here").isEnabled())
    await stage.action("Go on here").click();
  assert.equal(await stage.run("rows"), "ok");
  await stage.expectOutput(/\[1, 2\]/);
  await stage.screenshot("branch");
  await page.locator("#end-session").click();
  await page.locator("#end-session:disabled").waitFor();
  assert.equal(await page.locator("#tree .kept").count(), 0);
}
