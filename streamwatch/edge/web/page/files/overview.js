// All models at a glance: one keyed row each; only what changed is written.

import { against } from "./alarms.js";
import { Bullet, floorOf } from "./bullet.js";
import { caveatsOf } from "./caveats.js";
import { arrange, byId, element, mark, say } from "./dom.js";
import { ago, both, count, duration, moment, percent, ratio, when } from "./format.js";
import { state } from "./state.js";

export const VERDICTS = {
  worse: { text: "Worse", title: "Currently worse than" },
  open: { text: "Open", title: "Not shown to be better or worse than" },
  better: { text: "Better", title: "Currently better than" },
};
export const opponentOf = (row) =>
  against({ verdict: row.verdict, opponent: row.verdict_opponent, basis: row.verdict_opponent === undefined ? "labels" : "cohorts" });
function titleOf(row) {
  const title = `${VERDICTS[row.verdict].title} ${opponentOf(row)}`;
  if (row.verdict_age_seconds === undefined) return title;
  return `${title}, by the labels that predictions have at an age of ${duration(row.verdict_age_seconds)}`;
}
// In the order in which models need a look; the server says which of them holds.
const TROUBLES = ["worse", "incident", "warning", "open", "better"];
const PAGE = 300;
const WARNINGS = 5;
const SLICE = 60; // rows written in one frame: with hundreds of models none takes long

const COLUMNS = [
  { key: "model", title: "Model", sort: (_, name) => namesInOrder().get(name) },
  { key: "verdict", title: "Better than no change?", hint: "Is the model currently better than predicting the last label known, and than the most frequent class?", sort: (r) => TROUBLES.indexOf(r.trouble) },
  { key: "accuracy", title: "Accuracy", hint: "Accuracy with the forgetting named below the table, and bounds of the true accuracy", number: true },
  { key: "persistent", title: "Persistent", hint: "Accuracy of no change: predicting the previous label", number: true, text: (r) => percent(r.persistent) },
  { key: "majority", title: "Majority", hint: "Accuracy of always predicting the most frequent class", number: true, text: (r) => percent(r.majority) },
  { key: "kappa_plus", title: "κ⁺", hint: "Combined gain over chance and over the previous label; 0 unless both gains are positive", number: true, text: (r) => ratio(r.kappa_plus) },
  { key: "last_alarm_timestamp_seconds", title: "Last alarm", number: true, downFirst: true },
  { key: "delay_median_seconds", title: "Label delay", hint: "Time from prediction to label: median and 90th percentile", number: true, downFirst: true },
  { key: "pending", title: "Pending", hint: "Predictions that wait for their label", number: true, downFirst: true, text: (r) => count(r.pending) },
  { key: "outcomes", title: "Outcomes", hint: "Predictions whose label is known", number: true, downFirst: true, text: (r) => count(r.outcomes) },
];

class Row {
  constructor(name) {
    this.name = name;
    this.cells = {};
    this.node = element("tr", { role: "row" });
    for (const column of COLUMNS) {
      const first = column.key === "model";
      const cell = element(first ? "th" : "td", {
        role: first ? "rowheader" : "cell", scope: first && "row", class: `c-${column.key}${column.number ? " number" : ""}`, "data-title": column.title,
      });
      this.cells[column.key] = cell;
      this.node.append(cell);
    }
    this.cells.model.append(element("a", { href: `#/model/${encodeURIComponent(name)}` }, name));
    this.badge = element("span", { class: "badge" });
    this.since = element("span", { class: "minor" });
    this.changed = element("span", { class: "minor" });
    this.incident = element("span", { class: "badge incident" });
    this.caveat = element("span", { class: "minor caveat" });
    this.cells.verdict.append(element("span", { class: "stack" }, this.badge, this.since, this.changed, this.incident, this.caveat));
    this.warning = element("span", { class: "minor warned" });
    this.waiting = element("span", { class: "minor waits" });
    this.cells.model.append(this.warning, this.waiting);
    this.bullet = new Bullet();
    this.accuracy = element("span", { class: "value" });
    this.bound = element("span", { class: "minor" });
    this.cells.accuracy.append(element("span", { class: "stack" }, this.accuracy, this.bound), this.bullet.node);
    this.alarm = element("span", { class: "value" });
    this.alarms = element("span", { class: "minor" });
    this.cells.last_alarm_timestamp_seconds.append(element("span", { class: "stack" }, this.alarm, this.alarms));
    this.delay = element("span", { class: "value" });
    this.delayHigh = element("span", { class: "minor" });
    this.cells.delay_median_seconds.append(element("span", { class: "stack" }, this.delay, this.delayHigh));
  }

