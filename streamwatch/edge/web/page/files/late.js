// Tables on labels: late ones, those of revised predictions, and sampled ones.

import { element } from "./dom.js";
import { both, count, DASH, duration, percent, signed } from "./format.js";
import { table } from "./tables.js";
import { OPPONENTS } from "./verdict.js";

const between = ({ accuracy, lower, upper }) => `${percent(accuracy)} (${percent(lower)} – ${percent(upper)})`;
const NOTHING = "Undefined until 30 predictions are settled, which takes one horizon after the start.";

const UNDEFINED = {
  too_few_recent: "undefined: fewer than 30 of them have labels",
  hits_too_late: "undefined: hardly any label of a hit comes so soon; the settled accuracy holds",
  errors_too_late: "undefined: hardly any label of an error comes so soon; the settled accuracy holds",
};

function accuracies({ horizon_seconds: horizon, settled, delay_corrected: corrected, delay_corrected_undefined: why, naive, bias }) {
  const span = `${duration(horizon)} to ${duration(1.5 * horizon)}`;
  const recent = `predictions of the last ${duration(horizon / 2)}`;
  return [
    ...(settled ? [[`settled: predictions ${span} old`, between(settled), count(settled.effective_sample_size)]] : []),
    ...(corrected ? [
      [`${recent}, corrected for labels to come`, between(corrected), count(corrected.effective_sample_size)],
      [`${recent}, as labelled so far`, percent(naive), DASH],
      ["bias of the visible accuracy", signed(bias), DASH],
    ] : []),
    ...(settled && why in UNDEFINED ? [[`${recent}, corrected for labels to come`, UNDEFINED[why], DASH]] : []),
  ];
}

// Table of the shares labelled at about six ages, the last of them the horizon.
function delays(labelled) {
  if (labelled === undefined) return [];
  const { age_seconds: ages, errors, hits } = labelled;
  const rows = ages.map((age, at) => [duration(age), percent(errors?.[at]), percent(hits?.[at])]).filter((_, at) => at % 4 === 2);
  return [table("Share of labels that have arrived", ["age of the prediction", "of errors", "of hits"], rows)];
}

function changed(change) {
  if (change === undefined) return [];
  const { since_timestamp_seconds: since, earliest_timestamp_seconds: earliest, latest_timestamp_seconds: latest, before, after } = change;
  return [element("p", {}, `Predictions made since about ${both(since)} err ${after > before ? "more" : "less"}: ${percent(before)} → ${percent(after)} (between ${both(earliest)} and ${both(latest)}).`)];
}

// Warning where delays have changed, as corrections and early verdicts assume that they do not.
function moved(found, horizon) {
  const kinds = Object.entries(found ?? {}).map(([kind, { before_seconds: before, after_seconds: after }]) => `those of ${kind} ${duration(after)} instead of ${duration(before)}`);
  if (!kinds.length) return [];
  return [element("p", {}, `Delays have moved: ${kinds.join(", ")} (typical delay of predictions made ${duration(horizon / 2)} to ${duration(horizon)} ago, and of those before them). Until predictions with the new delays are settled, the corrected accuracy and early verdicts may be wrong.`)];
}

// Table of the shares of all predictions labelled at about six ages, and at the last known one.
export function labelled(found) {
  if (found === undefined || !found.age_seconds.length) return [];
  const { age_seconds: ages, labelled: all, labelled_hits: hits, labelled_errors: errors, classes } = found;
  const names = Object.keys(classes);
  const rows = ages.map((age, at) => [
    duration(age), percent(all[at]), percent(hits[at]), percent(errors[at]), ...names.map((name) => percent(classes[name][at] ?? null)),
  ]).filter((_, at) => at % 4 === 2 || at === ages.length - 1);
  return [table("Share of predictions labelled", ["age", "all", "as hits", "as errors", ...names.map((name) => `predicted ${name}`)], rows, "wide")];
}

export function late(found) {
  if (found === undefined) return [];
  const panel = table("Late labels", ["accuracy of", "", "effective outcomes"], accuracies(found), "", NOTHING);
  panel.append(...changed(found.change), ...moved(found.delays_moved, found.horizon_seconds));
  return [panel, ...delays(found.share_labelled)];
}

// First and last predictions of an id against its label (join.conflicts: both), by waiting time.

function whole({ outcomes, revised, gained, lost, first_accuracy: first, last_accuracy: last, revised_ratio: share, gain }) {
  const between = gain.lower === undefined ? "" : ` (${signed(gain.lower)} – ${signed(gain.upper)})`;
  return [
    ["accuracy of first predictions", percent(first), DASH],
    ["accuracy of last predictions", percent(last), DASH],
    ["gain by revision", `${signed(gain.value)}${between}`, `${count(gained)} made right, ${count(lost)} made wrong`],
    ["revised", percent(share), `${count(revised)} of ${count(outcomes)}`],
  ];
}

export function revisions(found) {
  if (found === undefined) return [];
  const { over_seconds: over, up_to_seconds: upTo, first_accuracy: first, last_accuracy: last, revised_ratio: share } = found.by_waiting_time;
  const rows = over.map((from, at) => [
    `${duration(from)} to ${duration(upTo[at])}`, percent(first[at]), percent(last[at]), signed(last[at] - first[at]), percent(share[at]),
  ]);
  return [
    table("Revised predictions", ["what", "faded", "since the start"], whole(found)),
    table("Revised predictions by waiting time", ["first prediction to label", "first", "last", "difference", "revised"], rows, "wide"),
  ];
}

// Sampled labels (requested with a known probability): estimates for all predictions, and how many came.

const interval = (found, shown) => (found?.lower === undefined ? "–" : `${shown(found.lower)} to ${shown(found.upper)}`);

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
