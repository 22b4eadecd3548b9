// First and last predictions of an id against its label (join.conflicts: both), by waiting time.

import { count, DASH, duration, percent, signed } from "./format.js";
import { table } from "./tables.js";

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
