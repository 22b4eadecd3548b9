// The switch that shows expert details; its position is stored.

import { byId, mark } from "./dom.js";

const KEY = "streamwatch-details";

export const detailed = () => localStorage.getItem(KEY) === "on";

function show() {
  document.documentElement.toggleAttribute("data-details", detailed());
  mark(byId("details"), "aria-pressed", String(detailed()));
}

export function switchDetails(changed) {
  show();
  byId("details").addEventListener("click", () => {
    localStorage.setItem(KEY, detailed() ? "off" : "on");
    show();
    changed();
  });
}
