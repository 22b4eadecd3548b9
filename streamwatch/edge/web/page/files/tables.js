// Small tables with a heading; the first cell of a row names it.

import { element } from "./dom.js";
import { both, count, percent } from "./format.js";

// Numbers are aligned to the right, sentences (`words`) to the left.
const kindOf = (value) => (value?.className === "words" ? "words" : "number");

// Without headings, the rows are names with their values.
export function table(title, headings, rows, kind = "", nothing = "Nothing yet.") {
  const body = rows.map(([name, ...values]) =>
    element("tr", {}, element("th", { scope: "row" }, name), ...values.map((value) => element("td", { class: kindOf(value) }, value))));
  const head = element("tr", {}, ...headings.map((heading, at) => element("th", { scope: "col", class: at ? kindOf(rows[0]?.[at]) : null }, heading)));
  return element(
    "section",
    { class: `panel ${kind}` },
    element("h2", {}, title),
    rows.length
      ? element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title },
        element("table", { class: headings.length ? "plain" : "plain pairs" }, headings.length ? element("thead", {}, head) : null, element("tbody", {}, ...body)))
      : element("p", { class: "empty" }, nothing),
  );
}

// With several drift-weighted accuracies (monitors.drift_weighted), a value is an object by their names.
export function weighted(value) {
  if (value === undefined) return [];
  return typeof value === "object" ? Object.entries(value).map(([name, below]) => [` (${name})`, below]) : [["", value]];
}

// Table of faded counts, a row per true class; only models with few classes have one.
export function confusion(matrix) {
  if (matrix === undefined) return [];
  const rows = matrix.counts.map((counts, at) => [matrix.classes[at], ...counts.map(count)]);
  return [table(`Confusion (${matrix.forgetting})`, ["true ↓ predicted →", ...matrix.classes], rows, "wide")];
}

// A table for each segment with its busiest values, those with extra errors first.
export function segments(found) {
  return Object.entries(found ?? {}).map(([name, { values, values_left_out: left }]) => {
    const risen = (value) => (value.error_now_ratio ?? 0) - (value.error_before_ratio ?? 0);
    const rows = [...values].sort((one, other) => risen(other) - risen(one)).map((value) => [
      value.value,
      count(value.outcomes),
      percent(value.traffic_ratio),
      percent(value.error_before_ratio),
      percent(value.error_now_ratio),
      percent(value.extra_errors_ratio),
    ]);
    const title = left ? `Segments by ${name} (${values.length} busiest of ${values.length + left})` : `Segments by ${name}`;
    return table(title, [name, "outcomes", "share of traffic", "overall error", "recent error", "share of extra errors"], rows, "wide");
  });
}

// Recovery after drifts: the drift under way and the last that ended, as rows of a table.

export function recovery(found) {
  const { under_way: now, last } = found ?? {};
  const rows = [];
  if (now) rows.push(["recovering", `since outcome ${count(now.since_outcome)} (alarm at ${both(now.alarm_timestamp_seconds)}), error now ${percent(now.error_now_ratio)}, before ${percent(now.error_before_ratio)}`]);
  if (last) rows.push(["last drift", `error rose by ${percent(last.depth)}, ${backAfter(last.outcomes)}`]);
  return rows;
}

function backAfter(outcomes) {
  if (outcomes === null) return "not back";
  return outcomes ? `back after ${count(outcomes)} outcomes` : "within its bound";
}
