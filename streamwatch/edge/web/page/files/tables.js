// Small tables with a heading; the first cell of a row names it.

import { element } from "./dom.js";
import { count } from "./format.js";

export function table(title, headings, rows, kind = "", nothing = "Nothing yet.") {
  const body = rows.map(([name, ...values]) =>
    element("tr", {}, element("th", { scope: "row" }, name), ...values.map((value) => element("td", { class: "number" }, value))));
  const head = element("tr", {}, ...headings.map((heading, at) => element("th", { scope: "col", class: at ? "number" : null }, heading)));
  return element(
    "section",
    { class: `panel ${kind}` },
    element("h2", {}, title),
    rows.length
      ? element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title },
        element("table", { class: headings.length > 2 ? "plain" : "plain pairs" }, headings.length > 2 ? element("thead", {}, head) : null, element("tbody", {}, ...body)))
      : element("p", { class: "empty" }, nothing),
  );
}

// With several drift_weightings a value is a tree by name.
export function weighted(value) {
  if (value === undefined) return [];
  return typeof value === "object" ? Object.entries(value).map(([name, below]) => [` (${name})`, below]) : [["", value]];
}

// Faded counts, a row per true class; kept of models with few classes only.
export function confusion(matrix) {
  if (matrix === undefined) return [];
  const rows = matrix.counts.map((counts, at) => [matrix.classes[at], ...counts.map(count)]);
  return [table(`Confusion (${matrix.forgetting})`, ["true ↓ predicted →", ...matrix.classes], rows, "wide")];
}
