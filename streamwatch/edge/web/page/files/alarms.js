// Recent alarms, newest first; each is announced once to a screen reader.

import { arrange, byId, element, say } from "./dom.js";
import { both, iso, moment, percent, when, zones } from "./format.js";
import { state } from "./state.js";
import { against, between } from "./verdict.js";

const SHOWN = 20;
const keyOf = (alarm) => `${alarm.model}\n${alarm.detector}\n${alarm.ordinal}\n${alarm.timestamp_seconds}`;

const BY = { accuracy: "", balanced: " by balanced accuracy", costs: " by costs" };
const JUDGED = { better: "better than", worse: "worse than", open: "no longer shown better or worse than" };

// The outcome of an alarm in the order of labels, or the status of a verdict by cohorts.
function outcomeOrStatus({ basis, status, since_outcome: outcome }) {
  if (basis !== "cohorts") return `, outcome ${outcome.toLocaleString("en")}`;
  return status ? `, ${status}` : "";
}

function limits({ earliest_timestamp_seconds: earliest, latest_timestamp_seconds: latest }) {
  const found = between(earliest, latest);
  return found && ` (${found})`;
}

const change = (alarm) =>
  alarm.judgement
    ? `${JUDGED[alarm.judgement.verdict]} ${against(alarm.judgement)}${BY[alarm.judgement.utility]} since ${both(alarm.judgement.since_timestamp_seconds)}${limits(alarm.judgement)}`
    : `error ${percent(alarm.before)} → ${percent(alarm.after)}${inPredictionTime(alarm.predicted_timestamp_seconds)}${amongPredictions(alarm.predictions)}`;

// Of an alarm in the order of predictions: when the prediction was made at which it fell.
const inPredictionTime = (predicted) => (predicted === undefined ? "" : ` at the prediction made ${both(predicted)}`);

// Time since when predictions have another error, which precedes their labels.
const amongPredictions = (change) =>
  change === undefined ? "" : `; predictions err ${change.after > change.before ? "more" : "less"} since about ${both(change.since_timestamp_seconds)}`;

export const meaning = () => `Error before → after the change. Times are those of the outcomes, in ${zones()}.`;

export class Alarms {
  constructor() {
    say(byId("alarms-meaning"), meaning());
    this.items = new Map();
    this.fresh = new Set();
  }

  // Loads all remembered alarms, at every connection; those missed since the last one are announced.
  catchUp(alarms) {
    const known = new Set(state.alarms.map(keyOf));
    state.alarms = alarms;
    this.announce(known.size ? alarms.filter((alarm) => !known.has(keyOf(alarm))) : []);
  }

  announce(alarms) {
    for (const alarm of alarms) this.fresh.add(keyOf(alarm));
    const [latest] = alarms;
    if (!latest) return;
    const others = alarms.length > 1 ? `, and ${alarms.length - 1} more` : "";
    byId("announcer").textContent = `Alarm: ${latest.model}, ${latest.detector}, ${change(latest)}${others}`;
  }

  render() {
    const shown = state.alarms.slice(0, SHOWN);
    const keys = new Set(shown.map(keyOf));
    for (const key of this.items.keys()) if (!keys.has(key)) this.items.delete(key);
    const nodes = shown.map((alarm) => {
      const key = keyOf(alarm);
      if (!this.items.has(key)) this.items.set(key, alarmItem(alarm, true, this.fresh.delete(key)));
      return this.items.get(key);
    });
    arrange(byId("alarms"), nodes);
    byId("no-alarms").hidden = shown.length > 0;
    byId("alarms-meaning").hidden = shown.length === 0;
  }
}

export function alarmItem(alarm, named, fresh = false) {
  return element(
    "li",
    { class: fresh ? "fresh" : null },
    named ? element("a", { href: `#/model/${encodeURIComponent(alarm.model)}` }, alarm.model) : element("span", {}, alarm.judgement ? "Verdict" : "Error changed", element("span", { class: "detail" }, `, outcome ${alarm.outcome.toLocaleString("en")}`)),
    element("time", { datetime: iso(alarm.timestamp_seconds), title: moment(alarm.timestamp_seconds) }, when(alarm.timestamp_seconds)),
    element("span", { class: "detector detail" }, alarm.detector),
    element("span", { class: "change" }, change(alarm), alarm.judgement ? element("span", { class: "detail" }, outcomeOrStatus(alarm.judgement)) : null),
  );
}
