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
// Such a frame can tell nobody how tall it is, so its height is estimated from the text of
// the markup, which is parsed nowhere else, and the user may pull it larger.
const INSIDE = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:";
const LINE_PX = 22, ROW_PX = 27, TALLEST_PX = 460, SMALLEST_PX = 44, IMAGE_PX = 150;
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

// Pixels that an attribute of SVG's says, or 0.
function pixels(tag, name) {
  const [, number, unit] = new RegExp(`\\s${name}\\s*=\\s*["']?([\\d.]+)(px|pt|in|)["'\\s>]`, "i").exec(tag) ?? [];
  return number ? Number(number) * { px: 1, "": 1, pt: 4 / 3, in: 96 }[unit.toLowerCase()] : 0;
}

function pictureHeight(tag, width) {
  const [, wide, high] = /viewBox\s*=\s*["']?[\s\d.,-]*?([\d.]+)[\s,]+([\d.]+)\s*["'>]/i.exec(tag) ?? [];
  const own = pixels(tag, "width") || Number(wide) || 300;
  const tall = pixels(tag, "height") || (wide ? own * high / wide : 150);
  return tall * Math.min(1, width / own);
}

const count = (text, pattern) => text.match(pattern)?.length ?? 0;

function estimate(text, width) {
  const shown = text.replace(/<(style|script|title)\b[\s\S]*?<\/\1\s*>|<!--[\s\S]*?-->/gi, "");
  const rest = shown.replace(/<table\b[\s\S]*?<\/table\s*>|<svg\b[\s\S]*?<\/svg\s*>/gi, "");
  const characters = rest.replace(/<[^>]*>/g, "").replace(/\s+/g, " ").trim().length;
  const lines = characters ? 1 + count(rest, /<(p|div|li|h\d|br|pre)\b|\n/gi) : 0;
  return 20 + ROW_PX * count(shown, /<tr\b/gi) + 8 * count(shown, /<table\b/gi) + IMAGE_PX * count(shown, /<img\b/gi) +
    LINE_PX * Math.max(Math.min(lines, characters), Math.ceil(characters * 7 / width)) +
    (shown.match(/<svg\b[^>]*>/gi) ?? []).reduce((sum, tag) => sum + pictureHeight(tag, width), 0);
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
