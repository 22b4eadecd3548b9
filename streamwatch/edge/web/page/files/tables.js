// A small table with a heading; the first cell of a row names it.

import { element } from "./dom.js";

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
