// SPDX-License-Identifier: Apache-2.0
// Markup of a guest runs no script, asks nobody for anything and does not reach the page.
// The control: the same markup, in a document without our frame, does all of it.
import assert from "node:assert/strict";
import { createServer } from "node:http";

const markup = (canary, how) => `
<script>console.log("${how} script"); try { top.document.title = "owned"; } catch {}</script>
<img src="${canary}/${how}-image" onerror='console.log("${how} handler")'>
<svg xmlns="http://www.w3.org/2000/svg" onload='console.log("${how} svg")'><script>console.log("${how} svg script")</script>
  <image href="${canary}/${how}-svg-image" width="9" height="9"/></svg>
<iframe srcdoc="<script>console.log('${how} frame')</script>"></iframe>
<style>@import url("${canary}/${how}-import"); body { background: url("${canary}/${how}-background") }</style>
<link rel="stylesheet" href="${canary}/${how}-link">
<video src="${canary}/${how}-video" autoplay></video>
<object data="${canary}/${how}-object"></object>
<form action="${canary}/${how}-form" method="get"><button id="send">send</button></form>
<a id="top" href="${canary}/${how}-top" target="_top">top</a>
<a id="popup" href="${canary}/${how}-popup" target="_blank">popup</a>
<a id="self" href="${canary}/${how}-self">self</a>
<a id="js" href="javascript:console.log('${how} link')">js</a>
<input autofocus onfocus='console.log("${how} focus")'>`;
const refresh = (canary, how) => `<meta http-equiv="refresh" content="0;url=${canary}/${how}-refresh"><p>refresh</p>`;
// The last is refused by another document than the others, and leaves its frame empty.
const links = ["#send", "#top", "#popup", "#js", "#self"];

export default async function (stage) {
  const asked = [];
  const server = createServer((request, response) => {
    asked.push(request.url);
    response.end("canary");
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const canary = `http://127.0.0.1:${server.address().port}`;
  const got = (how) => [...stage.heard.filter((text) => text.startsWith(how)), ...asked.filter((path) => path.startsWith(`/${how}`))];
  try {
    // The browser says so when a guest's link was refused.
    stage.allowed = new RegExp(`Framing '${canary}|Running the JavaScript URL`);
    await control(stage, canary, got);
    const page = await stage.open();
    const title = await page.title(), popups = [];
    page.on("popup", (popup) => popups.push(popup.url()));
    for (const how of ["html", "svg"]) {
      const text = how === "svg" ? `<svg xmlns="http://www.w3.org/2000/svg" width="300" height="200"><foreignObject width="300" height="200">${markup(canary, how)}</foreignObject></svg>` : markup(canary, how);
      assert.equal(await stage.run(`class Shown:\n    def _repr_${how}_(self):\n        return ${JSON.stringify(text)}\nShown()`), "ok");
      for (const link of links) {
        await stage.guest().locator(link).dispatchEvent("click");
        await page.waitForTimeout(30);
      }
    }
    assert.equal(await stage.run(`class Shown:\n    def _repr_html_(self):\n        return ${JSON.stringify(refresh(canary, "html"))}\nShown()`), "ok");
    await stage.guest().locator("p").waitFor();
    await page.waitForTimeout(300);
    // Text is text, whatever it looks like.
    assert.equal(await stage.run(`print(${JSON.stringify(markup(canary, "text"))})\nraise ValueError(${JSON.stringify(markup(canary, "text"))})`), "error");
    await stage.expectOutput(/<script>console.log\("text script"\)/);
    assert.equal(await page.locator("#output script, #output form, #output a").count(), 0);

    assert.deepEqual(["html", "svg", "text"].flatMap(got), []);
    assert.equal(await page.title(), title);
    assert.equal(new URL(page.url()).origin, new URL(stage.url).origin);
    assert.deepEqual(popups, []);
    await stage.screenshot("hostile");
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

async function control(stage, canary, got) {
  const page = await (await stage.context()).newPage();
  page.on("console", (message) => stage.heard.push(message.text()));
  await page.setContent(markup(canary, "control"), { waitUntil: "load" });
  await page.evaluate(() => document.querySelector("#js").click());
  await page.setContent(refresh(canary, "control"));
  await page.waitForURL(/control-refresh/);
  const done = got("control").join("\n");
  for (const way of ["script", "handler", "svg", "svg script", "frame", "focus", "link"])
    assert.match(done, new RegExp(`^control ${way}$`, "m"), `the control does not show: ${way}`);
  for (const way of ["image", "svg-image", "import", "background", "link", "video", "object", "refresh"])
    assert.match(done, new RegExp(`^/control-${way}$`, "m"), `the control does not ask for: ${way}`);
}
