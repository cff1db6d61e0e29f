// SPDX-License-Identifier: Apache-2.0
// text: numbers, sizes and guests' text as a person reads them.

export function bytes(count) {
  for (const unit of ["B", "KiB", "MiB"]) {
    if (count < 1000)
      return `${count < 10 && unit !== "B" ? count.toFixed(1) : Math.round(count)} ${unit}`;
    count /= 1024;
  }
  return `${count.toFixed(1)} GiB`;
}

export function milliseconds(value) {
  if (value < 10)
    return `${value.toFixed(value < 1 ? 2 : 1)} ms`;
  return value < 10000 ? `${Math.round(value)} ms` : `${(value / 1000).toFixed(1)} s`;
}

export function plural(count, word) {
  return `${count} ${word}${count === 1 ? "" : "s"}`;
}

// What stands for a piece of code where one line must do.
export function firstLine(code) {
  const lines = code.split("\n").map((line) => line.trim());
  return lines.find((line) => line && !line.startsWith("#")) ?? lines.find((line) => line) ?? "(empty)";
}

// Colours and cursor movements of a terminal: what they mean elsewhere is nothing here.
const ESCAPES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\-_])/g;
export const withoutEscapes = (text) => text.replace(ESCAPES, "");

// A carriage return begins the line again, as progress bars need it.
export function overtyped(text) {
  return text.replace(/\r+\n/g, "\n").replace(/[^\n]*\r/g, "");
}

// The place of a finding or frame, which count code points, in a line of UTF-16.
export function columnToOffset(line, column) {
  let offset = 0;
  for (let passed = 1; passed < column && offset < line.length; passed++)
    offset += line.codePointAt(offset) > 0xffff ? 2 : 1;
  return offset;
}

export function base64ToBytes(text) {
  const raw = atob(text);
  return Uint8Array.from(raw, (character) => character.charCodeAt(0));
}
