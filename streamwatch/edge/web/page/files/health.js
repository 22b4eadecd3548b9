// Health of the daemon: chips on top, and a table of facts.

import { arrange, byId, element, mark, say } from "./dom.js";
import { ago, bytes, count, moment, percent } from "./format.js";
import { doctor, remedy, runbook } from "./remedies.js";
import { state } from "./state.js";

const total = (tree) => (typeof tree === "number" ? tree : Object.values(tree ?? {}).reduce((sum, below) => sum + total(below), 0));

// Threshold of the alert rule PredictionsRepeated.
const MANY = 0.01;

// Role of this replica; null where there is only one.
const PARTS = {
  catching_up: ["standby, catching up", "fair"],
  standby: ["standby: another replica publishes and notifies", "good"],
  taking_over: ["taking over from another replica", "fair"],
  holder: ["publishes and notifies", "good"],
  diverged: ["standby with other numbers than the holder's", "bad", "StandbyDiverged"],
};

function part(stream) {
  const found = Object.entries(stream.standby_role ?? {}).find(([, holds]) => holds);
  return found ? PARTS[found[0]] : null;
}

// Tells whether the state is open; before that, nothing is known of it, and Kafka is not asked.
const opened = ({ ready, stream }) => ready || stream.commits_total !== undefined;

// Share of predictions that repeat an id and a model, of which only one counts.
function repeated(stream) {
  const again = total(stream.predictions_duplicate_total) + total(stream.predictions_conflict_total);
  return again ? again / (again + total(stream.predictions_accepted_total)) : 0;
}

// Returns [text, good | fair | bad, page with the remedy] for each chip.
function chips(health) {
  const { ready, reasons, stream } = health;
  const lag = total(stream.consumer_lag_records);
  if (state.lost) return [["no answer", "bad"]]; // the banner above says what to do
  if (!opened(health)) return [[reasons[0], "bad"]];
  return [
    ready ? ["ready", "good"] : [reasons[0] ?? "not ready", "bad", reasons[0]?.startsWith("Kafka") ? "KafkaUnreachable" : undefined],
    stream.kafka_up ? ["Kafka reachable", "good"] : ready ? ["Kafka unreachable", "bad", "KafkaUnreachable"] : null,
    stream.caught_up ? ["caught up", "good"] : [lag ? `${count(lag)} records behind` : "catching up", "fair"],
    stream.state_durable ? ["state durable", "good"] : ["state in memory only", "fair"],
    part(stream),
    repeated(stream) > MANY ? [`${percent(repeated(stream))} of predictions repeat an id: two models with one name?`, "bad", "PredictionsRepeated"] : null,
  ].filter((chip) => chip !== null);
}

// Topic with invalid records, their share, and the most frequent reason.
function invalidByTopic(stream) {
  const topics = {};
  for (const [reason, counts] of Object.entries(stream.records_invalid_total ?? {})) {
    for (const [topic, records] of Object.entries(counts)) (topics[topic] ??= []).push([records, reason]);
  }
  return Object.entries(topics).sort().map(([topic, reasons]) => {
    const [[, most]] = reasons.sort(([a], [b]) => b - a);
    const invalid = reasons.reduce((sum, [records]) => sum + records, 0);
    return [`… of ${topic}`, `${count(invalid)} of ${count(stream.records_evaluated_total?.[topic])}, mostly ${most}`];
  });
}

// Shares of a topic's predictions that were matched with a label, and of its labels with a prediction.
function joinByTopic(stream) {
  const results = stream.topic_label_results_total?.joined;
  const sides = [
    ["Predictions", stream.topic_predictions_total, stream.topic_predictions_joined_total],
    ["Labels", stream.topic_labels_total, results],
  ];
  return sides.flatMap(([side, totals, joined]) => Object.entries(totals ?? {}).sort().map(([topic, records]) => [
    `${side} of topic ${topic}`,
    records ? `${percent((joined?.[topic] ?? 0) / records)} of ${count(records)} joined` : "none",
  ]));
}

// Version of the daemon that answered; undefined before an answer.
export const version = () => Object.keys(state.health?.stream.build_info ?? {})[0];

function facts(health) {
  const { ready, reasons, stream } = health;
  const once = (text) => (opened(health) ? text : "–");
  return [
    ["Ready", state.lost ? "no answer" : ready ? "yes" : "no"],
    ...reasons.map((reason, at) => [at ? `… ${at + 1}` : "Because", reason]),
    ["Kafka", once(stream.kafka_up ? "reachable" : "unreachable")],
    ["Reading", once(stream.caught_up ? "caught up" : "catching up")],
    ["Behind by", once(`${count(total(stream.consumer_lag_records))} records`)],
    ["Part", part(stream)?.[0] ?? null],
    ["State", once(stream.state_durable ? "durable" : "in memory")],
    ["Predictions accepted", count(stream.predictions_accepted_total)],
    ["Predictions repeated", stream.predictions_accepted_total === undefined ? null : percent(repeated(stream))],
    ["Labels accepted", count(stream.labels_accepted_total)],
    ...joinByTopic(stream),
    ["Invalid records", once(count(total(stream.records_invalid_total)))],
    ...invalidByTopic(stream),
    ["Orphaned labels", count(stream.labels_orphaned_total)],
    ["Expired unlabelled", count(stream.predictions_expired_total)],
    ["Alerts waiting", stream.notifications_pending === undefined ? null : count(total(stream.notifications_pending))],
    ["Memory", bytes(stream.process_resident_memory_bytes)],
    ["Started", stream.process_start_time_seconds ? ago(stream.process_start_time_seconds) : "–", stream.process_start_time_seconds],
    ["Last report", state.published ? ago(state.published) : "none yet", state.published],
    ["Version", version() ?? "–"],
  ].filter(([, value]) => value !== null);
}

const kept = { chips: [], facts: new Map(), wrong: "" };

// Lists the daemon's problems, each with its remedy.
function tellWrong(shown) {
  const wrong = shown.filter(([, , page]) => page !== undefined);
  const rendered = JSON.stringify(wrong);
  if (rendered === kept.wrong) return;
  kept.wrong = rendered;
  byId("wrong").replaceChildren(...wrong.map(([text, , name]) => element("li", {}, `${text}. `, remedy(runbook(name)))), element("li", {}, doctor()));
  byId("wrong").hidden = wrong.length === 0;
}

export function renderHealth() {
  if (!state.health) return;
  const shown = chips(state.health);
  shown.forEach(([text, how], index) => {
    kept.chips[index] ??= element("li");
    say(kept.chips[index], text);
    mark(kept.chips[index], "data-state", how);
  });
  arrange(byId("chips"), kept.chips.slice(0, shown.length));
  tellWrong(shown);
  const nodes = facts(state.health).flatMap(([name, value, at]) => {
    if (!kept.facts.has(name)) kept.facts.set(name, [element("dt", {}, name), element("dd")]);
    const pair = kept.facts.get(name);
    say(pair[1], value);
    mark(pair[1], "title", at ? moment(at) : null);
    return pair;
  });
  arrange(byId("health"), nodes);
  mark(byId("health"), "title", state.published ? `as of ${moment(state.published)}` : null);
  say(byId("version"), `streamwatch ${version() ?? ""}`);
}
