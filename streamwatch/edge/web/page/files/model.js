// A model's page: its verdict and accuracy first, then charts and all estimates in foldable sections.

import { alarmItem, meaning } from "./alarms.js";
import { Answer } from "./answer.js";
import { get, segment } from "./api.js";
import { catalogue, classColumns, estimates } from "./estimates.js";
import { Chart, classCharts, COLOURS, shares } from "./charts.js";
import { Days } from "./days.js";
import { closed, element, opened, say } from "./dom.js";
import { early } from "./early.js";
import { both, count, delayOf, duration, moment, percent, ratio, short, wholePercent } from "./format.js";
import { labelled, late, revisions, sampled } from "./late.js";
import { Past } from "./past.js";
import { probabilities } from "./probabilities.js";
import { Section } from "./sections.js";
import { confusion, recovery, segments, table, weighted } from "./tables.js";

function without404(error) {
  if (error.status !== 404) throw error;
}

const UNWEIGHTED = ", of the labels that came, each counted once"; // where labels are sampled
const ALARMS = 20; // at most, as in the overview
const nothing = (found, of) => (found ? `${count(found)} ${of}` : `no ${of}`);

export class Model {
  constructor(name, back = "#/") {
    this.name = name;
    this.past = new Past(name);
    this.days = new Days(name);
    this.leave = new AbortController();
    this.charts = [];
    this.daysChart = null;
    this.alarms = []; // of this model, newest first
    this.answer = new Answer();
    this.message = element("p", { class: "empty" }, "Loading…");
    this.first = element("div", { class: "first" });
    this.sections = Object.fromEntries([
      ["alarms", "Recent alarms", "tables"], ["days", "Over the days", "charts"], ["charts", "More charts", "charts"], ["segments", "Segments", "tables"],
      ["classes", "Classes", "tables"], ["labels", "Labels and how late they are", "tables"], ["early", "Before the labels", "tables"],
      ["probabilities", "Probabilities", "tables"], ["estimates", "Every estimate", "tables"],
    ].map(([key, title, kind]) => [key, new Section(key, title, kind)]));
    this.fold = element("button", { type: "button", class: "quiet" }, "Open all sections");
    this.fold.addEventListener("click", () => this.openAll());
    this.foldBar = element("p", { class: "foldbar" }, this.fold);
    this.node = opened(name, back, null,
      this.message, element("div", { class: "top-of-model" }, this.answer.node, this.first), this.foldBar,
      ...Object.values(this.sections).map((section) => section.node));
    for (const section of Object.values(this.sections)) {
      section.fill([]);
      section.node.addEventListener("toggle", () => this.tellFold());
    }
    this.foldBar.hidden = true;
  }

  get folded() {
    return Object.values(this.sections).some(({ node }) => !node.hidden && !node.open);
  }

  openAll() {
    const { folded } = this;
    for (const { node } of Object.values(this.sections)) node.open = folded;
  }

  tellFold() {
    say(this.fold, this.folded ? "Open all sections" : "Fold all sections");
  }

  // Refreshes after a report; `Pace` allows one refresh at a time.
  async refresh() {
    try {
      const [{ rows }, document, measures, { alarms }] = await Promise.all([
        get(`api/v1/list?${new URLSearchParams({ model: this.name, details: "1" })}`, this.leave.signal),
        get(`api/v1/models/${segment(this.name)}`, this.leave.signal),
        catalogue(),
        get(`api/v1/alarms?${new URLSearchParams({ model: this.name, limit: ALARMS })}`, this.leave.signal),
        this.past.refresh(this.leave.signal).catch(without404), // nothing of it has been kept yet
        this.days.refresh(this.leave.signal),
      ]);
      this.alarms = alarms;
      if (!this.leave.signal.aborted) requestAnimationFrame(() => this.render(document, new Map(Object.entries(rows)).get(this.name) ?? { verdict: "open" }, measures));
    } catch (error) {
      if (this.leave.signal.aborted) return;
      if (error.status !== 404) throw error;
      this.message.hidden = false;
      say(this.message, this.absence());
    }
  }

  // Why there is no model of this name, or no longer.
  absence() {
    if (this.published === undefined) return `No model named “${this.name}” has been evaluated, and none of its predictions is waiting. It appears here with its first prediction.`;
    return `“${this.name}” is not watched any more, as it has not predicted for twice join.horizon or the state was begun anew. What follows was so at ${both(this.published)}.`;
  }

