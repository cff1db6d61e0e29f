// SPDX-License-Identifier: Apache-2.0
// driver: plays scenarios in one browser, for test_page.py. It reads an order a line,
// {scenario, url, screenshots, …}, and answers each with {passed, said}.
//
// A scenario is a file in scenarios/: its default export gets a Stage. Whatever it does, it
// fails when the page complained: an uncaught error, or a violation of its own policy.
import { createInterface } from "node:readline";
import { chromium } from "./playwright.mjs";
import { Stage } from "./stage.mjs";

const browser = await chromium.launch({
  executablePath: process.env.EXECPY_BROWSER ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"],
});

// Scenarios are tabs of one profile, so the page's scripts are compiled once.
const profile = await browser.newContext({ acceptDownloads: true, reducedMotion: "reduce" });

async function play(order) {
  const stage = new Stage(browser, profile, order);
  try {
    const { default: scenario } = await import(`./scenarios/${order.scenario}.mjs`);
    await scenario(stage, order);
    stage.expectNoComplaints();
    return { passed: true, said: "" };
  } catch (error) {
    await stage.screenshot(`failed-${order.scenario}`).catch(() => {});
    return { passed: false, said: `${error.stack ?? error}\ncomplaints: ${stage.complaints.join("\n")}` };
  } finally {
    await stage.close();
  }
}

for await (const line of createInterface({ input: process.stdin }))
  process.stdout.write(`${JSON.stringify(await play(JSON.parse(line)))}\n`);
await browser.close();
