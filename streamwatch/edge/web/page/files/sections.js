// Choices of what is shown, which are stored: foldable sections of a page, and the switch for details.

import { byId, element, mark, say } from "./dom.js";

const KEY = "streamwatch-sections";
const left = () => new Set(JSON.parse(localStorage.getItem(KEY) ?? "[]"));

// Stores under a name whether a <details> is open.
export function remembered(node, name) {
  node.open = left().has(name);
  node.addEventListener("toggle", () => {
    const open = left();
    if (node.open) open.add(name);
    else open.delete(name);
    localStorage.setItem(KEY, JSON.stringify([...open].sort()));
  });
  return node;
}

export class Section {
  constructor(name, title, kind) {
    this.about = element("span", { class: "soft" });
    this.body = element("div", { class: kind });
    this.node = remembered(element("details", { class: "fold" }, element("summary", {}, element("h2", {}, title), this.about), this.body), name);
  }

  // Sets the summary, which is also shown while folded; hides an empty section.
  fill(nodes, about = "") {
    this.node.hidden = nodes.length === 0;
    say(this.about, about);
    this.body.replaceChildren(...nodes);
  }
}

// The switch that shows expert details; its position is stored.

const DETAILS = "streamwatch-details";

export const detailed = () => localStorage.getItem(DETAILS) === "on";

function show() {
  document.documentElement.toggleAttribute("data-details", detailed());
  mark(byId("details"), "aria-pressed", String(detailed()));
}

export function switchDetails(changed) {
  show();
  byId("details").addEventListener("click", () => {
    localStorage.setItem(DETAILS, detailed() ? "off" : "on");
    show();
    changed();
  });
}
