// SPDX-License-Identifier: Apache-2.0
// guest: shows HTML or SVG that came from a guest.
//
// Theory of operation. Markup of a guest may carry anything: scripts, handlers, links, styles
// that cover the page, requests that tell somebody that it was read. It is shown in an
// <iframe sandbox="" srcdoc>: an origin of its own, no script, no form, no popup, no
// navigation of the page. Such a frame inherits the policy of the document that makes it,
// and tables need their <style>; the page itself does without. So there is one more document
// in between, this one, which has nothing but that frame, and a policy of its own: style may
// be inline, and nothing is loaded but what stands in the markup as data:. A second policy
// inside the frame takes away what this document needs for itself (script-src 'self').
//
// Such a frame can tell nobody how tall it is, so its height is estimated from a copy of the
// markup that is parsed but never shown, and the user may pull it larger.
const INSIDE = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:";
const LINE_PX = 22, ROW_PX = 27, TALLEST_PX = 460, SMALLEST_PX = 44;
const LOOKS = `
:root { color-scheme: SCHEME; font: 13px/1.5 system-ui, sans-serif; }
body { margin: 6px 8px; background: light-dark(#fff, #15191e); }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
table, th, td { border: 0 solid light-dark(#dfe3e8, #343b44); }
th, td { padding: 3px 10px; text-align: right; border-bottom-width: 1px; white-space: nowrap; }
thead th { border-bottom-width: 2px; }
tbody tr:hover { background: light-dark(#eef3fb, #242c37); }
img, svg { max-width: 100%; height: auto; }`;

// The one place of the page that makes a document of text, where browsers can hold us to it.
const markup = globalThis.trustedTypes?.createPolicy("guest", { createHTML: (text) => text }) ?? { createHTML: (text) => text };

// Pixels that a length of SVG says, or 0.
function pixels(text) {
  const [, number, unit] = /^([\d.]+)(px|pt|in|)$/.exec(text ?? "") ?? [];
  return number ? Number(number) * { px: 1, "": 1, pt: 4 / 3, in: 96 }[unit] : 0;
}

function pictureHeight(svg, width) {
  const [, , boxWidth, boxHeight] = (svg.getAttribute("viewBox") ?? "").split(/[\s,]+/).map(Number);
  const own = pixels(svg.getAttribute("width")) || boxWidth || 300;
  const tall = pixels(svg.getAttribute("height")) || (boxWidth ? own * boxHeight / boxWidth : 150);
  return tall * Math.min(1, width / own);
}

function estimate(text, width) {
  const parsed = new DOMParser().parseFromString(markup.createHTML(text), "text/html");
  parsed.querySelectorAll("style, script, title").forEach((node) => node.remove());
  let height = 20;
  for (const svg of parsed.querySelectorAll("svg")) {
    height += pictureHeight(svg, width);
    svg.remove();
  }
  for (const table of parsed.querySelectorAll("table")) {
    height += ROW_PX * table.querySelectorAll("tr").length + 8;
    table.remove();
  }
  height += 150 * parsed.querySelectorAll("img").length;
  const lines = parsed.body.textContent.split("\n").length + parsed.querySelectorAll("p, div, li, h1, h2, h3, br").length;
  const characters = parsed.body.textContent.replace(/\s+/g, " ").trim().length;
  return height + LINE_PX * Math.max(Math.min(lines, characters), Math.ceil(characters * 7 / width));
}

addEventListener("message", ({ source, origin, data }) => {
  if (source !== parent || origin !== location.origin)
    return;
  const frame = document.querySelector("iframe");
  const head = `<!doctype html><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="${INSIDE}"><style>${LOOKS.replace("SCHEME", data.dark ? "dark" : "light")}</style>`;
  frame.srcdoc = markup.createHTML(head + data.markup);
  if (data.measure) {
    const height = estimate(data.markup, Math.max(innerWidth - 16, 100));
    frameElement.style.height = `${Math.round(Math.min(Math.max(height, SMALLEST_PX), TALLEST_PX))}px`;
  }
});
parent.postMessage("ready", location.origin);
