// Comparisons of models on the same ids: challengers by champion, outcomes that only one predicted, and Q over time.

import { get, segment } from "./api.js";
import { Chart } from "./charts.js";
import { closed, element, mark, opened, say } from "./dom.js";
import { both, count, percent, ratio, short, signed } from "./format.js";
import { between } from "./verdict.js";

const TEXT = { better: "Better", worse: "Worse", open: "Open" };
const TITLE = {
  better: "Currently better than the champion on the same ids",
  worse: "Currently worse than the champion on the same ids",
  open: "Not shown to be better or worse than the champion",
};
const CERTAINTY = {
  provisional: ["in the order of labels so far", "If labels of some outcomes come later than others, this may be wrong. There will be a verdict by cohorts of prediction time."],
  early: ["early", "Some labels of these predictions are still to come; it is confirmed or taken back when they are in"],
  confirmed: ["confirmed", "All labels of these predictions are in"],
};
const COLOURS = ["line-1", "line-2", "line-3", "line-4", "line-5", "line-6"];
const CHARTED = COLOURS.length;
const MATRIX = 20;
const HEADINGS = [
  ["Challenger"],
  ["Better than the champion?", "Whether it currently is, by the utility that is set for the champion. Where that is the balanced utility, the verdict follows the order of labels, and may change if some are labelled sooner than others", "text"],
  ["Lead", "Mean utility of the challenger minus that of the champion, since the verdict last changed"],
  ["Same ids", "Ids on which both models have been matched with the same label"],
  ["Its error"],
  ["Champion’s error", "On the same ids"],
  ["Q", "Logarithm of the champion’s losses divided by the challenger’s: positive if the champion errs more"],
  ["McNemar", "Signed, with the variance under forgetting. Descriptive only: if you keep watching, it exceeds any level in the end"],
];

export class Comparisons {
  name = "Comparisons";

  constructor() {
    this.leave = new AbortController();
    this.groups = new Map();
    this.message = element("p", { class: "empty" }, "Fetching…");
    this.rule = element("p", { class: "legend soft", id: "comparison-rule", hidden: true });
    this.list = element("div", { class: "comparisons" });
    this.node = opened("Comparisons", "#/", null, this.message, this.list, this.rule);
  }

  // Refreshes after a report; `Pace` allows one refresh at a time.
  async refresh() {
    try {
      const document = await get("api/v1/comparisons", this.leave.signal);
      const champions = [...new Set(document.comparisons.map(({ champion }) => champion))];
      const pasts = await Promise.all(champions.map((champion) => this.past(champion)));
      if (!this.leave.signal.aborted) requestAnimationFrame(() => this.render(document, champions, pasts));
    } catch (error) {
      if (!this.leave.signal.aborted) throw error;
    }
  }

  // There is no past before the first report with the comparison.
  async past(champion) {
    try {
      return await get(`api/v1/comparisons/${segment(champion)}/history`, this.leave.signal);
    } catch (error) {
      if (error.status === 404) return { timestamps: [], challengers: {} };
      throw error;
    }
  }

  render({ comparisons, forgetting }, champions, pasts) {
    if (this.leave.signal.aborted) return;
    this.message.hidden = champions.length > 0;
    this.rule.hidden = champions.length === 0;
    say(this.message, "No two compared models share an id yet. Set monitors.comparisons to choose the models: a champion with its challengers, or pairs.");
    say(this.rule, `If losses do not depend on earlier ones, a verdict stays valid however often you look; open means that neither is shown to be better. Errors, Q and McNemar use the forgetting ${forgetting} and are descriptive: do not act when one of them first exceeds a level, as each does so in the end. Positive numbers favour the challenger.`);
    for (const [champion, group] of this.groups) {
      if (champions.includes(champion)) continue;
      group.destroy();
      this.groups.delete(champion);
    }
    champions.forEach((champion, at) => {
      if (!this.groups.has(champion)) {
        const group = new Group(champion);
        this.groups.set(champion, group);
        this.list.append(group.node);
      }
      this.groups.get(champion).render(comparisons, forgetting, pasts[at]);
    });
  }

  repaint() {
    for (const group of this.groups.values()) group.repaint();
    this.refresh();
  }

  destroy() {
    closed(this);
    for (const group of this.groups.values()) group.destroy();
  }
}

class Group {
  constructor(champion) {
    this.champion = champion;
    this.tables = element("div", { class: "tables" });
    this.chartNode = element("div", { class: "charts" });
    this.node = element("section", { class: "comparison", "aria-label": champion },
      element("h2", {}, "Champion ", element("a", { href: `#/model/${encodeURIComponent(champion)}` }, champion)),
      this.tables, this.chartNode);
  }

