// List of the worse models of the fleet, of which few are expected to be false.

import { get } from "./api.js";
import { byId, element } from "./dom.js";
import { both, count, percent } from "./format.js";
import { between, OPPONENTS } from "./verdict.js";

const EVERY_MS = 60_000; // by a clock and not when something happens, as the promise demands
const SHOWN = 20;

// Time since when a pair's verdict is worse; of a pair with another verdict now, that it no longer holds.
function since({ verdict, since_timestamp_seconds: began, earliest_timestamp_seconds: earliest, latest_timestamp_seconds: latest }) {
  if (verdict !== "worse") return `verdict now: ${verdict === "better" ? "better" : "no clear difference"}`;
  if (began === undefined) return "";
  const span = between(earliest, latest);
  return `since ${both(began)}${span && ` (${span})`}`;
}

const item = (pair) => element("li", {},
  element("a", { href: `#/model/${encodeURIComponent(pair.model)}` }, pair.model),
  element("span", {}, `worse than ${OPPONENTS[pair.opponent] ?? pair.opponent}`),
  element("span", { class: "minor" }, since(pair)));

export class Fleet {
  constructor() {
    this.asked = -Infinity;
  }

  async refresh() {
    if (performance.now() - this.asked < EVERY_MS) return;
    this.asked = performance.now();
    try {
      this.found = await get("api/v1/worse");
    } catch (error) {
      this.asked = -Infinity; // the next report asks again
      throw error;
    }
  }

  render() {
    if (this.found === undefined || this.found === this.drawn) return;
    this.drawn = this.found;
    const { worse, pairs, share } = this.found;
    byId("fleet").hidden = pairs === 0;
    byId("fleet-worse").replaceChildren(...worse.slice(0, SHOWN).map(item));
    byId("fleet-worse").hidden = worse.length === 0;
    const more = worse.length > SHOWN ? `and ${count(worse.length - SHOWN)} more. ` : "";
    byId("fleet-promise").textContent = `${worse.length === 0 ? `None of ${count(pairs)} pairs of a model and a rival is listed. ` : more}Of the pairs in one list, made at a time fixed in advance, ${percent(share)} at most are expected to have never been worse; that is not promised of all lists together, nor of a moment chosen after seeing evidence, and a model that has recovered may be listed.`;
  }
}
