// Models that predict in folds: spread over their folds, and tests of differences between models.

import { get } from "./api.js";
import { closed, element, mark, opened, say } from "./dom.js";
import { count, percent, ratio, signed } from "./format.js";
import { table } from "./tables.js";

const p = (value) => (value === undefined ? "–" : value < 0.001 ? "< 0.001" : ratio(value));

export class Folds {
  constructor() {
    this.name = "Folds";
    this.leave = new AbortController();
    this.chosen = element("select", { "aria-label": "Forgetting" });
    this.chosen.addEventListener("change", () => this.refresh());
    this.message = element("p", { class: "sentence" }, "Fetching…");
    this.tables = element("div", { class: "tables" });
    this.ranks = element("section", { class: "panel", hidden: true });
    const choice = element("label", { class: "soft" }, "Forgetting ", this.chosen);
    this.node = opened("Folds", "#/", choice, this.message, this.ranks, this.tables);
    this.busy = false;
  }

  // Refreshes after every report and choice; one request at a time, and another if anything changed meanwhile.
  async refresh() {
    this.again = this.busy;
    if (this.busy || this.leave.signal.aborted) return;
    this.busy = true;
    try {
      const asked = this.chosen.value;
      const found = await get(`api/v1/folds${asked ? `?forgetting=${encodeURIComponent(asked)}` : ""}`, this.leave.signal);
      if (!this.leave.signal.aborted) this.render(found);
    } catch (error) {
      if (!this.leave.signal.aborted) throw error;
    } finally {
      this.busy = false;
      if (this.again) setTimeout(() => this.refresh());
    }
  }

  render(found) {
    if (found.mechanisms.join("\n") !== this.mechanisms) {
      this.mechanisms = found.mechanisms.join("\n");
      this.chosen.replaceChildren(...found.mechanisms.map((name) => element("option", { value: name, selected: name === found.forgetting }, name)));
    }
    const models = Object.entries(found.models);
    say(this.message, models.length
      ? "Accuracy of each fold at the last report. The tests are valid for a single look and for independent folds, which folds of one stream are not quite."
      : "No model predicts in folds. Set folds.scheme to evaluate predictions that carry a field “fold”.");
    this.tables.replaceChildren(
      ...(models.length ? [table("Accuracy over folds", ["model", "mean", "standard deviation", "folds"],
        models.map(([name, { mean, deviation, folds }]) => [name, percent(mean), deviation === undefined ? "–" : percent(deviation), count(folds)]), "wide")] : []),
      ...(found.pairs.length ? [table("Two models over their folds", ["models", "difference", "folds won – lost", "sign test p", "W⁺, W⁻", "Wilcoxon p"],
        found.pairs.map(({ first, second, difference, sign, wilcoxon }) => [
          `${first} – ${second}`, signed(difference), `${sign.wins} – ${sign.losses}`, p(sign.p), `${wilcoxon.positive}, ${wilcoxon.negative}`, p(wilcoxon.p),
        ]), "wide")] : []),
    );
    this.renderRanks(found.ranks, found.left_out);
  }

  renderRanks(ranks, leftOut) {
    this.ranks.hidden = !ranks;
    if (!ranks) {
      this.ranks.replaceChildren();
      return;
    }
    const listed = Object.entries(ranks.mean_ranks).map(([name, rank]) => `${name} ${rank.toFixed(2)}`).join(", ");
    const left = leftOut ? ` ${count(leftOut)} models, the last by name, are not shown.` : "";
    const picture = element("img", { class: "diagram", alt: `Mean ranks: ${listed}`, src: `data:image/svg+xml;charset=utf-8,${encodeURIComponent(ranks.diagram)}` });
    const friedman = ranks.p === undefined ? "All models tie on every fold." : `Friedman's test over ${count(ranks.folds)} folds: p ${p(ranks.p)}.`;
    this.ranks.replaceChildren(
      element("h2", {}, "Mean ranks"),
      element("p", { class: "minor" }, `${friedman} Models joined by a bar do not differ significantly at ${percent(ranks.alpha)} (Nemenyi). Left is better.${left}`),
      picture,
    );
    mark(this.ranks, "aria-label", "Mean ranks");
  }

  repaint() {}

  destroy() {
    closed(this);
  }
}
