// Table of a model's measures, bounds and baselines of the catalogue, under every forgetting.

import { get } from "./api.js";
import { element } from "./dom.js";
import { count, percent, ratio } from "./format.js";
import { table } from "./tables.js";

let listed;

// The catalogue, which is the same for all models; requested once, and again after a failure.
export async function catalogue() {
  listed ??= await get("api/v1/catalogue");
  return listed;
}

const plain = (name) => name.replace(/_ratio$/, "").replaceAll("_", " ");
const heading = ({ name, help }) => element("span", { title: help }, plain(name));

function formatOf(name) {
  if (name.endsWith("_ratio")) return percent;
  return name.startsWith("effective_sample_size") ? count : ratio;
}

// A row for each estimate: its name, a value under each forgetting, and its description.
export function estimates({ measures, bounds, baselines }, metrics) {
  const forgettings = Object.keys(metrics.accuracy_ratio ?? {});
  const row = (line, name, values, format) => [name, ...forgettings.map((of) => format(values?.[of])), element("span", { class: "words" }, line.help)];
  const rows = [
    ...measures.map((line) => row(line, plain(line.name), metrics[line.name], formatOf(line.name))),
    row({ help: "Number of outcomes that the estimates are worth" }, "effective outcomes", metrics.effective_sample_size, count),
    ...bounds.map((line) => row(line, `bound: ${plain(line.name)}`, metrics.accuracy_bound_ratio?.[line.name], percent)),
    ...baselines.map((line) => row(line, `accuracy of ${plain(line.name)}`, metrics.baseline_accuracy_ratio?.[line.name], percent)),
  ];
  return table("Estimates", ["measure", ...forgettings, "what it is"], forgettings.length ? rows : [], "wide");
}

// Heading and value of each measure per class, which is kept under one forgetting.
export function classColumns({ per_class: measures }) {
  return measures.map((line) => ({
    heading: heading(line),
    value: (metrics, of) => formatOf(line.name)(Object.values(metrics[line.name]?.[of] ?? {})[0]),
  }));
}