  render({ metrics, details, published_timestamp_seconds: published }, row, measures) {
    if (this.leave.signal.aborted) return;
    this.published = published;
    this.sampled = row.labels_sampled_ratio !== undefined;
    const waits = metrics.outcomes_total === undefined;
    this.message.hidden = true;
    this.foldBar.hidden = false;
    this.answer.render(waits ? { waiting: "no label", ...row } : row, details);
    this.renderTables(metrics, details, measures, row);
    this.tellFold();
    if (waits) return;
    this.noChange = row.verdict_opponent === undefined ? "persistent" : "persistent_at_prediction";
    const shape = JSON.stringify([this.noChange, this.sampled, this.past.forgetting, [...this.past.columns.keys()], this.past.defined("class_truth_ratio"), this.detectors(), this.days.is_empty]);
    if (shape !== this.shape) {
      this.shape = shape;
      this.buildCharts();
    }
    const { past } = this;
    past.end(published, metrics);
    for (const { chart, columns, alarms } of this.charts) {
      chart.update(past.moments(), columns.map((path) => past.column(...path)), alarms.flatMap((name) => past.rises("alarms_total", name)));
    }
    if (this.daysChart) this.days.draw(this.daysChart, this.alarms.map((alarm) => alarm.timestamp_seconds));
  }

  detectors() {
    return [...new Set([...this.past.defined("detector_statistic"), ...this.past.defined("alarms_total")])];
  }

  buildCharts() {
    this.destroyCharts();
    const { past } = this;
    const main = past.forgetting;
    const detectors = this.detectors();
    const sync = `model-${this.name}`;
    const accuracies = past.names("accuracy_ratio");
    this.charts = [
      {
        chart: new Chart({
          title: "Accuracy",
          format: percent,
          axisFormat: wholePercent,
          sync,
          hint: this.sampled
            ? "Of the labels that came, each counted once: not the accuracy of all predictions. The band has the bounds of the true share; triangles mark alarms."
            : "How often the model is right, beside its baselines. The band has the bounds of the true accuracy; triangles mark alarms.",
          range: shares,
          lines: [
            { name: "upper bound", hidden: true, colour: "soft" },
            { name: "lower bound", hidden: true, colour: "soft" },
            { name: "accuracy", colour: "line-1", width: 2.4 },
            { name: "no change", colour: "persistent", dash: [6, 4] },
            { name: "most frequent class", colour: "majority", dash: [2, 3] },
          ],
          band: [0, 1],
        }),
        columns: [
          ["accuracy_bound_ratio", "hoeffding_upper"], ["accuracy_bound_ratio", "hoeffding"], ["accuracy_ratio", main],
          ["baseline_accuracy_ratio", this.noChange], ["baseline_accuracy_ratio", "majority"],
        ],
        alarms: detectors,
      },
      ...(accuracies.length > 1 ? [{
        chart: new Chart({
          title: "Accuracy under each forgetting",
          hint: "The shorter the memory, the sooner a change shows, and the more a line wavers.",
          format: percent,
          axisFormat: wholePercent,
          sync,
          range: shares,
          lines: accuracies.map((name, at) => ({ name, colour: name === main ? "line-1" : COLOURS[at % COLOURS.length], width: name === main ? 2.4 : 1.3 })),
        }),
        columns: accuracies.map((name) => ["accuracy_ratio", name]),
        alarms: detectors,
      }] : []),
      {
        chart: new Chart({
          title: "Kappa",
          hint: `Gain over chance (κ), over the most frequent class (κ majority), over the previous label (κ persistent), and κ⁺, under ${main}. 0 means no gain; the chart ends at −1.`,
          format: ratio,
          axisFormat: short,
          sync,
          range: (_, low, high) => [Math.max(-1, Math.min(0, Math.floor(low * 10) / 10)), Math.max(0.1, Math.ceil(high * 10) / 10)],
          lines: [
            { name: "κ", colour: "line-1" },
            { name: "κ majority", colour: "line-3" },
            { name: "κ persistent", colour: "line-2", width: 2.4 },
            { name: "κ⁺", colour: "line-4" },
          ],
        }),
        columns: [["kappa"], ["kappa_majority"], ["kappa_persistent"], ["kappa_plus"]],
        alarms: detectors,
      },
      ...classCharts(past, sync, detectors),
      ...detectors.map((name) => ({
        chart: new Chart({
          title: `Detector ${name}`,
          hint: "The statistic of the detector, and the threshold above which it alarms.",
          format: short,
          sync,
          range: (_, low, high) => [Math.min(0, low), high > 0 ? high * 1.1 : 1],
          lines: [
            { name: "statistic", colour: "line-1", width: 2 },
            { name: "threshold", colour: "bad", dash: [6, 4] },
          ],
        }),
        columns: [["detector_statistic", name], ["detector_threshold", name]],
        alarms: [name],
      })),
    ];
    this.daysChart = this.days.is_empty ? null : this.days.chart();
    const [accuracy, ...rest] = this.charts.map(({ chart }) => chart.node);
    this.first.replaceChildren(accuracy);
    const each = this.sampled ? UNWEIGHTED : "";
    this.sections.charts.fill(rest, `kappa, classes and detectors over time${each}`);
    this.sections.days.fill(this.daysChart ? [this.daysChart.node] : [], `accuracy as the state keeps it, over restarts${each}`);
  }

