// A verdict in words: what is shown, against whom, since when, and how sure it is.

import { both, duration, when } from "./format.js";

// Whom a verdict is against: by cohorts, one that is not worse is against both.
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

// What better and worse mean where a verdict is not about how often the model is right.
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

// How a model's verdict is written: one of the three, or why there is none.
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

// Since when it holds, and whether it is confirmed; nothing of what is open.
export function sinceOf(row, written = when) {
  const since = row.verdict_since_timestamp_seconds;
  if (!["better", "worse"].includes(stateOf(row)) || since === undefined) return "";
  return `since ${written(since)}${row.verdict_status === "confirmed" ? ", confirmed" : ""}`;
}

// Interval of the time since which a verdict by cohorts holds; without a first time, it may be before all that was judged.
export function between(earliest, latest, written = both) {
  if (latest === undefined) return "";
  return earliest === undefined ? `${written(latest)} at the latest` : `between ${written(earliest)} and ${written(latest)}`;
}

// The same of a row, behind the time itself.
export function betweenOf(row) {
  const found = sinceOf(row) && between(row.verdict_earliest_timestamp_seconds, row.verdict_latest_timestamp_seconds);
  return found && ` (${found})`;
}

// A first verdict is no change that somebody would look for.
export function changeOf(row, written = both) {
  const before = row.verdict_before;
  if (before === undefined || before === "open" || before === row.verdict) return "";
  return `was ${before} until ${written(row.verdict_changed_timestamp_seconds)}`;
}
