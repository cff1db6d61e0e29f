// SPDX-License-Identifier: Apache-2.0
// bundle: a MIME bundle (docs/notebooks.md) as something to look at. Pictures are decoded by
// the browser from data: addresses; HTML and SVG go into a frame (guest.js); everything else
// is text.
import { button, element, save } from "./dom.js";
import { base64ToBytes } from "./text.js";

// The richest first. Formulas and Markdown are shown as text, which they are readable as.
const ORDER = ["image/png", "image/jpeg", "image/svg+xml", "text/html", "text/markdown", "application/json", "text/plain"];
const PICTURES = { "image/png": "png", "image/jpeg": "jpg" };
const MARKUP = { "text/html": "html", "image/svg+xml": "svg" };

const dark = () => {
  const { theme } = document.documentElement.dataset;
  return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};

function frame(type, markup, name) {
  const node = element("iframe", { class: `guest ${MARKUP[type]}`, title: name, src: "page/guest.html" });
  const show = (measure) => node.contentWindow?.postMessage(
    { markup, measure, dark: dark() && type === "text/html" }, location.origin);
  const listen = (event) => {
    if (event.source === node.contentWindow && event.data === "ready")
      show(true);
  };
  const again = () => {
    if (node.isConnected)
      show(false);
    else
      stop();
  };
  const stop = () => {
    removeEventListener("message", listen);
    document.removeEventListener("theme", again);
  };
  addEventListener("message", listen);
  document.addEventListener("theme", again);
  return node;
}

function picture(type, content, name) {
  return element("img", { class: "picture", alt: name, src: `data:${type};base64,${content}` });
}

const plain = (content) => element("pre", {}, typeof content === "string" ? content : JSON.stringify(content, null, 2));

function show(type, content, name) {
  if (type in PICTURES)
    return picture(type, content, name);
  return type in MARKUP ? frame(type, content, name) : plain(content);
}

// A figure with the richest form, and with buttons for saving it and for its text.
export function bundleNode(bundle, label) {
  const type = ORDER.find((known) => known in bundle) ?? Object.keys(bundle)[0];
  const name = `${label}: ${bundle["text/plain"] ?? type}`.slice(0, 200);
  const tools = element("span", { class: "figure-tools" });
  const figure = element("figure", { class: "bundle" }, element("figcaption", {}, element("span", {}, label), tools), show(type, bundle[type], name));
  if (type in PICTURES)
    tools.append(button("Save", () => save(new Blob([base64ToBytes(bundle[type])], { type }), `${label.replaceAll(" ", "-")}.${PICTURES[type]}`)));
  if (type in MARKUP)
    tools.append(button("Save", () => save(new Blob([bundle[type]], { type }), `${label.replaceAll(" ", "-")}.${MARKUP[type]}`)));
  if (type !== "text/plain" && "text/plain" in bundle) {
    const toggle = button("As text", () => {
      const text = toggle.getAttribute("aria-pressed") !== "true";
      toggle.setAttribute("aria-pressed", text);
      figure.lastChild.replaceWith(text ? plain(bundle["text/plain"]) : show(type, bundle[type], name));
    }, { "aria-pressed": "false" });
    tools.append(toggle);
  }
  return figure;
}
