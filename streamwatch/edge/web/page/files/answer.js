// First part of a model's page: its verdict in words, since when, the figures for it, and what to do.

import { caveatsOf } from "./caveats.js";
import { element, mark, say } from "./dom.js";
import { both, count, duration, moment, percent, signed } from "./format.js";
import { doctor, remedy, runbook } from "./remedies.js";
import { state } from "./state.js";
import { against, betweenOf, changeOf, meaningOf, sinceOf, stateOf, wordsOf } from "./verdict.js";

const capital = (text) => text[0].toUpperCase() + text.slice(1);

// How often the model is right, and how often its opponents would be.
function accuracyOf(row) {
  if (row.labels_sampled_ratio !== undefined) {
    return row.accuracy === undefined
      ? "No label of predictions that should have theirs has come yet."
      : `Of all predictions, ${percent(row.accuracy)} are right, as sampled labels say.`;
  }
  return `Lately it is right in ${percent(row.accuracy)}. No change, ${row.verdict_opponent === undefined ? "the previous label again" : "the last label known when a prediction was made"}, would be right in ${percent(row.no_change)}, the most frequent class in ${percent(row.majority)}.`;
}

// Bounds, effective outcomes and the mean lead, for those who read them.
function figuresOf(row) {
  const bound = row.lower === undefined ? "" : `between ${percent(row.lower)} and ${percent(row.upper)}, `;
  const sampled = row.labels_sampled_ratio !== undefined;
  const weight = `${bound}over the equivalent of ${count(row.effective_sample_size)} ${sampled ? "labels" : "recent outcomes"}`;
  const outcome = row.verdict_since_outcome === undefined ? "" : ` The verdict holds since outcome ${count(row.verdict_since_outcome)}.`;
  return `Accuracy ${percent(row.accuracy)}, ${weight}.${leadOf(row, sampled)}${outcome}`;
}

// The mean lead over the opponent, once there are enough outcomes.
function leadOf(row, sampled) {
  if (row.lead === undefined) return "";
  const whom = row.verdict_opponent === "majority" ? "the majority" : "no change";
  const between = row.lead_lower === undefined ? "" : `, between ${signed(row.lead_lower)} and ${signed(row.lead_upper)}`;
  if (sampled) return ` Mean lead over ${whom}: ${signed(row.lead)}${between}.`;
  return ` Mean lead over ${whom} since the verdict last changed: ${signed(row.lead)}${between}${between && " (valid however often you look, if losses do not depend on earlier ones)"}.`;
}

// Why a model that predicts has no outcome yet, and what to look at.
function reasonOf(row, details) {
  const { labels_accepted_total: labels, labels_joined_total: joined } = state.health?.stream ?? {};
  const ends = details.first_horizon_ends_timestamp_seconds;
  return [
    `No label has matched any prediction of this model yet; ${count(row.pending)} predictions are waiting.`,
    details.nothing_joins
      ? "Some have waited for join.early_horizon or longer. Their ids may be written differently from those of the labels, there may be no labels for them, or labels may take longer."
      : "Numbers appear here as soon as one of them is matched with its label.",
    ends === undefined ? "" : `The daemon waits for labels at least until ${moment(ends)}, which is join.horizon after the first prediction.`,
    labels === undefined ? "" : labels === 0 ? "No label of any model has been read so far: do the label topics hold records?" : `Of ${count(labels)} labels read so far, ${count(joined)} have matched a prediction of some model.`,
  ].filter((text) => text).join(" ");
}

const NOTHING = {
  better: "Nothing. This page shows when that changes, and your receivers are notified.",
  open: "Nothing yet: labels that come decide. You may look as often as you like.",
  waiting: "Wait for the first label; if labels should be there, look at the topics and at the ids on both sides.",
};

// Time that an open verdict would take, where that is known.
function foreseen(details) {
  const after = Object.values(details.cohorts?.opponents ?? {}).map((one) => one.five_points_shown_after_seconds).filter((seconds) => seconds !== undefined);
  return after.length ? ` A lead of 5 points, either way, would show after about ${duration(Math.max(...after))}.` : "";
}

