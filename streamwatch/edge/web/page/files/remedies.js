// Remedies of problems: a sentence, a page of the documentation, and a command.

import { element } from "./dom.js";

const DOCS = "https://github.com/streamwatch/streamwatch/blob/main/"; // where alerting rules link to as well
const RUNBOOKS = "deploy/runbooks/";
const SENTENCES = {
  ClassesDisjoint: "Write the classes of both sides alike, with aliases in the mapping.",
  ScoresAsClasses: "Map the score with the threshold that makes a class of it.",
  NothingJoins: "Compare the ids of predictions and labels: streamwatch inspect shows those that match nothing.",
  LabelsStopped: "Repair or restart what writes the labels; what arrives within the horizon still counts.",
  Down: "Is the daemon running? Start it: it goes on where it stopped.",
  KafkaUnreachable: "Restore the connection to Kafka: reading goes on by itself.",
  PredictionsRepeated: "Map a second field that distinguishes predictions of one id, such as the version.",
  StandbyDiverged: "Copy the holder's state to this replica: it takes over from nobody, and stops reading once 64 MB of results wait in it.",
  ModelWorseThanPersistent: "Find out what changed at that time; roll back, retrain, or use the last known label meanwhile.",
  ModelWorseThanMajority: "Roll back or retrain; if the model is meant for a rare class, judge it by another utility.",
  DriftAlarm: "Look whether the classes or the model changed: the charts of classes show it.",
};

export const runbook = (name) => `${RUNBOOKS}${name}.md`;

const nameOf = (page) => page.slice(page.lastIndexOf("/") + 1, -3);

// The command that examines the whole daemon.
export const doctor = () => element("span", { class: "remedy" }, "What else is wrong, and why: ", element("code", {}, `streamwatch doctor --url ${location.origin}`));

// Remedy of a problem: the sentence of its page in the documentation, and a link.
export function remedy(page) {
  const sentence = SENTENCES[nameOf(page)];
  const kind = page.startsWith(RUNBOOKS) ? "Runbook" : "Documentation";
  const link = element("a", { href: DOCS + page, target: "_blank", rel: "noopener noreferrer" }, `${kind}: ${nameOf(page)}`);
  return element("span", { class: "remedy" }, sentence ? `${sentence} ` : null, link);
}
