// What to know beside a verdict, in two words and in a sentence.

import { count, moment } from "./format.js";

// How many labels are in, and of what, where only quick ones are.
function labelsIn({ first_horizon_labelled: labelled, first_horizon_predictions: predictions, first_horizon_only_label: only }) {
  if (labelled === undefined) return "";
  return ` (${count(labelled)} of ${count(predictions)}${only === undefined ? "" : `, all “${only}”`})`;
}

export function caveatsOf(row) {
  const said = [];
  const ends = row.first_horizon_ends_timestamp_seconds;
  if (ends !== undefined) {
    said.push(["quick labels only", `Until ${moment(ends)}, only quick labels are in${labelsIn(row)}: the first prediction is not one horizon old yet, and slower labels may change the verdict.`]);
  }
  if (row.labels_assumed_as !== undefined) {
    said.push(["labels assumed", `Predictions without a label within the horizon count as “${row.labels_assumed_as}”, which the verdict relies on.`]);
  }
  return said;
}
