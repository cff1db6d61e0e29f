// SPDX-License-Identifier: Apache-2.0
// key: the API key, which lives in this tab only, and the field in which it is typed.
import { byId } from "./dom.js";

const NAME = "execpy.key";
let asking = null;

export const key = () => sessionStorage.getItem(NAME);

function show(why) {
  byId("key-why").textContent = why;
  byId("key").value = key() ?? "";
  const dialog = byId("key-dialog");
  dialog.returnValue = "cancel";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      const typed = byId("key").value.trim();
      byId("key").value = "";
      if (dialog.returnValue === "forget")
        sessionStorage.removeItem(NAME);
      else if (dialog.returnValue === "use" && typed)
        sessionStorage.setItem(NAME, typed);
      resolve(dialog.returnValue === "use" && typed !== "");
    }, { once: true });
  });
}

// True when there is a key to try. Many requests may be refused at once: one question.
export function askForKey(again) {
  asking ??= show(again && key() ? "The daemon does not know this key." : "This daemon asks for a key. It is kept in this tab only, until the tab is closed.")
    .finally(() => { asking = null; });
  return asking;
}

export function watchKeyButton() {
  byId("key-open").addEventListener("click", () => {
    asking ??= show("Sent with every request of this page. It is kept in this tab only, until the tab is closed.").finally(() => { asking = null; });
  });
  // Enter in the field is "Use", not the form's first button.
  byId("key").addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      byId("key-dialog").close("use");
    }
  });
}
