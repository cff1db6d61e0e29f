// SPDX-License-Identifier: Apache-2.0
// Files are put in by choosing and by dropping, read by code, fetched and deleted.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";

const bytes = Buffer.from([...Array(256).keys()]);

async function fetched(page, name) {
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: `Fetch ${name}` }).click();
  return readFile(await (await download).path());
}

export default async function (stage) {
  const page = await stage.open();
  await page.locator("#files-input").setInputFiles({ name: "with space.bin", mimeType: "application/octet-stream", buffer: bytes });
  await page.getByRole("button", { name: "Fetch with space.bin" }).waitFor();
  const transfer = await page.evaluateHandle(() => {
    const data = new DataTransfer();
    data.items.add(new File(["dropped"], "ünicode.txt"));
    return data;
  });
  await page.dispatchEvent("main", "dragover", { dataTransfer: transfer });
  assert.ok(await page.locator("#drop").isVisible());
  await page.dispatchEvent("main", "drop", { dataTransfer: transfer });
  await page.getByRole("button", { name: "Fetch ünicode.txt" }).waitFor();
  assert.ok(await page.locator("#drop").isHidden());

  assert.equal(await stage.run(`print(len(open("with space.bin", "rb").read()), open("ünicode.txt").read())
import pathlib
pathlib.Path("out").mkdir()
pathlib.Path("out/made.bin").write_bytes(bytes(range(256)) * 2)`), "ok");
  await stage.expectOutput(/256 dropped/);
  assert.deepEqual(await fetched(page, "out/made.bin"), Buffer.concat([bytes, bytes]));
  await page.getByRole("button", { name: "Delete ünicode.txt" }).click();
  await page.getByRole("button", { name: "Fetch ünicode.txt" }).waitFor({ state: "detached" });
  await stage.screenshot("files");

  await page.locator("#mode").selectOption("once");
  await page.locator("#files-empty").waitFor();
  await page.locator("#files-input").setInputFiles({ name: "in.txt", mimeType: "text/plain", buffer: Buffer.from("given") });
  assert.equal(await stage.run(`open("made.txt", "w").write(open("in.txt").read().upper())`), "ok");
  assert.equal((await fetched(page, "made.txt")).toString(), "GIVEN");
}
