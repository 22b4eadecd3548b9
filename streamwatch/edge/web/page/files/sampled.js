// Sampled labels (requested with a known probability): estimates for all predictions, and how many came.

import { element } from "./dom.js";
import { both, count, duration, percent, signed } from "./format.js";
import { table } from "./tables.js";

const interval = (found, shown) => (found?.lower === undefined ? "–" : `${shown(found.lower)} to ${shown(found.upper)}`);
const OPPONENTS = { persistent_at_prediction: "no change", majority: "the majority" };

export function sampled(found) {
  if (found === undefined) return [];
  const { accuracy, leads, settled } = found;
  const panel = table("Sampled labels", ["of all predictions", "estimate", "interval", "effective labels"], [
    ["accuracy", percent(accuracy?.value), interval(accuracy, percent), count(accuracy?.effective_labels)],
    ...Object.entries(leads).map(([name, lead]) => [
      `lead over ${OPPONENTS[name] ?? name}`, lead.value === undefined ? "–" : signed(lead.value), interval(lead, signed), count(lead.effective_labels),
    ]),
  ]);
  const about = accuracy === undefined ? "" : ` They are about predictions from ${both(found.since_timestamp_seconds)} to ${both(found.until_timestamp_seconds)}, ${duration(settled.age_seconds)} old or older.`;
  panel.append(element("p", { class: "minor" },
    `${percent(found.share_expected)} of predictions have their label asked for, by design. Every label is weighted by its probability, so these are the numbers of all predictions; intervals hold however often you look.${about} ` +
    `Of ${count(settled.labels_asked)} labels asked for, ${count(settled.labels_arrived)} have come.`));
  return [panel];
}