  render(comparisons, forgetting, past) {
    const own = comparisons.filter(({ champion }) => champion === this.champion);
    const rendered = JSON.stringify([own, forgetting]);
    const reading = this.tables.contains(document.activeElement);
    if (rendered !== this.rendered && !reading) {
      this.rendered = rendered;
      this.tables.replaceChildren(challengers(own, forgetting), discordance(this.champion, own, comparisons));
    }
    const charted = own.map(({ challenger }) => challenger).filter((name) => past.challengers[name]).sort().slice(0, CHARTED);
    const shape = JSON.stringify([charted, past.forgetting]);
    if (shape !== this.shape) {
      this.repaint();
      this.shape = shape;
      if (charted.length) this.build(charted, past.forgetting, own.length);
    }
    this.chart?.update(past.timestamps, charted.map((name) => past.challengers[name].q), []);
  }

  build(charted, forgetting, all) {
    this.chart = new Chart({
      title: "Q over time",
      hint: `ln(errors of the champion / errors of the challenger) under ${forgetting}: above 0 the champion errs more than the challenger.${all > charted.length ? ` The first ${charted.length} of ${all} challengers by name.` : ""}`,
      format: ratio,
      axisFormat: short,
      sync: `champion-${this.champion}`,
      range: (_, low, high) => [Math.min(-0.1, (low ?? 0) * 1.1), Math.max(0.1, (high ?? 0) * 1.1)],
      lines: charted.map((name, at) => ({ name, colour: COLOURS[at], width: 2 })),
    });
    this.chartNode.replaceChildren(this.chart.node);
  }

  repaint() {
    this.chart?.destroy();
    this.chart = undefined;
    this.shape = undefined;
    this.chartNode.replaceChildren();
  }

  destroy() {
    this.chart?.destroy();
    this.node.remove();
  }
}

function challengers(own, forgetting) {
  const rows = own.map((each) => {
    const found = each.measures[forgetting] ?? {};
    const since = each.verdict === "open" || each.verdict_since_timestamp_seconds === undefined ? "" : `since ${both(each.verdict_since_timestamp_seconds)}`;
    const span = since && between(each.verdict_earliest_timestamp_seconds, each.verdict_latest_timestamp_seconds);
    const badge = element("span", { class: "badge", title: TITLE[each.verdict] }, TEXT[each.verdict]);
    const [word, hint] = each.provisional ? CERTAINTY.provisional : CERTAINTY[each.status] ?? ["", ""];
    const certainty = element("span", { class: "minor", title: hint }, word);
    mark(badge, "data-verdict", each.verdict);
    const bounds = each.lead_lower === undefined ? "" : `${signed(each.lead_lower)} to ${signed(each.lead_upper)}`;
    return element("tr", {},
      element("th", { scope: "row" }, element("a", { href: `#/model/${encodeURIComponent(each.challenger)}` }, each.challenger)),
      element("td", {}, badge, certainty, element("span", { class: "minor" }, span ? `${since} (${span})` : since)),
      element("td", { class: "number" }, signed(each.lead), element("span", { class: "minor" }, bounds)),
      ...[count(each.pairs), percent(found.challenger_error_ratio), percent(found.champion_error_ratio), signed(found.q), short(found.mcnemar_calibrated)]
        .map((text) => element("td", { class: "number" }, text)));
  });
  return panel("Challengers, by lead", HEADINGS, rows);
}

// Table of how often the model of a row was right and that of a column wrong, on ids that both predicted.
function discordance(champion, own, comparisons) {
  const names = [champion, ...own.map(({ challenger }) => challenger)].slice(0, MATRIX);
  const alone = new Map();
  for (const each of comparisons) {
    const found = each.measures.landmark ?? Object.values(each.measures)[0] ?? {};
    alone.set(`${each.champion}\n${each.challenger}`, found.champion_right_alone);
    alone.set(`${each.challenger}\n${each.champion}`, found.challenger_right_alone);
  }
  const rows = names.map((row) => element("tr", {}, element("th", { scope: "row" }, row),
    ...names.map((column) => element("td", { class: "number" }, row === column ? "" : count(alone.get(`${row}\n${column}`))))));
  return panel("Ids on which only one is right: row right, column wrong", [["right ↓ wrong →"], ...names.map((name) => [name])], rows);
}

function panel(title, headings, rows) {
  const head = headings.map(([text, hint, kind], at) => element("th", { scope: "col", title: hint, class: at && kind !== "text" ? "number" : null }, text));
  return element("section", { class: "panel wide" }, element("h3", {}, title),
    element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title },
      element("table", { class: "plain" }, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows))));
}
