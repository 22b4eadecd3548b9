// Filter, order and page of the list of models: stored in the address, sent to the server.

import { byId, element } from "./dom.js";

export const PAGE = 50;
const SORTS = [ // name for the server, title, whether the largest comes first
  ["attention", "Needs attention"], ["model", "Model"], ["accuracy", "Accuracy"], ["no_change", "No change"], ["majority", "Most frequent class"],
  ["last_prediction", "Last prediction", true], ["last_label", "Last label", true], ["kappa_plus", "κ⁺"], ["last_alarm", "Last alarm", true],
  ["delay", "Label delay", true], ["pending", "Pending", true], ["outcomes", "Outcomes", true],
];
const PLAIN = 7; // the others are of columns that details have
const DEFAULTS = { sort: "attention", order: null, filter: "", group: "", prefix: "", page: "1" };

export class Choices {
  constructor(changed) {
    this.changed = changed;
    byId("sorter").append(...SORTS.map(([key, title], at) => element("option", { value: key, class: at >= PLAIN ? "detail" : null }, title)));
    byId("sorter").addEventListener("change", () => this.sortBy(byId("sorter").value));
    byId("filter").addEventListener("input", () => this.set({ filter: byId("filter").value.trim() }));
    byId("grouper").addEventListener("change", () => this.set({ group: byId("grouper").checked ? "on" : "", prefix: "" }));
    byId("previous").addEventListener("click", () => this.turn(-1));
    byId("next").addEventListener("click", () => this.turn(1));
    this.read("");
  }

  // Reads the part of the address after "#/?"; invalid choices become the defaults.
  read(query) {
    const given = new URLSearchParams(query);
    this.sort = SORTS.find(([key]) => key === given.get("sort")) ? given.get("sort") : "attention";
    this.down = given.has("order") ? given.get("order") === "descending" : this.downFirst(this.sort);
    this.page = Math.max(0, (Number.parseInt(given.get("page"), 10) || 1) - 1);
    this.filter = (given.get("filter") ?? "").slice(0, 128);
    this.group = given.get("group") === "on" ? "on" : "";
    this.prefix = (given.get("prefix") ?? "").slice(0, 128);
    this.show();
  }

  show() {
    byId("sorter").value = this.sort;
    if (byId("filter").value.trim() !== this.filter) byId("filter").value = this.filter;
    byId("grouper").checked = this.group === "on";
  }

  downFirst(key) {
    return Boolean(SORTS.find(([name]) => name === key)[2]);
  }

  // Writes the address that `read` reads, without defaults.
  address(other = {}) {
    const chosen = {
      sort: this.sort,
      order: this.down === this.downFirst(this.sort) ? null : this.down ? "descending" : "ascending",
      filter: this.filter,
      group: this.group,
      prefix: this.prefix,
      page: String(this.page + 1),
      ...other,
    };
    const given = new URLSearchParams(Object.keys(DEFAULTS).filter((key) => chosen[key] !== DEFAULTS[key]).map((key) => [key, chosen[key]]));
    return given.size ? `#/?${given}` : "#/";
  }

  // Query for the server.
  path({ lines, details }) {
    const asked = { sort: this.sort, order: this.down ? "descending" : "ascending", first: String(this.page * PAGE), rows: String(PAGE) };
    if (this.filter) asked.filter = this.filter;
    if (this.prefix) asked.prefix = this.prefix;
    else if (this.group) asked.group = "1";
    if (lines) asked.lines = "1";
    if (details) asked.details = "1";
    return `api/v1/list?${new URLSearchParams(asked)}`;
  }

  // Why the list is empty, of a daemon that watches models.
  nothingFound() {
    const named = this.filter && `name contains “${this.filter}”`;
    if (this.prefix) return `No model of the group “${this.prefix}”${named && ` whose ${named}`} is watched now.`;
    return `No model's ${named}.`;
  }

  set(choice) {
    Object.assign(this, { page: 0 }, choice);
    this.show();
    history.replaceState(null, "", this.address());
    this.changed();
  }

  sortBy(key, down = this.downFirst(key)) {
    this.set({ sort: key, down });
  }

  turn(pages) {
    this.set({ page: Math.max(0, this.page + pages) });
    byId("models").scrollIntoView({ block: "nearest" });
  }
}
