// SPDX-License-Identifier: Apache-2.0
// A picture and a table inline, as tall as they need, and as text and files when wanted.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";

export default async function (stage) {
  const page = await stage.open();
  assert.equal(await stage.run(`import base64
from IPython.display import display, HTML, Image, SVG
display(Image(base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAFklEQVR4nGP8z8DAwMDAxMDAwMDAAAANHQEDasKb6QAAAABJRU5ErkJggg==")))
display(SVG('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 200 100" width="200" height="100"><rect id="r" width="200" height="100" fill="teal"/></svg>'))
HTML("<style>td { color: rgb(1, 2, 3) }</style><table>" + "".join(f"<tr><td>{n}</td></tr>" for n in range(8)) + "</table>")`), "ok");
  const picture = page.locator("#output img.picture");
  await picture.waitFor();
  assert.equal(await picture.evaluate((image) => image.decode().then(() => image.naturalWidth)), 2);

  assert.equal((await stage.guest(0).locator("#r").boundingBox()).height, 100);
  const svg = await page.locator("#output iframe.svg").boundingBox();
  assert.ok(svg.height >= 100 && svg.height < 160, `a frame of ${svg.height} px for 100`);

  const cells = stage.guest(1).locator("td");
  assert.deepEqual(await cells.allTextContents(), [..."01234567"]);
  assert.equal(await cells.first().evaluate((cell) => getComputedStyle(cell).color), "rgb(1, 2, 3)");
  const [table, frame] = [await stage.guest(1).locator("table").boundingBox(), await page.locator("#output iframe.html").boundingBox()];
  assert.ok(frame.height >= table.height && frame.height < table.height + 80, `a frame of ${frame.height} px for ${table.height}`);
  await stage.screenshot("pictures");

  await page.locator("figure", { has: page.locator("img.picture") }).getByRole("button", { name: "As text" }).click();
  await stage.expectOutput(/IPython|Image/);
  const download = page.waitForEvent("download");
  await page.locator("figure", { has: page.locator("iframe.svg") }).getByRole("button", { name: "Save" }).click();
  assert.match(await readFile(await (await download).path(), "utf8"), /^<svg/);
}
