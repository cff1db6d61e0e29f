// SPDX-License-Identifier: Apache-2.0
// theme: light, dark, or as the system has it. Not a module: it runs before the page is
// painted, so that a dark page never flashes white.
(() => {
  const NEXT = { auto: "light", light: "dark", dark: "auto" };
  const SAID = {
    auto: ["Auto", "Colours: as the system has them"],
    light: ["Light", "Colours: light"],
    dark: ["Dark", "Colours: dark"],
  };
  const root = document.documentElement;

  function apply(theme) {
    if (theme === "auto")
      delete root.dataset.theme;
    else
      root.dataset.theme = theme;
    localStorage.setItem("execpy.theme", theme);
    const button = document.getElementById("theme");
    if (button) {
      [button.textContent, button.ariaLabel] = SAID[theme];
      button.title = button.ariaLabel;
    }
    document.dispatchEvent(new Event("theme"));
  }

  let theme = localStorage.getItem("execpy.theme");
  theme = theme in NEXT ? theme : "auto";
  apply(theme);
  document.addEventListener("DOMContentLoaded", () => {
    apply(theme);
    document.getElementById("theme").addEventListener("click", () => {
      theme = NEXT[theme];
      apply(theme);
    });
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => document.dispatchEvent(new Event("theme")));
})();
