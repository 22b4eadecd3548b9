// One model: its verdict in a sentence, charts of its recent past, and every estimate as tables.

import { against, alarmItem, meaning } from "./alarms.js";
import { get, segment } from "./api.js";
import { catalogue, classColumns, estimates } from "./estimates.js";
import { caveatsOf } from "./caveats.js";
import { Chart, COLOURS } from "./charts.js";
import { classCharts, classesOf } from "./classes.js";
import { Days } from "./days.js";
import { byId, element, mark, say } from "./dom.js";
import { early } from "./early.js";
import { VERDICTS, changeOf, opponentOf } from "./overview.js";
import { both, count, duration, moment, percent, ratio, short, signed, wholePercent } from "./format.js";
import { labelled, late } from "./late.js";
import { Past } from "./past.js";
import { probabilities } from "./probabilities.js";
import { recovery } from "./recovery.js";
import { revisions } from "./revisions.js";
import { sampled } from "./sampled.js";
import { state } from "./state.js";
import { confusion, segments, table, weighted } from "./tables.js";

// The mean lead over the opponent since the verdict last changed, once there are enough outcomes.
function leadOf(row) {
  if (row.lead === undefined) return "";
  if (row.labels_sampled_ratio !== undefined) {
    const within = row.lead_lower === undefined ? "" : `, between ${signed(row.lead_lower)} and ${signed(row.lead_upper)}`;
    return ` Mean lead over ${row.verdict_opponent === "majority" ? "the majority" : "no change"}: ${signed(row.lead)}${within}.`;
  }
  const between = row.lead_lower === undefined ? "" : `, between ${signed(row.lead_lower)} and ${signed(row.lead_upper)} (valid however often you look, if losses do not depend on earlier ones)`;
  const whom = row.verdict_opponent === "majority" ? "the majority" : "no change";
  return ` Mean lead over ${whom} since the verdict last changed: ${signed(row.lead)}${between}.`;
}


function without404(error) {
  if (error.status !== 404) throw error;
}

// Why a model that predicts has no outcome: what is known of it, and what to look at.
function reasonOf(row, details) {
  const { labels_accepted_total: labels, labels_joined_total: joined } = state.health?.stream ?? {};
  const ends = details.first_horizon_ends_timestamp_seconds;
  return [
    `No label has matched any prediction of this model yet; ${count(row.pending)} predictions are waiting.`,
    details.nothing_joins
      ? "They have waited for join.early_horizon or longer. Their ids may be written differently from those of the labels, there may be no labels for them, or labels may take longer."
      : "Numbers appear here as soon as one of them is matched with its label.",
    ends === undefined ? "" : `The daemon waits for labels at least until ${moment(ends)}, which is join.horizon after the first prediction.`,
    labels === undefined ? "" : labels === 0 ? "No label of any model has been read so far: do the label topics hold records?" : `Of ${count(labels)} labels read so far, ${count(joined)} have matched a prediction of some model.`,
  ].filter((text) => text).join(" ");
}

export class Model {
  constructor(name, back = "#/") {
    this.name = name;
    this.past = new Past(name);
    this.days = new Days(name);
    this.leave = new AbortController();
    this.charts = [];
    this.daysChart = null;
    this.node = byId("model");
    this.verdict = element("span", { class: "badge large" });
    this.sentence = element("p", { class: "sentence" });
    this.caveats = element("p", { class: "sentence caveat" });
    this.warning = element("p", { class: "warnings", hidden: true });
    this.incidents = element("ul", { class: "incidents", "aria-label": "Open incidents", hidden: true });
    this.message = element("p", { class: "empty" }, "Loading the recent history…");
    this.chartsNode = element("div", { class: "charts" });
    this.tablesNode = element("div", { class: "tables" });
    this.node.replaceChildren(
      element("p", { class: "back" }, element("a", { href: back }, "← All models")),
      element("div", { class: "bar" }, element("h1", { tabindex: "-1" }, name), this.verdict),
      this.caveats, this.warning, this.incidents, this.sentence, this.message, this.chartsNode, this.tablesNode,
    );
    this.node.hidden = false;
    this.busy = false;
  }

  // After every report in which the model changed; one at a time.
  async refresh() {
    if (this.busy || this.leave.signal.aborted) return;
    this.busy = true;
    try {
      const [document, measures] = await Promise.all([
        get(`api/v1/models/${segment(this.name)}`, this.leave.signal),
        catalogue(),
        this.past.refresh(this.leave.signal).catch(without404), // nothing of it has been kept yet
        this.days.refresh(this.leave.signal),
      ]);
      if (!this.leave.signal.aborted) requestAnimationFrame(() => this.render(document, measures));
    } catch (error) {
      if (this.leave.signal.aborted) return;
      if (error.status === 404) {
        this.message.hidden = false;
        say(this.message, `No model named “${this.name}” has been evaluated, and none of its predictions is waiting. It appears here with its first prediction.`);
        return;
      }
      throw error;
    } finally {
      this.busy = false;
    }
  }