function todo(row, details) {
  const found = [];
  if (row.warning !== undefined) found.push(remedy(row.warning_page));
  if (stateOf(row) === "worse") found.push(remedy(runbook(row.verdict_opponent === "majority" ? "ModelWorseThanMajority" : "ModelWorseThanPersistent")));
  if (row.incidents) found.push(remedy(runbook("DriftAlarm")));
  if (found.length) return [...found, doctor()];
  return [(NOTHING[stateOf(row)] ?? "") + (stateOf(row) === "open" ? foreseen(details) : "")];
}

// A rate in the words of notifications, such as `about 3 a month`.
function frequency(monthly) {
  for (const [number, unit] of [[monthly / 30, "day"], [monthly, "month"], [(monthly * 365) / 30, "year"]]) {
    if (number >= 0.95) return `about ${Math.round(number).toLocaleString("en")} a ${unit}`;
  }
  return "less than 1 a year";
}

const falseOnes = ({ false_alarms_expected_monthly: monthly }) => (monthly === undefined ? "" : `; false ones expected: ${frequency(monthly)}`);

function incident({ severity, started_timestamp_seconds: started, alarms }) {
  const errors = alarms.filter((alarm) => alarm.after !== undefined).map((alarm) => `error ${percent(alarm.before)} → ${percent(alarm.after)} (${alarm.detector}${alarm.status ? `, ${alarm.status}` : ""}${falseOnes(alarm)})`);
  const verdict = alarms
    .filter((alarm) => alarm.detector === "verdict")
    .map((alarm) => `worse than ${against({ ...alarm, verdict: "worse" })}${alarm.status ? ` (${alarm.status})` : ""}`);
  return `Incident (${severity}), open since ${both(started)}: ${[...verdict, ...errors].join("; ")}.`;
}

export class Answer {
  constructor() {
    this.verdict = element("p", { class: "badge large" });
    this.since = element("p", { class: "since" });
    this.sentence = element("p", { class: "sentence" });
    this.figures = element("p", { class: "sentence soft detail" });
    this.caveats = element("p", { class: "sentence caveat" });
    this.warning = element("p", { class: "warnings", hidden: true });
    this.incidents = element("ul", { class: "incidents", "aria-label": "Open incidents", hidden: true });
    this.todo = element("ul", { class: "todo" });
    this.node = element(
      "section",
      { class: "panel answer", "aria-label": "Verdict", hidden: true },
      this.verdict, this.since, this.sentence, this.figures, this.caveats, this.warning, this.incidents, element("h2", {}, "What to do"), this.todo,
    );
  }

  render(row, details) {
    const waits = stateOf(row) === "waiting";
    this.node.hidden = false;
    mark(this.verdict, "data-verdict", stateOf(row));
    mark(this.verdict, "title", meaningOf(row));
    say(this.verdict, wordsOf(row));
    const changed = changeOf(row);
    say(this.since, [sinceOf(row, both) + betweenOf(row), changed].filter((text) => text).map(capital).join(". ") + (sinceOf(row) || changed ? "." : meaningOf(row)));
    say(this.sentence, waits ? reasonOf(row, details) : accuracyOf(row));
    say(this.figures, waits || row.accuracy === undefined ? "" : figuresOf(row));
    const caveats = caveatsOf(row, details);
    this.caveats.hidden = caveats.length === 0;
    say(this.caveats, caveats.map(([, meaning]) => meaning).join(" "));
    this.warning.hidden = row.warning === undefined;
    say(this.warning, row.warning === undefined ? "" : `Warning: ${row.warning}.`);
    this.lists(row, details);
  }

  // Lists with links are replaced only when their text has changed.
  lists(row, details) {
    const incidents = (details.open_incidents ?? []).map(incident);
    const rendered = JSON.stringify([incidents, foreseen(details), stateOf(row), row.warning_page, row.verdict_opponent, row.incidents]);
    if (rendered === this.rendered) return;
    this.rendered = rendered;
    this.incidents.hidden = incidents.length === 0;
    this.incidents.replaceChildren(...incidents.map((line) => element("li", {}, line)));
    this.todo.replaceChildren(...todo(row, details).map((each) => element("li", {}, each)));
  }
}
