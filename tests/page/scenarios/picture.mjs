// SPDX-License-Identifier: Apache-2.0
// The picture of the page in the documents.
import assert from "node:assert/strict";

const COUNT = `import pandas as pd, matplotlib.pyplot as plt
ages = pd.Series([31, 44, 27, 39], name="age")`;
const PLOT = `plt.style.use("ggplot")
fig, ax = plt.subplots(figsize=(4.6, 1.9))
ax.bar(range(len(ages)), ages)
ax.set_ylabel("age")
plt.tight_layout()
print("mean age:", ages.mean())
ages.describe().to_frame()`;

export default async function (stage, { picture }) {
  const page = await stage.open({ width: 1240, height: 700 });
  assert.equal(await stage.run(COUNT), "ok");
  assert.equal(await stage.run("ages.mean"), "ok");
  assert.equal(await stage.run("ages / 0 + years"), "error");
  await stage.node(1).click();
  await stage.action("Branch").click();
  await page.locator("#tree [aria-current=step]", { hasText: "branch" }).waitFor();
  assert.equal(await stage.run("ages = ages.sort_values()"), "ok");
  assert.equal(await stage.run(PLOT), "ok");
  await stage.guest().locator("td").first().waitFor();
  await page.locator("#notice").waitFor({ state: "hidden" });
  await page.evaluate(() => document.activeElement.blur());
  await page.screenshot({ path: picture });
}