  render({ metrics, details, published_timestamp_seconds: published }, measures) {
    if (this.leave.signal.aborted) return;
    const waits = metrics.outcomes_total === undefined;
    this.message.hidden = !waits;
    this.sentence.hidden = this.chartsNode.hidden = waits;
    this.tellVerdict();
    this.tellIncidents(details.open_incidents ?? []);
    if (waits) {
      say(this.message, reasonOf(state.models.get(this.name) ?? {}, details));
      this.renderTables(metrics, details, measures);
      return;
    }
    const shape = JSON.stringify([this.past.forgetting, [...this.past.columns.keys()], classesOf(this.past), this.days.is_empty]);
    if (shape !== this.shape) {
      this.shape = shape;
      this.buildCharts();
    }
    const { past } = this;
    past.end(published, metrics);
    for (const { chart, columns, alarms } of this.charts) {
      chart.update(past.moments(), columns.map((path) => past.column(...path)), alarms.flatMap((name) => past.rises("alarms_total", name)));
    }
    if (this.daysChart) this.days.draw(this.daysChart, state.alarms.filter((alarm) => alarm.model === this.name).map((alarm) => alarm.timestamp_seconds));
    this.renderTables(metrics, details, measures);
  }

  tellVerdict() {
    const row = state.models.get(this.name);
    if (!row) return;
    mark(this.verdict, "data-verdict", row.waiting ? "waiting" : row.verdict);
    const outcome = row.verdict_since_outcome === undefined ? "" : `, outcome ${count(row.verdict_since_outcome)}`;
    const since = row.verdict === "open" || row.verdict_since_timestamp_seconds === undefined ? "" : `, since ${both(row.verdict_since_timestamp_seconds)}${outcome}`;
    const changed = changeOf(row);
    say(this.verdict, row.waiting ? "Waiting for its first label." : `${VERDICTS[row.verdict].title} ${opponentOf(row)}${since}${changed && `, ${changed}`}.`);
    this.warning.hidden = row.warning === undefined;
    say(this.warning, row.warning === undefined ? "" : `Warning: ${row.warning}.`);
    const caveats = caveatsOf(row);
    this.caveats.hidden = caveats.length === 0;
    say(this.caveats, caveats.map(([, meaning]) => meaning).join(" "));
    const bound = row.lower === undefined ? "" : ` (between ${percent(row.lower)} and ${percent(row.upper)})`;
    if (row.labels_sampled_ratio !== undefined) {
      say(this.sentence, row.accuracy === undefined
        ? "No label of predictions that should have theirs has come yet."
        : `The accuracy of all predictions is ${percent(row.accuracy)}${bound}, from ${count(row.effective_sample_size)} effective labels.${leadOf(row)}`);
      return;
    }
    say(
      this.sentence,
      `The accuracy is ${percent(row.accuracy)}${bound} over the equivalent of ${count(row.effective_sample_size)} recent outcomes. ` +
        `Predicting the previous label (no change) is right in ${percent(row.persistent)}, predicting the most frequent class in ${percent(row.majority)}.${leadOf(row)}`,
    );
  }

  tellIncidents(incidents) {
    const lines = incidents.map(({ severity, started_timestamp_seconds: started, alarms }) => {
      const errors = alarms.filter((alarm) => alarm.after !== undefined).map((alarm) => `${alarm.detector}: error ${percent(alarm.before)} → ${percent(alarm.after)}`);
      const verdict = alarms
        .filter((alarm) => alarm.detector === "verdict")
        .map((alarm) => `worse than ${against({ ...alarm, verdict: "worse" })}${alarm.status ? ` (${alarm.status})` : ""}`);
      return `Incident (${severity}), open since ${both(started)}. ${[...verdict, ...errors].join("; ")}.`;
    });
    const text = lines.join("\n");
    if (text === this.incidentsTold) return;
    this.incidentsTold = text;
    this.incidents.replaceChildren(...lines.map((line) => element("li", {}, line)));
    this.incidents.hidden = lines.length === 0;
  }

