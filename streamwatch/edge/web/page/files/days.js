// A model's past as the state keeps it: accuracy by stretches of time, over days and restarts.

import { get, segment } from "./api.js";
import { Chart, shares } from "./charts.js";
import { percent, wholePercent } from "./format.js";

const STALE_MS = 60_000; // the finest stretch is a minute

export class Days {
  constructor(model) {
    this.path = `api/v1/models/${segment(model)}/past`;
    this.fetched = -Infinity;
    this.past = null;
  }

  async refresh(signal) {
    if (performance.now() - this.fetched < STALE_MS) return;
    this.past = await get(this.path, signal);
    if (!this.is_empty) this.fetched = performance.now();
  }

  get is_empty() {
    return this.past === null || this.past.starts.length === 0;
  }

  chart() {
    const { days } = this.past;
    return new Chart({
      title: days === 1 ? "Last day" : `Last ${days} days`,
      hint: "Accuracy of each interval by itself, kept in the state across restarts: minutes for the latest hours, then ten minutes, then hours. Triangles mark recent alarms at the time of their outcome.",
      format: percent,
      axisFormat: wholePercent,
      sync: `days-${this.path}`,
      dated: true,
      range: shares,
      lines: [{ name: "accuracy", colour: "line-1", width: 2 }, { name: "previous label again", colour: "persistent", dash: [6, 4] }],
    });
  }

  // Draws each stretch at its middle.
  draw(chart, alarms) {
    const { starts, seconds, accuracy, persistent } = this.past;
    chart.update(starts.map((start, at) => start + seconds[at] / 2), [accuracy, persistent], alarms);
  }
}
