// A row for the models whose names begin alike: their number, and how many need attention.

import { element } from "./dom.js";
import { count } from "./format.js";

const BADGES = [ // what is counted, its label, the colour of a verdict
  ["worse", "worse than no change", "worse"], ["incident", "with an open incident", "open"], ["warning", "with a warning", "worse"],
  ["open", "open", "open"], ["waiting", "without a label yet", "open"], ["better", "better", "better"],
];

export function groupItem(group, address) {
  return element(
    "li",
    {},
    element("a", { href: address }, group.prefix),
    element("span", { class: "soft" }, group.models === 1 ? "1 model" : `${count(group.models)} models`),
    ...BADGES.filter(([key]) => group[key]).map(([key, label, verdict]) => element("span", { class: "badge", "data-verdict": verdict }, `${count(group[key])} ${label}`)),
  );
}
