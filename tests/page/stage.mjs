// SPDX-License-Identifier: Apache-2.0
// stage: the page as a scenario uses it, and what it complains of.
import assert from "node:assert/strict";
import { join } from "node:path";

export class Stage {
  constructor(browser, profile, { url, screenshots, slow }) {
    Object.assign(this, { browser, profile, url, screenshots });
    this.patience_ms = 20000 * slow;
    this.opened = []; // contexts of its own, and tabs of the profile
    this.complaints = [];
    this.heard = []; // what any frame wrote to the console
    this.allowed = /^$/; // complaints that a scenario is about
  }

  async close() {
    await this.page?.evaluate(() => localStorage.clear()).catch(() => {});
    await Promise.all(this.opened.map((one) => one.close()));
  }

  // A profile of its own, say a phone's.
  async context(options) {
    const context = await this.browser.newContext(options);
    this.opened.push(context);
    return context;
  }

  // The page in a fresh tab, ready to be used.
  async open({ width = 1280, height = 800, phone = false, ready = true } = {}) {
    const viewport = { width, height };
    const context = phone ? await this.context({ viewport, hasTouch: true, isMobile: true, reducedMotion: "reduce" }) : this.profile;
    const page = this.page = await context.newPage();
    this.opened.push(page);
    page.setDefaultTimeout(this.patience_ms);
    await page.setViewportSize(viewport);
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