  update(row, floor) {
    if (row !== this.shown) {
      mark(this.badge, "data-verdict", row.waiting ? "waiting" : row.verdict);
      say(this.badge, row.waiting ? "Waiting" : VERDICTS[row.verdict].text);
      mark(this.badge, "title", row.waiting ? "No label has matched a prediction of this model yet" : titleOf(row));
      say(this.since, row.verdict === "open" || row.verdict_since_timestamp_seconds === undefined ? "" : `since ${when(row.verdict_since_timestamp_seconds)}${row.verdict_status === "early" ? ", early" : ""}`);
      mark(this.since, "title", row.verdict_since_timestamp_seconds === undefined ? null : moment(row.verdict_since_timestamp_seconds));
      say(this.changed, changeOf(row, when));
      mark(this.changed, "title", row.verdict_changed_timestamp_seconds === undefined ? null : moment(row.verdict_changed_timestamp_seconds));
      mark(this.node, "data-trouble", row.trouble);
      say(this.incident, incidentOf(row));
      mark(this.incident, "data-severity", row.incident_severity);
      mark(this.incident, "title", row.incidents ? moment(row.incident_since_timestamp_seconds) : null);
      say(this.warning, row.warning ?? "");
      say(this.waiting, row.warning ? "" : row.waiting ?? "");
      const caveats = caveatsOf(row);
      say(this.caveat, caveats.map(([text]) => text).join(", "));
      mark(this.caveat, "title", caveats.length ? caveats.map(([, meaning]) => meaning).join(" ") : null);
      say(this.accuracy, percent(row.accuracy));
      say(this.bound, row.lower === undefined ? "" : `${percent(row.lower).slice(0, -2)} – ${percent(row.upper)}`);
      for (const column of COLUMNS) if (column.text) say(this.cells[column.key], column.text(row));
      mark(this.cells.pending, "title", [
        row.joined === undefined ? null : `${percent(row.joined)} of its predictions have been matched with a label so far`,
        row.invalid === undefined ? null : `${count(row.invalid)} of its records were invalid`,
      ].filter((text) => text !== null).join("; ") || null);
      say(this.alarms, row.alarms ? `${count(row.alarms)} in all` : "");
      say(this.delay, duration(row.delay_median_seconds));
      say(this.delayHigh, row.delay_p90_seconds === undefined ? "" : `90 %: ${duration(row.delay_p90_seconds)}`);
      mark(this.cells.last_alarm_timestamp_seconds, "title", row.last_alarm_timestamp_seconds === undefined ? null : moment(row.last_alarm_timestamp_seconds));
    }
    const last = row.last_alarm_timestamp_seconds;
    say(this.alarm, last === undefined ? "none" : ago(last));
    if (row !== this.shown || floor !== this.floor) this.bullet.update(row, floor);
    this.shown = row;
    this.floor = floor;
  }
}

// Names in their order, by name; sorted anew only where models came or went.
let ordered = { of: -1, ranks: new Map() };
function namesInOrder() {
  if (ordered.of !== state.membership) {
    const names = new Intl.Collator("en", { numeric: true });
    const sorted = [...state.models.keys()].sort((a, b) => names.compare(a, b) || (a < b ? -1 : 1));
    ordered = { of: state.membership, ranks: new Map(sorted.map((name, rank) => [name, rank])) };
  }
  return ordered.ranks;
}

