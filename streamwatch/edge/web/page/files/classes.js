// Charts of the shares and the recalls of true classes over time, which show which of them changed.

import { Chart, COLOURS, shares } from "./charts.js";
import { percent, wholePercent } from "./format.js";

const KINDS = [
  ["class_truth_ratio", "Share of each class", "Share of the labels, faded. If the shares move while the recalls stay, the classes have changed, not the model."],
  ["recall_ratio", "Recall of each class", "Share of the class that the model recognised, faded. If the recalls move while the shares stay, the model no longer fits."],
];

export function classCharts(past, sync, alarms) {
  return KINDS.flatMap(([metric, title, hint]) => {
    const classes = past.defined(metric);
    if (classes.length === 0) return [];
    const lines = classes.map((name, at) => ({ name, colour: at === 0 ? "line-1" : COLOURS[(at - 1) % COLOURS.length], dash: at > COLOURS.length ? [5, 3] : undefined }));
    return [{
      chart: new Chart({ title, hint, lines, sync, format: percent, axisFormat: wholePercent, range: shares }),
      columns: classes.map((name) => [metric, name]),
      alarms,
    }];
  });
}
