// Recovery after drifts: the drift under way and the last that ended, as rows of a table.

import { both, count, percent } from "./format.js";

export function recovery(found) {
  const { under_way: now, last } = found ?? {};
  const rows = [];
  if (now) rows.push(["recovering", `since outcome ${count(now.since_outcome)} (alarm at ${both(now.alarm_timestamp_seconds)}), error now ${percent(now.error_now_ratio)}, before ${percent(now.error_before_ratio)}`]);
  if (last) rows.push(["last drift", `error rose by ${percent(last.depth)}, ${backAfter(last.outcomes)}`]);
  return rows;
}

function backAfter(outcomes) {
  if (outcomes === null) return "not back";
  return outcomes ? `back after ${count(outcomes)} outcomes` : "within its bound";
}