// A first verdict is no change that somebody would look for.
export function changeOf(row, told = both) {
  const before = row.verdict_before;
  if (before === undefined || before === "open" || before === row.verdict) return "";
  return `was ${before} until ${told(row.verdict_changed_timestamp_seconds)}`;
}

function incidentOf(row) {
  if (!row.incidents) return "";
  const since = `since ${when(row.incident_since_timestamp_seconds)}`;
  return row.incidents === 1 ? `Incident ${since}` : `${count(row.incidents)} incidents, the latest ${since}`;
}

const CHOICES = [["sort", "verdict"], ["order", null], ["filter", ""], ["page", "1"]];

export class Overview {
  constructor() {
    this.rows = new Map();
    this.floor = 0.9;
    this.buttons = COLUMNS.map((column) => this.heading(column));
    const sorter = byId("sorter");
    for (const column of COLUMNS) sorter.append(element("option", { value: column.key }, column.key === "verdict" ? "Needs attention" : column.title));
    this.changed = () => {};
    this.read("");
    byId("filter").addEventListener("input", () => {
      this.page = 0;
      this.keep();
    });
    byId("previous").addEventListener("click", () => this.turn(-1));
    byId("next").addEventListener("click", () => this.turn(1));
    sorter.addEventListener("change", () => this.choose(COLUMNS.find((column) => column.key === sorter.value)));
  }

  // What the address says after "#/?"; anything else than a choice there is the default.
  read(query) {
    const said = new URLSearchParams(query);
    this.by = COLUMNS.find((column) => column.key === said.get("sort")) ?? COLUMNS[1];
    this.down = said.has("order") ? said.get("order") === "descending" : Boolean(this.by.downFirst);
    this.page = Math.max(0, (Number.parseInt(said.get("page"), 10) || 1) - 1);
    byId("sorter").value = this.by.key;
    byId("filter").value = said.get("filter") ?? "";
    this.markSorted();
  }

  // The address that `read` understands; what is by default is left out.
  address() {
    const chosen = {
      sort: this.by.key,
      order: this.down === Boolean(this.by.downFirst) ? null : this.down ? "descending" : "ascending",
      filter: byId("filter").value.trim(),
      page: String(this.page + 1),
    };
    const said = new URLSearchParams(CHOICES.filter(([key, usual]) => chosen[key] !== usual).map(([key]) => [key, chosen[key]]));
    return said.size ? `#/?${said}` : "#/";
  }

  keep() {
    history.replaceState(null, "", this.address());
    this.changed();
  }

  choose(column, down = Boolean(column.downFirst)) {
    this.by = column;
    this.down = down;
    this.page = 0;
    byId("sorter").value = column.key;
    this.keep();
  }

  turn(pages) {
    this.page += pages;
    this.keep();
    byId("models").scrollIntoView({ block: "nearest" });
  }

  heading(column) {
    const button = element("button", { type: "button", title: column.hint }, column.title);
    button.addEventListener("click", () => this.choose(column, this.by === column ? !this.down : undefined));
    const cell = element("th", { role: "columnheader", scope: "col", class: `c-${column.key}${column.number ? " number" : ""}` }, button, element("span", { class: "heading" }, column.title));
    byId("headings").append(cell);
    return { column, cell };
  }

  markSorted() {
    for (const { column, cell } of this.buttons) {
      mark(cell, "aria-sort", column === this.by ? (this.down ? "descending" : "ascending") : null);
    }
  }

  render() {
    const wanted = byId("filter").value.trim().toLowerCase();
    const found = [...state.models].filter(([name]) => !wanted || name.toLowerCase().includes(wanted));
    this.sort(found);
    const pages = Math.max(1, Math.ceil(found.length / PAGE));
    const first = Math.min(this.page, pages - 1) * PAGE; // fewer may be found than when the address was made
    const shown = found.slice(first, first + PAGE);
    this.floor = Math.min(this.floor, floorOf(state.models.values()));
    const kept = shown.map(([name]) => this.rows.get(name) ?? new Row(name));
    this.rows = new Map(kept.map((row) => [row.name, row]));
    arrange(byId("rows"), kept.map((row) => row.node));
    cancelAnimationFrame(this.writing);
    this.write(kept, 0);
    this.markSorted();
    this.summarise(found.length, first, shown.length, wanted);
    this.warn();
  }

