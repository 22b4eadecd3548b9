// One model's history: fetched once, then only new points; refetched at times, as the server thins it out.

import { get, segment } from "./api.js";

const MOST_POINTS = 900;

export class Past {
  constructor(model) {
    this.path = `api/v1/models/${segment(model)}/history`;
    this.clear();
  }

  clear() {
    this.times = [];
    this.columns = new Map(); // "metric\nlabel value" → values
    this.last = null;
  }

  async refresh(signal) {
    if (this.times.length > MOST_POINTS) this.clear();
    const last = this.times.at(-1);
    const news = await get(last === undefined ? this.path : `${this.path}?since=${last.toFixed(3)}`, signal);
    if (news.forgetting !== this.forgetting) {
      this.forgetting = news.forgetting;
      if (last !== undefined) {
        this.clear();
        return this.refresh(signal);
      }
    }
    const before = this.times.length;
    this.times.push(...news.timestamps);
    for (const [key, values] of flat(news.series)) {
      if (!this.columns.has(key)) this.columns.set(key, new Array(before).fill(null));
      this.columns.get(key).push(...values);
    }
    return this;
  }

  // Adds the current report, which the history may lack, so that charts and tables agree.
  end(at, metrics) {
    this.last = this.times.length === 0 || at > this.times.at(-1) ? { at, metrics } : null;
  }

  moments() {
    return this.last ? [...this.times, this.last.at] : this.times;
  }

  column(...path) {
    const kept = this.columns.get(path.join("\n")) ?? new Array(this.times.length).fill(null);
    if (!this.last) return kept;
    const value = path.reduce((tree, key) => tree?.[key], this.last.metrics);
    return [...kept, (typeof value === "object" ? value?.[this.forgetting] : value) ?? null];
  }

  // Values of a metric's first label.
  names(metric) {
    return [...this.columns.keys()].map((key) => key.split("\n")).filter(([name]) => name === metric).map(([, label]) => label);
  }

  // Those of them of which this model has a value; the server returns those of all models.
  defined(metric) {
    return this.names(metric).filter((name) => this.column(metric, name).some((value) => value !== null));
  }

  // Times at which a counter rose, which are those of published alarms.
  rises(...path) {
    const column = this.column(...path);
    const times = this.moments();
    const found = [];
    let last = null;
    column.forEach((value, at) => {
      if (value !== null && last !== null && value > last) found.push(times[at]);
      if (value !== null) last = value;
    });
    return found;
  }
}

function* flat(tree, path = []) {
  for (const [key, below] of Object.entries(tree)) {
    if (Array.isArray(below)) yield [[...path, key].join("\n"), below];
    else yield* flat(below, [...path, key]);
  }
}