  buildCharts() {
    this.destroyCharts();
    const { past } = this;
    const main = past.forgetting;
    const detectors = [...new Set([...past.names("detector_statistic"), ...past.names("alarms_total")])];
    const sync = `model-${this.name}`;
    const accuracies = past.names("accuracy_ratio");
    const others = accuracies.filter((name) => name !== main);
    this.charts = [
      {
        chart: new Chart({
          title: "Accuracy",
          format: percent,
          axisFormat: wholePercent,
          sync,
          hint: `Under each forgetting. The band shows the bounds under ${main}; triangles mark alarms at the time they were raised.`,
          range: (_, low, high) => [Math.max(0, Math.floor(low * 10 - 0.1) / 10), Math.min(1, Math.ceil(high * 10) / 10)],
          lines: [
            { name: "upper bound", hidden: true, colour: "soft" },
            { name: "lower bound", hidden: true, colour: "soft" },
            ...accuracies.map((name) => (name === main ? { name, colour: "line-1", width: 2.4 } : { name, colour: COLOURS[others.indexOf(name) % COLOURS.length], width: 1.3 })),
            { name: "Persistent", colour: "persistent", dash: [6, 4] },
            { name: "Majority", colour: "majority", dash: [2, 3] },
          ],
          band: [0, 1],
        }),
        columns: [
          ["accuracy_bound_ratio", "hoeffding_upper"], ["accuracy_bound_ratio", "hoeffding"],
          ...accuracies.map((name) => ["accuracy_ratio", name]),
          ["baseline_accuracy_ratio", "persistent"], ["baseline_accuracy_ratio", "majority"],
        ],
        alarms: detectors,
      },
      {
        chart: new Chart({
          title: "Kappa",
          hint: `Gain over chance (κ), over the most frequent class (κ majority), over the previous label (κ persistent), and κ⁺, under ${main}. 0 means no gain.`,
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
    const nodes = this.charts.map(({ chart }) => chart.node);
    this.chartsNode.replaceChildren(...nodes.slice(0, 2), ...(this.daysChart ? [this.daysChart.node] : []), ...nodes.slice(2));
  }

  renderTables(metrics, details, measures) {
    const alarms = state.alarms.filter((alarm) => alarm.model === this.name);
    const text = JSON.stringify([metrics, alarms.length]);
    if (text === this.told) return;
    this.told = text;
    const classes = Object.keys(metrics.class_truth_ratio ?? metrics.recall_ratio ?? {});
    const delay = metrics.label_delay_seconds;
    const row = state.models.get(this.name) ?? {};
    const open = document.activeElement?.closest?.("#model .tables");
    if (open) return; // somebody reads or selects there
    this.tablesNode.replaceChildren(
      estimates(measures, metrics),
      table("Classes", ["class", ...classColumns(measures).map(({ heading }) => heading)],
        classes.map((of) => [of, ...classColumns(measures).map(({ value }) => value(metrics, of))]), "", "No class has been counted yet."),
      ...segments(details.segments),
      ...confusion(details.confusion),
      ...early(details.early_hints),
      ...probabilities(details.probabilities, metrics),
      table("Drift", ["what", "value"], [
        ...weighted(metrics.drift_weighted_accuracy_ratio).map(([name, value]) => [`drift-weighted accuracy (outcomes after a drift weigh more)${name}`, percent(value)]),
        ...weighted(metrics.drift_weighted_effective_sample_size).map(([name, value]) => [`effective outcomes${name}`, count(value)]),
        ...Object.entries(metrics.adwin_window_outcomes ?? {}).map(([of, value]) => [`window of ${of}`, `${count(value)} outcomes`]),
        ...Object.entries(metrics.alarms_total ?? {}).map(([of, value]) => [`alarms of ${of}`, count(value)]),
        ...recovery(details.recovery),
      ]),
      table("Labels", ["what", "value"], [
        ["predictions evaluated", count(metrics.outcomes_total)],
        ["wrong predictions", count(metrics.errors_total)],
        ["waiting for their label", count(metrics.pending_predictions)],
        ["delay, median", duration(row.delay_median_seconds)],
        ["delay, 90 % below", duration(row.delay_p90_seconds)],
        ["delay, mean", delay?.count ? duration(delay.sum / delay.count) : "–"],
        ["latest label", metrics.last_label_timestamp_seconds === undefined ? "–" : moment(metrics.last_label_timestamp_seconds)],
        ["first seen", details.first_seen_timestamp_seconds === undefined ? "–" : moment(details.first_seen_timestamp_seconds)],
      ]),
      ...late(details.late_labels),
      ...labelled(details.label_delays),
      ...sampled(details.sampled_labels),
      ...revisions(details.revisions),
      element("section", { class: "panel" }, element("h2", {}, "Recent alarms"), alarms.length ? element("p", { class: "minor" }, meaning()) : null,
        alarms.length
          ? element("ol", { class: "alarms" }, ...alarms.map((alarm) => alarmItem(alarm, false)))
          : element("p", { class: "empty" }, "No recent alarm of this model.")),
    );
  }

  // Colours are the canvas's own: draw anew in another theme.
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
    this.leave.abort();
    this.destroyCharts();
    this.node.hidden = true;
    this.node.replaceChildren();
  }
}
