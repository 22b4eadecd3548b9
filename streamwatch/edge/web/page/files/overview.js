// The list of models: requests what is listed, and updates only the cells that changed.

import { get } from "./api.js";
import { Choices, PAGE } from "./choices.js";
import { arrange, byId, element, mark, say } from "./dom.js";
import { Fleet } from "./fleet.js";
import { count } from "./format.js";
import { Pace } from "./pace.js";
import { doctor, remedy } from "./remedies.js";
import { COLUMNS, groupItem, heading, Row } from "./row.js";
import { detailed } from "./sections.js";
import { floorOf } from "./sparkline.js";
import { state } from "./state.js";

const LINES_MS = 60_000; // a line over hours hardly changes sooner
const LINES_SOON_MS = 5_000; // as long as it is short
const SHORT_SECONDS = 900;

export class Overview {
  constructor(changed) {
    this.changed = changed;
    this.rows = new Map();
    this.found = null;
    this.lines = { timestamps: [], models: new Map() };
    this.drawn = -Infinity;
    this.fleet = new Fleet();
    this.pace = new Pace(() => this.refresh());
    this.choices = new Choices(() => this.pace.hurry());
    this.headings = COLUMNS.map((column) => {
      const cell = heading(column, () => this.choices.sortBy(column.sort, this.choices.sort === column.sort ? !this.choices.down : undefined));
      byId("headings").append(cell);
      return { column, cell };
    });
  }

  async refresh() {
    const short = this.lines.timestamps.length < 2 || this.lines.timestamps.at(-1) - this.lines.timestamps[0] < SHORT_SECONDS;
    const stale = performance.now() - this.drawn > (short ? LINES_SOON_MS : LINES_MS);
    const asked = { details: detailed(), lines: stale };
    const path = this.choices.path(asked);
    let found = await get(path);
    if (!asked.lines && this.lacksLine(found)) found = await get(this.choices.path({ ...asked, lines: true }));
    if (path !== this.choices.path(asked)) return; // chosen otherwise meanwhile
    if (found.lines) {
      this.lines = { timestamps: found.lines.timestamps, models: new Map(Object.entries(found.lines.models)) };
      this.drawn = performance.now();
    }
    this.found = found;
    if (!found.groups) this.choices.page = Math.floor(found.first / PAGE); // fewer may be found than when the address was made
    state.counts = found.counts;
    state.published ??= found.published_timestamp_seconds;
    this.changed();
    await this.fleet.refresh();
    this.changed();
  }

  // Tells whether a listed model lacks its line; models with sampled labels have none.
  lacksLine({ names, rows }) {
    const unweighted = new Map(Object.entries(rows).filter(([, row]) => row.labels_sampled_ratio === undefined));
    return names.some((name) => unweighted.has(name) && !this.lines.models.has(name));
  }

  render() {
    this.markSorted();
    this.tellEmpty();
    if (!this.found) return;
    const { names, groups } = this.found;
    const rows = new Map(Object.entries(this.found.rows));
    this.summarise();
    const floor = floorOf(this.lines.models);
    const shown = names.map((name) => this.rows.get(name) ?? new Row(name));
    for (const row of shown) {
      row.update(rows.get(row.name));
      row.draw(this.lines.timestamps, this.lines.models.get(row.name), floor);
    }
    this.rows = new Map(shown.map((row) => [row.name, row]));
    arrange(byId("rows"), shown.map((row) => row.node));
    byId("models").hidden = groups !== undefined || names.length === 0;
    byId("groups").hidden = groups === undefined;
    this.renderGroups(groups ?? []);
    this.warn();
    this.fleet.render();
  }

  renderGroups(groups) {
    const rendered = JSON.stringify([groups, this.choices.address()]);
    if (rendered === this.grouped) return;
    this.grouped = rendered;
    byId("groups").replaceChildren(...groups.map((group) => groupItem(group, this.choices.address({ group: "", prefix: group.prefix, page: "1" }))));
  }

  // Shows the first few warnings, each with its remedy.
  warn() {
    const { warned, counts } = this.found;
    const rendered = JSON.stringify([warned, counts.warnings]);
    if (rendered === this.warned) return;
    this.warned = rendered;
    const lines = warned.map(({ model, warning, page }) => element("li", {}, `${model}: ${warning}. `, remedy(page)));
    if (counts.warnings > warned.length) lines.push(element("li", {}, `… and ${count(counts.warnings - warned.length)} more models.`));
    byId("warnings").replaceChildren(...lines, element("li", {}, doctor()));
    byId("warnings").hidden = lines.length === 0;
  }

  markSorted() {
    for (const { column, cell } of this.headings) {
      mark(cell, "aria-sort", column.sort === this.choices.sort ? (this.choices.down ? "descending" : "ascending") : null);
    }
  }

  summarise() {
    const { counts, found, first, names, groups, forgetting } = this.found;
    const parts = [
      `${count(counts.models)} watched`, `${count(counts.better)} better than no change`, `${count(counts.open)} open`, `${count(counts.worse)} worse`,
      counts.waiting ? `${count(counts.waiting)} without a label yet` : null,
      counts.incidents ? `${count(counts.incidents)} with an open incident` : null, counts.warnings ? `${count(counts.warnings)} with a warning` : null,
    ];
    say(byId("summary"), counts.models === 0 ? "" : parts.filter((text) => text !== null).join(" · "));
    byId("rule").hidden = counts.models === 0;
    byId("within").hidden = !this.choices.prefix;
    say(byId("prefix"), this.choices.prefix);
    mark(byId("to-groups"), "href", this.choices.address({ group: "on", prefix: "", page: "1" }));
    byId("pager").hidden = groups !== undefined || found <= PAGE;
    say(byId("pager-text"), `${count(first + 1)} to ${count(first + names.length)} of ${count(found)}`);
    byId("previous").disabled = first === 0;
    byId("next").disabled = first + names.length >= found;
    say(byId("forgetting"), forgetting ?? "–");
  }

  tellEmpty() {
    const nothing = !this.found || this.found.counts.models === 0;
    const empty = byId("no-models");
    empty.hidden = !nothing && this.found.found > 0;
    say(empty, nothing ? waitingFor() : this.choices.nothingFound());
  }

  // Focuses the model from whose page the user returned.
  focus(name) {
    (this.rows.get(name)?.node.querySelector("a") ?? byId("content")).focus();
  }
}

function waitingFor() {
  const facts = state.health?.stream;
  if (state.health && !state.health.ready) return `Not ready yet: ${state.health.reasons.join("; ")}. Models appear here with their first predictions.`;
  const accepted = facts?.predictions_accepted_total ?? 0;
  if (accepted > 0) return `Waiting for the first report… ${count(accepted)} predictions have arrived.`;
  return "Waiting for the first predictions… Nothing has been read from the prediction topics so far. Each model appears here with its first prediction.";
}