  renderTables(metrics, details, measures, row) {
    const { alarms } = this;
    const rendered = JSON.stringify([metrics, alarms]);
    if (rendered === this.rendered || document.activeElement?.closest?.("#model .tables")) return; // somebody reads or selects there
    this.rendered = rendered;
    const { sections } = this;
    const classes = Object.keys(metrics.class_truth_ratio ?? metrics.recall_ratio ?? {});
    const columns = classColumns(measures);
    sections.alarms.fill([element("section", { class: "panel wide" },
      alarms.length ? element("p", { class: "minor" }, meaning()) : null,
      alarms.length ? element("ol", { class: "alarms" }, ...alarms.map((alarm) => alarmItem(alarm, false))) : element("p", { class: "empty" }, "No recent alarm of this model."))],
    nothing(alarms.length, alarms.length === 1 ? "alarm" : "alarms"));
    sections.segments.fill(segments(details.segments), Object.keys(details.segments ?? {}).join(", "));
    sections.classes.fill([
      table("Classes", ["class", ...columns.map(({ heading }) => heading)], classes.map((each) => [each, ...columns.map(({ value }) => value(metrics, each))]), "wide", "No class has been counted yet."),
      ...confusion(details.confusion),
    ], classes.length > 4 ? `${count(classes.length)} classes` : classes.join(", "));
    sections.labels.fill([labels(metrics, details, row), ...late(details.late_labels), ...labelled(details.label_delays), ...sampled(details.sampled_labels), ...revisions(details.revisions)],
      row.delay_median_seconds === undefined ? "" : `half of them ${delayOf(row, "median")}`);
    sections.early.fill(early(details.early_hints));
    sections.probabilities.fill(probabilities(details.probabilities, metrics));
    sections.estimates.fill([estimates(measures, metrics), drift(metrics, details)], `measures, bounds and baselines under every forgetting${this.sampled ? UNWEIGHTED : ""}`);
  }

  // Redraws in another theme, as a canvas keeps its colours.
  repaint() {
    if (!this.shape) return;
    this.shape = undefined;
    this.refresh();
  }

  destroyCharts() {
    for (const { chart } of this.charts) chart.destroy();
    this.daysChart?.destroy();
    this.daysChart = null;
  }

  destroy() {
    closed(this);
    this.destroyCharts();
  }
}

function drift(metrics, details) {
  return table("Drift", [], [
    ...weighted(metrics.drift_weighted_accuracy_ratio).map(([name, value]) => [`drift-weighted accuracy (outcomes after a drift weigh more)${name}`, percent(value)]),
    ...weighted(metrics.drift_weighted_effective_sample_size).map(([name, value]) => [`effective outcomes${name}`, count(value)]),
    ...Object.entries(metrics.adwin_window_outcomes ?? {}).map(([of, value]) => [`window of ${of}`, `${count(value)} outcomes`]),
    ...Object.entries(metrics.alarms_total ?? {}).map(([of, value]) => [`alarms of ${of}`, count(value)]),
    ...recovery(details.recovery),
  ]);
}

function labels(metrics, details, row) {
  const delay = metrics.label_delay_seconds;
  return table("Labels", [], [
    ["predictions evaluated", count(metrics.outcomes_total)],
    ["wrong predictions", count(metrics.errors_total)],
    ["waiting for their label", count(metrics.pending_predictions)],
    ["delay, half of the labels", delayOf(row, "median")],
    ["delay, 90 % of the labels", delayOf(row, "p90")],
    ["delay, mean", delay?.count ? duration(delay.sum / delay.count) : "–"],
    ["latest label", metrics.last_label_timestamp_seconds === undefined ? "–" : moment(metrics.last_label_timestamp_seconds)],
    ["first seen", details.first_seen_timestamp_seconds === undefined ? "–" : moment(details.first_seen_timestamp_seconds)],
  ]);
}
