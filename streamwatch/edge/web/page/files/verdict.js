// A verdict in words: its side, opponent, since when, and status.

import { both, duration, when } from "./format.js";

// Opponents of verdicts by cohorts and from sampled labels.
export const OPPONENTS = { persistent_at_prediction: "no change", majority: "the majority" };

// Opponent of a verdict; one by cohorts that is not worse has both.
export function against({ verdict, opponent, basis }) {
  if (basis !== "cohorts") return "no change";
  if (verdict === "worse") return opponent === "majority" ? "the majority" : "no change";
  return verdict === "better" ? "no change and the majority" : "no change or the majority";
}

const opponentOf = (row) =>
  against({ verdict: row.verdict, opponent: row.verdict_opponent, basis: row.verdict_opponent === undefined ? "labels" : "cohorts" });

const WORDS = { better: "Better than", worse: "Worse than" };
const MEANING = {
  better: "Shown to be right more often, currently.",
  worse: "Shown to be right less often, currently.",
  open: "Open: neither better nor worse than no change is shown.",
  waiting: "No label has matched a prediction of this model yet.",
  withheld: "No verdict: the classes of predictions and labels cannot be compared.",
};

// Meaning of better and worse, for verdicts by another utility than accuracy.
const MEANING_BY = {
  costs: {
    better: "Shown to cost less with its mistakes, currently.",
    worse: "Shown to cost more with its mistakes, currently.",
    open: "Open: neither that it costs less than no change nor that it costs more is shown.",
  },
  balanced: {
    better: "Shown to be right more often where every class counts alike, currently.",
    worse: "Shown to be right less often where every class counts alike, currently.",
  },
};

// Label of a model's verdict: one of the three, or why there is none.
export function stateOf(row) {
  if (row.waiting) return "waiting";
  return row.warning_page?.endsWith("/ClassesDisjoint.md") ? "withheld" : row.verdict;
}

export function wordsOf(row) {
  const state = stateOf(row);
  if (state === "waiting") return "No label yet";
  if (state === "withheld") return "Cannot be judged";
  return state === "open" ? "No clear difference" : `${WORDS[state]} ${opponentOf(row)}`;
}

export function meaningOf(row) {
  const age = row.verdict_age_seconds;
  const state = stateOf(row);
  return (MEANING_BY[row.verdict_utility]?.[state] ?? MEANING[state]) + (age === undefined ? "" : ` By the labels that predictions have at an age of ${duration(age)}.`);
}

// Time since when a verdict holds, and its status; empty for an open one.
export function sinceOf(row, written = when) {
  const since = row.verdict_since_timestamp_seconds;
  if (!["better", "worse"].includes(stateOf(row)) || since === undefined) return "";
  return `since ${written(since)}${row.verdict_status === "confirmed" ? ", confirmed" : ""}`;
}

// Interval of the time since when a verdict by cohorts holds; it has no beginning if that may precede all cohorts.
export function between(earliest, latest, written = both) {
  if (latest === undefined) return "";
  return earliest === undefined ? `${written(latest)} at the latest` : `between ${written(earliest)} and ${written(latest)}`;
}

// The same for a row, after the time itself.
export function betweenOf(row) {
  const found = sinceOf(row) && between(row.verdict_earliest_timestamp_seconds, row.verdict_latest_timestamp_seconds);
  return found && ` (${found})`;
}

// A model's first verdict is not shown as a change.
export function changeOf(row, written = both) {
  const before = row.verdict_before;
  if (before === undefined || before === "open" || before === row.verdict) return "";
  return `was ${before} until ${written(row.verdict_changed_timestamp_seconds)}`;
}
