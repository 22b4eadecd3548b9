// Quality of a model's scores: losses, reliability, and precision and recall by threshold.

import { drawn, element } from "./dom.js";
import { count, percent, ratio } from "./format.js";
import { table } from "./tables.js";

const MOST_CURVES = 4; // classes with a picture of their own, the first
const SIDE = 100; // of a picture, in units of its view box

export function probabilities(found, metrics) {
  if (found === undefined) return [];
  return [losses(found, metrics), reliability(found), ...Object.entries(found.curves).slice(0, MOST_CURVES).map(([name, curve]) => thresholds(found, name, curve))];
}

function losses(found, metrics) {
  const forgettings = Object.keys(metrics.scored_effective_sample_size ?? {});
  const rows = forgettings.map((of) => [of, ratio(metrics.log_loss?.[of]), ratio(metrics.brier_score?.[of]), count(metrics.scored_effective_sample_size[of])]);
  const panel = table("Probabilities", ["forgetting", "log loss", "Brier score", "effective outcomes"], rows);
  const unusable = Object.values(metrics.scores_unusable_total ?? {}).reduce((sum, number) => sum + number, 0);
  panel.append(element("p", { class: "minor" },
    `The scores of ${count(found.scored_outcomes)} outcomes were usable, those of ${count(unusable)} were not. ` +
    `Area under the ROC curve over the last ${count(found.auc_outcomes)}: ${ratio(found.auc)} (${Object.entries(found.auc_by_class).map(([name, area]) => `${name} ${ratio(area)}`).join(", ")}).`));
  return panel;
}

function reliability(found) {
  const bins = found.reliability.filter((bin) => bin.mean_score !== null && bin.hit_share !== null);
  const most = Math.max(...bins.map((bin) => bin.outcomes), 0);
  const points = bins.map((bin) => drawn("circle", { cx: x(bin.mean_score), cy: y(bin.hit_share), r: (1.2 + 3 * Math.sqrt(bin.outcomes / most)).toFixed(2) }));
  const panel = table("Reliability", ["score of the predicted class", "mean", "was right", "outcomes"],
    bins.map((bin) => [`${bin.from} to ${bin.to}`, percent(bin.mean_score), percent(bin.hit_share), count(bin.outcomes)]));
  panel.querySelector("h2").after(
    element("p", { class: "minor" }, `Mean score, and share of predictions that were right. On the diagonal, scores are calibrated. Expected calibration error: ${percent(found.calibration_error)}; outcomes fade by ${found.alpha}.`),
    picture("Reliability diagram; the table below lists its numbers", drawn("line", { class: "diagonal", x1: x(0), y1: y(0), x2: x(1), y2: y(1) }), line("reliability", bins.map((bin) => [bin.mean_score, bin.hit_share])), ...points));
  return panel;
}

function thresholds(found, name, { precision, recall }) {
  const shown = found.thresholds.map((threshold, at) => [threshold, at]).filter(([, at]) => at % 10 === 0);
  const panel = table(`If ${name} were predicted above a threshold`, ["threshold", "precision", "recall"],
    shown.map(([threshold, at]) => [String(threshold), percent(precision[at]), percent(recall[at])]));
  panel.querySelector("h2").after(
    element("p", { class: "minor keys" }, element("span", { class: "key key-precision" }, "precision"), element("span", { class: "key key-recall" }, "recall"), "over the threshold, faded"),
    picture(`Precision and recall of ${name} by threshold; the table below lists their numbers`, line("precision", pairs(found.thresholds, precision)), line("recall", pairs(found.thresholds, recall))));
  return panel;
}

const x = (value) => (10 + value * (SIDE - 14)).toFixed(2);
const y = (value) => (SIDE - 8 - value * (SIDE - 12)).toFixed(2);
const pairs = (at, values) => values.flatMap((value, index) => (value === null ? [] : [[at[index], value]]));
const line = (kind, points) => drawn("polyline", { class: kind, points: points.map(([across, up]) => `${x(across)},${y(up)}`).join(" ") });

function picture(label, ...marks) {
  const ticks = [0, 0.5, 1].flatMap((at) => [
    drawn("line", { class: "tick", x1: x(at), y1: y(0), x2: x(at), y2: y(1) }),
    drawn("line", { class: "tick", x1: x(0), y1: y(at), x2: x(1), y2: y(at) }),
    drawn("text", { x: x(at), y: SIDE - 2, "text-anchor": "middle" }, String(at)),
    drawn("text", { x: 8, y: y(at), "text-anchor": "end", "dominant-baseline": "middle" }, String(at)),
  ]);
  return drawn("svg", { class: "square", viewBox: `0 0 ${SIDE} ${SIDE}`, role: "img", "aria-label": label }, ...ticks, ...marks);
}
