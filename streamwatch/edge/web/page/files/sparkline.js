// Small chart of accuracy and both baselines over the last hours.

import { drawn, mark } from "./dom.js";
import { duration, percent } from "./format.js";

const WIDTH = 120;
const HEIGHT = 30;
const SERIES = ["majority", "no_change", "accuracy"]; // the last is on top

export class Sparkline {
  constructor() {
    this.paths = Object.fromEntries(SERIES.map((name) => [name, drawn("path", { class: name, "vector-effect": "non-scaling-stroke" })]));
    this.node = drawn("svg", { class: "sparkline", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" }, ...Object.values(this.paths));
  }

  // line: shares at each time by series, undefined without a past; floor: share at the lower edge
  update(times, line, floor) {
    const known = line?.accuracy.filter((value) => value !== null) ?? [];
    mark(this.node, "class", known.length ? "sparkline" : "sparkline empty");
    mark(this.node, "aria-label", known.length
      ? `Accuracy over the last ${duration(times.at(-1) - times[0])}: from ${percent(known[0])} to ${percent(known.at(-1))}`
      : "No accuracy yet");
    for (const name of SERIES) mark(this.paths[name], "d", known.length ? pathOf(times, line[name], floor) : null);
  }
}

function pathOf(times, values, floor) {
  const span = times.at(-1) - times[0] || 1;
  let pen = "M";
  let path = "";
  values.forEach((value, at) => {
    if (value === null) {
      pen = "M";
      return;
    }
    const x = ((times[at] - times[0]) / span) * WIDTH;
    const y = HEIGHT - 2 - ((value - floor) / (1 - floor)) * (HEIGHT - 4);
    path += `${pen}${x.toFixed(1)} ${y.toFixed(1)}`;
    pen = "L";
  });
  return path;
}

// Lower edge of all lines shown: a round tenth, at least 0.02 below the smallest value.
export function floorOf(lines) {
  let least = 1;
  for (const line of lines.values()) {
    for (const name of SERIES) for (const value of line[name]) if (value !== null && value < least) least = value;
  }
  return Math.max(0, Math.min(0.9, Math.floor(least * 10 - 0.2) / 10));
}
