// Early hints: whether predictions have changed, and the accuracy expected by their scores, before labels come.

import { element } from "./dom.js";
import { both, count, percent } from "./format.js";
import { table } from "./tables.js";

const MOST_STRETCHES = 12; // the latest

function sentenceOf({ hint, reach, predictions, hints }) {
  if (predictions <= reach) return `The latest predictions are compared with those ${count(reach)} earlier. There are ${count(predictions)} predictions so far.`;
  if (hint === null) return `No early hint: the latest predictions do not differ from those ${count(reach)} earlier. Hints so far: ${count(hints)}.`;
  const what = hint.class === null
    ? `scores of the predicted class are ${hint.more ? "higher" : "lower"}`
    : `${hint.class} is predicted ${hint.more ? "more" : "less"} often`;
  return `Early hint: the predictions have changed, and their labels are not in yet. Since before ${both(hint.timestamp_seconds)}, ${what} than ${count(reach)} predictions earlier. Only the labels can show whether the model errs more.`;
}

function expected({ stretches, expected_accuracy: now, expected_accuracy_error: error, unchanged_accuracy_error: unchanged }) {
  if (!stretches.length) return [];
  const rows = stretches.slice(-MOST_STRETCHES).reverse().map((of) => [
    both(of.start_timestamp_seconds), count(of.predictions), percent(of.expected_accuracy), percent(of.accuracy), count(of.labelled),
  ]);
  const panel = table("Expected accuracy", ["predictions from", "predictions", "by their scores", "by their labels", "labels in"], rows, "wide");
  const worth = error === null ? "It has not been compared with labels yet." : `Compared with labels, it was off by ${percent(error)} on average; the accuracy of earlier labels, by ${percent(unchanged)}.`;
  panel.append(element("p", { class: "minor" },
    `By their scores, the latest predictions are expected to be right in ${percent(now)}. ${worth} Scores cannot show that they have lost their calibration.`));
  return [panel];
}

export function early(found) {
  if (found === undefined) return [];
  const { shares_before: before, shares_now: now, score_before: scoreBefore, score_now: scoreNow } = found;
  const rows = Object.keys({ ...before, ...now }).map((name) => [`share of ${name}`, percent(before[name] ?? null), percent(now[name] ?? null)]);
  if (scoreNow !== null) rows.push(["mean score of the predicted class", percent(scoreBefore), percent(scoreNow)]);
  const panel = table("Predictions before their labels", ["", found.predictions > found.reach ? `${count(found.reach)} earlier` : "the first", "now"], rows);
  panel.append(element("p", {}, sentenceOf(found)));
  return [panel, ...expected(found)];
}
