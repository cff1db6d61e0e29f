// SPDX-License-Identifier: Apache-2.0
// Light, dark, and on a phone: nothing overflows, and text stands out from its ground.
import assert from "node:assert/strict";

// The least contrast of any text on the page (WCAG 2.2, 1.4.3), with whose it is.
function contrasts() {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const pixel = (colour, under) => {
    canvas.fillStyle = under;
    canvas.fillRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = (parts) => parts.slice(0, 3).map((value) => value / 255).map((value) => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4)
    .reduce((sum, value, n) => sum + value * [0.2126, 0.7152, 0.0722][n], 0);
  const opaque = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const ground = getComputedStyle(at).backgroundColor;
      if (pixel(ground, "#000").join() === pixel(ground, "#fff").join())
        return ground;
    }
    return "#fff";
  };
  let worst = [99, ""];
  for (const node of document.querySelectorAll("body *")) {
    const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
    if (!own || !node.checkVisibility() || node.closest(":disabled"))
      continue;
    const ground = opaque(node), [a, b] = [light(pixel(getComputedStyle(node).color, ground)), light(pixel(ground, "#fff"))].sort((one, other) => other - one);
    if ((a + 0.05) / (b + 0.05) < worst[0])
      worst = [(a + 0.05) / (b + 0.05), node.outerHTML.slice(0, 120)];
  }
  return worst;
}

async function ran(stage, options) {
  const page = await stage.open(options);
  await stage.run();
  await page.locator("#output img.picture").waitFor();
  await stage.guest().locator("td").first().waitFor();
  return page;
}

async function look(stage, name, options = {}) {
  const { page } = stage;
  await page.waitForTimeout(200);
  const [ratio, whose] = await page.evaluate(contrasts);
  assert.ok(ratio >= 4.5, `${name}: a contrast of ${ratio.toFixed(2)}: ${whose}`);
  const { wide, room } = await page.evaluate(() => ({ wide: document.documentElement.scrollWidth, room: innerWidth }));
  assert.ok(wide <= room, `${name}: ${wide} px wide in ${room}`);
  await stage.screenshot(name, options);
}

const ground = (page) => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
// In a frame it is the page's, which is told to it.
const paper = (stage) => stage.guest().locator("body").evaluate((body) => getComputedStyle(body).backgroundColor);

export default async function (stage) {
  const page = await ran(stage, { width: 1280, height: 760 });
  await look(stage, "light");
  const light = [await ground(page), await paper(stage)];
  await page.emulateMedia({ colorScheme: "dark" });
  await stage.guest().locator("td").first().waitFor();
  await look(stage, "dark");
  assert.notEqual(await ground(page), light[0]);
  assert.notEqual(await paper(stage), light[1]);
  await page.setViewportSize({ width: 900, height: 760 });
  await look(stage, "narrow");
  // By hand, against what the system says, and it stays so.
  await page.locator("#theme").click();
  assert.equal(await ground(page), light[0]);
  await page.reload();
  assert.equal(await ground(page), light[0]);

  const phone = await ran(stage, { width: 390, height: 844, phone: true });
  await look(stage, "phone", { fullPage: true });
  const small = await phone.evaluate(() => [...document.querySelectorAll("button:not(.plain):not(figure *), select, input")].filter((node) => node.checkVisibility() && node.getBoundingClientRect().height < 36).map((node) => node.outerHTML));
  assert.deepEqual(small, [], "too small for a finger");
}
