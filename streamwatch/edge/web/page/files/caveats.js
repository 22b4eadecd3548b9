// Caveats of a verdict, each in two words and in a sentence.

import { count, moment, percent } from "./format.js";

// Number and classes of the labels so far, where only quick ones are in.
function labelsIn({ first_horizon_labelled: labelled, first_horizon_predictions: predictions, first_horizon_only_label: only }) {
  if (labelled === undefined) return "";
  return ` (${count(labelled)} of ${count(predictions)}${only === undefined ? "" : `, all “${only}”`})`;
}

export function caveatsOf(row, details = {}) {
  const caveats = [];
  if (details.utility === "balanced") {
    caveats.push(["order of labels", "Every class counts alike here, by how frequent it was among earlier labels. For that there is no verdict by the time of predictions, so this one follows the order of labels: if some classes are labelled sooner than others, a change of traffic may change it."]);
  }
  const ends = row.first_horizon_ends_timestamp_seconds;
  if (ends !== undefined) {
    caveats.push(["quick labels only", `Only quick labels are in so far${labelsIn(row)}: many predictions older than that still wait, and slower labels may change the verdict, until ${moment(ends)} at the latest.`]);
  }
  if (row.verdict_provisional !== undefined) {
    caveats.push(["provisional", "How late labels are is not known yet, so the verdict follows the order in which they arrive: if hits and errors are labelled at different speed, it may change."]);
  }
  if (row.verdict_status === "early") {
    caveats.push(["early", "The verdict counts on labels being as late as they were so far. It is confirmed or withdrawn once all labels of these predictions are due."]);
  }
  if (row.verdict_delays_moved_of !== undefined) {
    caveats.push(["delays moved", `How late labels of ${row.verdict_delays_moved_of} are has changed lately: until predictions with the new delays have all their labels, this early verdict may be wrong.`]);
  }
  if (row.labels_assumed_as !== undefined) {
    caveats.push(["labels assumed", `Predictions without a label within the horizon count as “${row.labels_assumed_as}”, which the verdict relies on.`]);
  }
  if (row.labels_sampled_ratio !== undefined) {
    const without = row.labels_sampled_without_ratio;
    caveats.push(["labels sampled", `${percent(row.labels_sampled_ratio)} of predictions are labelled, by design. Accuracy and verdict are those of all predictions, from labels weighted by the probability with which they were asked for${row.lower === undefined ? "; their intervals are given from 200 effective labels on" : ""}.${without === undefined ? "" : ` ${percent(without)} of predictions say nothing of that probability and are left out.`}`]);
  }
  const since = row.evaluation_since_timestamp_seconds;
  if (since !== undefined) {
    const { evaluation_changed: changed, evaluation_outcomes_before: before, evaluation_began_anew: anew } = row;
    caveats.push([anew ? "evaluated anew" : "evaluated otherwise", `Since ${moment(since)}, this model is evaluated otherwise (${changed}). ${count(before)} outcomes before that were evaluated under the old settings and are ${anew ? "not in these numbers" : "in these numbers, except for the verdict"}.`]);
  }
  return caveats;
}
