// SPDX-License-Identifier: Apache-2.0
// dom: elements made from names and text, never from markup.

export const byId = (id) => document.getElementById(id);

// element("button", { type: "button", onclick }, "text", node, …). Properties that begin
// with "on" are listeners, `class` and names with a hyphen are attributes; null and false
// leave one out.
export function element(name, properties = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false)
      continue;
    if (key.startsWith("on"))
      node.addEventListener(key.slice(2), value);
    else if (key === "class" || key === "role" || key.includes("-"))
      node.setAttribute(key, value);
    else
      node[key] = value;
  }
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export const button = (text, onclick, properties = {}) => element("button", { type: "button", onclick, ...properties }, text);

let hiding = 0;
// One sentence that must be seen now, whatever the user looks at.
export function notice(text) {
  const place = byId("notice");
  place.textContent = text;
  place.hidden = false;
  clearTimeout(hiding);
  hiding = setTimeout(() => { place.hidden = true; }, 8000);
}

// Hands a blob to the user as a file.
export function save(blob, name) {
  const link = element("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}
