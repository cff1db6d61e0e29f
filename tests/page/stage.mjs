// SPDX-License-Identifier: Apache-2.0
// stage: the page as a scenario uses it, and what it complains of.
import assert from "node:assert/strict";
import { join } from "node:path";

export class Stage {
  constructor(browser, { url, screenshots, slow }) {
    Object.assign(this, { browser, url, screenshots });
    this.patience_ms = 20000 * slow;
    this.contexts = [];
    this.complaints = [];
    this.heard = []; // what any frame wrote to the console
    this.allowed = /^$/; // complaints that a scenario is about
  }

  async close() {
    await Promise.all(this.contexts.map((context) => context.close()));
  }

  // The page in a tab of its own, ready to be used.
  async open({ width = 1280, height = 800, dark = false, phone = false, ready = true } = {}) {
    const context = await this.browser.newContext({
      viewport: { width, height }, colorScheme: dark ? "dark" : "light",
      hasTouch: phone, isMobile: phone, acceptDownloads: true,
    });
    this.contexts.push(context);
    context.setDefaultTimeout(this.patience_ms);
    const page = this.page = await context.newPage();
    page.on("pageerror", (error) => this.complaints.push(`error: ${error.stack}`));
    page.on("console", (message) => {
      this.heard.push(message.text());
      // A guest's frame may be refused what it asks for: that is what its policy is for.
      if (message.type() === "error" && /Content Security Policy|Trusted/.test(message.text()) && message.location().url !== "about:srcdoc" && !this.allowed.test(message.text()))
        this.complaints.push(`${message.location().url}: ${message.text()}`);
    });
    await page.goto(this.url);
    if (ready)
      await page.locator("#verdict.allow, #verdict.block").waitFor();
    return page;
  }

  expectNoComplaints() {
    assert.deepEqual(this.complaints, []);
  }

  async screenshot(name, options = {}) {
    if (this.page)
      await this.page.screenshot({ path: join(this.screenshots, `${name}.png`), ...options });
  }

  // The text of the editor becomes another, as by a user who types over it.
  async type(code) {
    await this.page.locator("#editor .cm-content").focus();
    await this.page.keyboard.press("ControlOrMeta+a");
    await this.page.keyboard.press("Delete");
    await this.page.keyboard.insertText(code);
  }

  editorText() {
    return this.page.locator("#editor .cm-line").allTextContents().then((lines) => lines.join("\n"));
  }

  async start(code) {
    if (code !== undefined)
      await this.type(code);
    await this.page.keyboard.press("Control+Enter");
    await this.page.locator("#status .badge.busy").waitFor();
  }

  // Until no run goes on; its status in words.
  async ended() {
    await this.page.locator("#run:enabled").waitFor();
    return (await this.page.locator("#status .badge").textContent()).replace(/^\S+ /, "");
  }

  // The status of a run; a fast one is over before it can be seen to run.
  async run(code) {
    const runs = await this.page.locator("#status").getAttribute("data-runs");
    if (code !== undefined)
      await this.type(code);
    await this.page.keyboard.press("Control+Enter");
    await this.page.waitForFunction((before) => document.getElementById("status").dataset.runs !== before, runs);
    return this.ended();
  }

  // What stands on the output panel.
  output() {
    return this.page.locator("#output").innerText();
  }

  async expectOutput(pattern) {
    await this.page.waitForFunction(([source, flags]) => new RegExp(source, flags).test(document.getElementById("output").innerText),
      [pattern.source, pattern.flags]);
  }

  // The document in which the n-th piece of a guest's markup is.
  guest(n = 0) {
    return this.page.locator("#output iframe.guest").nth(n).contentFrame().locator("iframe").contentFrame();
  }

  async choosePolicy(name) {
    const options = this.page.locator(".options summary");
    await options.click();
    await this.page.locator("#policy").selectOption(name);
    await options.click();
  }

  // A run of the history by its number.
  node(number) {
    return this.page.locator("#tree [role=treeitem] > .label", { has: this.page.locator(".number", { hasText: new RegExp(`^${number}$`) }) });
  }

  action(name) {
    return this.page.locator("#node").getByRole("button", { name });
  }
}