  // Mistakes that look like results: each in words, the first few of them.
  warn() {
    const ranks = namesInOrder();
    const warned = [...state.models].filter(([, row]) => row.warning).sort(([a], [b]) => ranks.get(a) - ranks.get(b));
    const lines = warned.slice(0, WARNINGS).map(([name, row]) => `${name}: ${row.warning}`);
    if (warned.length > WARNINGS) lines.push(`… and ${count(warned.length - WARNINGS)} more models.`);
    this.warnings ??= [];
    lines.forEach((line, index) => {
      this.warnings[index] ??= element("li");
      say(this.warnings[index], line);
    });
    arrange(byId("warnings"), this.warnings.slice(0, lines.length));
    byId("warnings").hidden = lines.length === 0;
  }

  write(rows, from) {
    for (const row of rows.slice(from, from + SLICE)) row.update(state.models.get(row.name) ?? row.shown, this.floor);
    if (from + SLICE < rows.length) this.writing = requestAnimationFrame(() => this.write(rows, from + SLICE));
  }

  sort(found) {
    const value = this.by.sort ?? ((row) => row[this.by.key]);
    const sign = this.down ? -1 : 1;
    const ranks = namesInOrder();
    const values = new Map(found.map(([name, row]) => [name, value(row, name)]));
    found.sort(([a], [b]) => {
      const [x, y] = [values.get(a), values.get(b)];
      const byName = ranks.get(a) - ranks.get(b);
      if (x === undefined || y === undefined) return (x === undefined) - (y === undefined) || byName;
      return (x - y) * sign || byName;
    });
  }

  summarise(found, first, shown, wanted) {
    const verdicts = { better: 0, open: 0, worse: 0 };
    let [incidents, warned] = [0, 0];
    for (const row of state.models.values()) {
      verdicts[row.verdict] += 1;
      incidents += row.incidents ? 1 : 0;
      warned += row.warning ? 1 : 0;
    }
    const all = state.models.size;
    const told = [
      `${count(all)} watched`, `${count(verdicts.better)} better than no change`, `${count(verdicts.open)} open`, `${count(verdicts.worse)} worse`,
      incidents ? `${count(incidents)} with an open incident` : null, warned ? `${count(warned)} with a warning` : null,
    ];
    say(byId("summary"), all === 0 ? "" : told.filter((text) => text !== null).join(" · "));
    byId("models").hidden = all === 0;
    byId("rule").hidden = all === 0;
    const empty = byId("no-models");
    const nothing = all === 0 ? waitingFor() : `No model's name contains “${wanted}”.`;
    empty.hidden = all > 0 && (!wanted || this.rowsShown() > 0);
    say(empty, nothing);
    byId("pager").hidden = found <= PAGE;
    say(byId("pager-text"), `${count(first + 1)} to ${count(first + shown)} of ${count(found)}`);
    byId("previous").disabled = first === 0;
    byId("next").disabled = first + shown >= found;
    say(byId("forgetting"), state.forgetting ?? "–");
  }

  // Where somebody comes back from.
  focus(name) {
    (this.rows.get(name)?.node.querySelector("a") ?? byId("content")).focus();
  }

  worse() {
    return [...state.models.values()].filter((row) => row.verdict === "worse").length;
  }

  rowsShown() {
    return byId("rows").childElementCount;
  }
}

function waitingFor() {
  const facts = state.health?.stream;
  if (state.health && !state.health.ready) return `Not ready yet: ${state.health.reasons.join("; ")}. Models appear here with their first predictions.`;
  const accepted = facts?.predictions_accepted_total ?? 0;
  if (accepted > 0) return `Waiting for the first report… ${count(accepted)} predictions have arrived.`;
  return "Waiting for the first predictions… Nothing has been read from the prediction topics so far. Each model appears here with its first prediction.";
}
