// Accuracy with its bound beside the baselines, in one line: a bullet graph.

import { drawn, mark } from "./dom.js";

export class Bullet {
  constructor() {
    const line = (kind, from, to) =>
      drawn("line", { class: kind, y1: from, y2: to, "vector-effect": "non-scaling-stroke" });
    this.bound = drawn("rect", { class: "bound", y: 4, height: 8 });
    this.majority = line("majority", 2, 14);
    this.persistent = line("persistent", 1, 15);
    this.accuracy = line("accuracy", 2, 14);
    this.node = drawn(
      "svg",
      { class: "bullet", viewBox: "0 0 100 16", preserveAspectRatio: "none", "aria-hidden": "true" },
      drawn("rect", { class: "track", x: 0, y: 7, width: 100, height: 2 }),
      this.bound, this.majority, this.persistent, this.accuracy,
    );
  }

  update(row, floor) {
    const at = (value) => Math.max(0, Math.min(100, ((value - floor) / (1 - floor)) * 100)).toFixed(2);
    const both = row.lower !== undefined && row.upper !== undefined;
    mark(this.bound, "x", both ? at(row.lower) : 0);
    mark(this.bound, "width", both ? Math.max(0.5, at(row.upper) - at(row.lower)).toFixed(2) : 0);
    for (const name of ["majority", "persistent", "accuracy"]) {
      const place = row[name] === undefined ? -10 : at(row[name]);
      mark(this[name], "x1", place);
      mark(this[name], "x2", place);
    }
  }
}

// The left end of all bullets: a round tenth below what there is to see.
export function floorOf(rows) {
  let least = 1;
  for (const row of rows) {
    for (const value of [row.accuracy, row.persistent, row.majority]) if (value < least) least = value;
  }
  return Math.max(0, Math.min(0.9, Math.floor(least * 10 - 0.2) / 10));
}
