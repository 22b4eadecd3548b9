// Rows of the list of models: of one model, and of the models whose names begin alike.

import { caveatsOf } from "./caveats.js";
import { element, mark, say } from "./dom.js";
import { ago, count, delayOf, moment, percent, ratio, when } from "./format.js";
import { Sparkline } from "./sparkline.js";
import { changeOf, meaningOf, sinceOf, stateOf, wordsOf } from "./verdict.js";

// key: class of the cells; sort: the server's sort key; columns with `detail` are shown with details only.
export const COLUMNS = [
  { key: "model", sort: "model", title: "Model" },
  { key: "verdict", sort: "attention", title: "Better than no change?", hint: "Is the model currently right more often than the last known label, and than the most frequent class? Of a model that is judged by costs: does it cost less than both?" },
  { key: "accuracy", sort: "accuracy", title: "Accuracy", hint: "How often the model is right, lately and over the last hours" },
  { key: "no-change", sort: "no_change", title: "No change", hint: "How often the last label known at the prediction would be right; until a verdict by prediction time is there, the previous label", number: true, text: (r) => percent(r.no_change) },
  { key: "majority", sort: "majority", title: "Most frequent", hint: "How often the most frequent class would be right", number: true, text: (r) => percent(r.majority) },
  { key: "last-prediction", sort: "last_prediction", title: "Last prediction", number: true, at: "last_prediction_timestamp_seconds" },
  { key: "last-label", sort: "last_label", title: "Last label", number: true, at: "last_label_timestamp_seconds" },
  { key: "kappa_plus", sort: "kappa_plus", title: "κ⁺", hint: "Combined gain over chance and over the previous label; 0 unless both gains are positive", number: true, detail: true, text: (r) => ratio(r.kappa_plus) },
  { key: "last-alarm", sort: "last_alarm", title: "Last alarm", number: true, detail: true, at: "last_alarm_timestamp_seconds", nothing: "none" },
  { key: "delay", sort: "delay", title: "Label delay", hint: "Time from prediction to label that half of the labels do not exceed, and 90 % of them", number: true, detail: true, text: (r) => delayOf(r, "median") },
  { key: "pending", sort: "pending", title: "Pending", hint: "Predictions that wait for their label", number: true, detail: true, text: (r) => count(r.pending) },
  { key: "outcomes", sort: "outcomes", title: "Outcomes", hint: "Predictions whose label is known", number: true, detail: true, text: (r) => count(r.outcomes) },
];

const classOf = ({ key, number, detail }) => `c-${key}${number ? " number" : ""}${detail ? " detail" : ""}`;

// A heading with a button that sorts.
export function heading(column, chosen) {
  const button = element("button", { type: "button", title: column.hint }, column.title);
  button.addEventListener("click", () => chosen(column));
  return element("th", { role: "columnheader", scope: "col", class: classOf(column) }, button, element("span", { class: "heading" }, column.title));
}

export class Row {
  constructor(name) {
    this.name = name;
    this.cells = {};
    this.node = element("tr", { role: "row" });
    for (const column of COLUMNS) {
      const first = column.key === "model";
      const cell = element(first ? "th" : "td", { role: first ? "rowheader" : "cell", scope: first && "row", class: classOf(column), "data-title": column.title });
      cell.append(first ? element("a", { href: `#/model/${encodeURIComponent(name)}` }, name) : element("span", { class: "value" }));
      this.cells[column.key] = cell;
      this.node.append(cell);
    }
    this.lines = Object.fromEntries(["labels", "since", "changed", "caveat", "warned", "waits", "bound", "raised", "late"].map((kind) => [kind, element("span", { class: `minor ${kind}` })]));
    this.badge = element("span", { class: "badge" });
    this.incident = element("span", { class: "badge incident" });
    this.cells.verdict.replaceChildren(element("span", { class: "stack" }, this.badge, this.lines.since, this.lines.changed, this.incident, this.lines.caveat));
    this.cells.model.append(this.lines.labels, this.lines.warned, this.lines.waits);
    this.sparkline = new Sparkline();
    this.lines.bound.classList.add("detail");
    this.cells.accuracy.append(this.lines.bound);
    this.cells.accuracy.replaceChildren(element("span", { class: "stack" }, ...this.cells.accuracy.childNodes), this.sparkline.node);
    this.cells["last-alarm"].append(this.lines.raised);
    this.cells.delay.append(this.lines.late);
    this.accuracy = this.cells.accuracy.querySelector(".value");
  }

  draw(times, line, floor) {
    this.sparkline.update(times, line, floor);
  }

  update(row) {
    const { lines } = this;
    mark(this.node, "data-trouble", row.trouble);
    mark(this.badge, "data-verdict", stateOf(row));
    mark(this.badge, "title", meaningOf(row));
    say(this.badge, wordsOf(row));
    this.line("since", sinceOf(row), row.verdict_since_timestamp_seconds);
    this.line("changed", changeOf(row, when), row.verdict_changed_timestamp_seconds);
    say(this.incident, incidentOf(row));
    mark(this.incident, "data-severity", row.incident_severity);
    mark(this.incident, "title", row.incidents ? moment(row.incident_since_timestamp_seconds) : null);
    const caveats = caveatsOf(row);
    say(lines.caveat, caveats.map(([text]) => text).join(", "));
    mark(lines.caveat, "title", caveats.length ? caveats.map(([, meaning]) => meaning).join(" ") : null);
    say(lines.labels, row.labels ?? "");
    say(lines.warned, row.warning ?? "");
    say(lines.waits, row.warning ? "" : row.waiting ?? "");
    say(this.accuracy, percent(row.accuracy));
    say(lines.bound, row.lower === undefined ? "" : `${percent(row.lower).slice(0, -2)} – ${percent(row.upper)}`);
    say(lines.raised, row.alarms ? `${count(row.alarms)} in all` : "");
    say(lines.late, row.delay_p90_seconds === undefined ? "" : `90 %: ${delayOf(row, "p90", "")}`);
    for (const column of COLUMNS) {
      if (column.text) say(this.cells[column.key].firstChild, column.text(row));
      if (column.at) {
        const at = row[column.at];
        say(this.cells[column.key].firstChild, at === undefined ? column.nothing ?? "–" : ago(at));
        mark(this.cells[column.key], "title", at === undefined ? null : moment(at));
      }
    }
    mark(this.cells.pending, "title", [
      row.joined === undefined ? null : `${percent(row.joined)} of its predictions have been matched with a label so far`,
      row.invalid === undefined ? null : `${count(row.invalid)} of its records were invalid`,
    ].filter((text) => text !== null).join("; ") || null);
  }

  line(kind, text, at) {
    say(this.lines[kind], text);
    mark(this.lines[kind], "title", text && at !== undefined ? moment(at) : null);
  }
}

function incidentOf(row) {
  if (!row.incidents) return "";
  const since = `since ${when(row.incident_since_timestamp_seconds)}`;
  return row.incidents === 1 ? `Incident ${since}` : `${count(row.incidents)} incidents, the latest ${since}`;
}

// A row for the models whose names begin alike: their number, and how many need attention.

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
