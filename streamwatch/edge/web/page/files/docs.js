// The OpenAPI document as a page: every route with its parameters and answers, every schema.

import { get, Unauthorized } from "./api.js";
import { byId, element, say } from "./dom.js";
import { askToken } from "./login.js";

const REF = /^#\/components\/(\w+)\/(\w+)$/;
let whole;

// Resolves a reference; anything else is returned as it is.
function resolved(part) {
  const named = REF.exec(part?.$ref ?? "");
  return named ? { ...whole.components[named[1]][named[2]], ...part, $ref: undefined, named: named[2] } : part;
}

// Text with code between backticks → nodes.
const prose = (text) => text.split("`").map((part, at) => (at % 2 ? element("code", {}, part) : part));

// A schema's type in a few words, with a link to a named schema.
function typeOf(schema) {
  const named = REF.exec(schema.$ref ?? "");
  if (named) return element("a", { href: `#schema-${named[2]}` }, named[2]);
  if (schema.enum) return element("code", {}, schema.enum.map((value) => JSON.stringify(value)).join(" | "));
  if (schema.const !== undefined) return element("code", {}, JSON.stringify(schema.const));
  if ((schema.oneOf ?? schema.anyOf)) return element("span", {}, ...(schema.oneOf ?? schema.anyOf).flatMap((each, at) => (at ? [" or ", typeOf(each)] : [typeOf(each)])));
  if (schema.type === "array") return element("span", {}, "list of ", typeOf(schema.items ?? {}));
  if (typeof schema.additionalProperties === "object") return element("span", {}, "name → ", typeOf(schema.additionalProperties));
  const bounds = [schema.minimum === undefined ? "" : `≥ ${schema.minimum}`, schema.maximum === undefined ? "" : `≤ ${schema.maximum}`].filter((text) => text).join(", ");
  return element("span", {}, [schema.type].flat().join(" or ") || "anything", bounds && ` ${bounds}`);
}

function fields(schema) {
  const inner = schema.type === "array" ? (schema.items ?? {}) : typeof schema.additionalProperties === "object" ? schema.additionalProperties : schema;
  const properties = Object.entries(inner.properties ?? {});
  if (properties.length === 0) return element("p", {}, typeOf(schema));
  const required = new Set(inner.required ?? []);
  return element(
    "dl",
    { class: "fields" },
    ...properties.flatMap(([name, property]) => [
      element("dt", {}, element("code", {}, name), required.has(name) ? null : element("span", { class: "soft" }, " optional")),
      element("dd", {}, typeOf(property), property.description ? element("span", { class: "soft" }, " ", ...prose(property.description)) : null, property.properties || property.items?.properties ? fields(property) : null),
    ]),
  );
}

function answers(responses) {
  return Object.entries(responses).map(([status, part]) => {
    const answer = resolved(part);
    const contents = Object.entries(answer.content ?? {}).flatMap(([kind, { schema }], at) => [at ? ", " : " ", element("code", {}, kind), " ", schema ? typeOf(schema) : ""]);
    return element("li", {}, element("code", {}, status), " ", ...prose(answer.description), ":", ...contents);
  });
}

const anchor = (path) => `route-${path.replaceAll(/[^a-z0-9]+/gi, "-")}`;

function operation(path, { summary, description, parameters = [], responses, security }) {
  const taken = parameters.map(resolved);
  return element(
    "section",
    { class: "panel operation", id: anchor(path), "aria-label": path },
    element("h3", {}, element("code", {}, `GET ${path}`)),
    element("p", {}, ...prose(summary), "."),
    description ? element("p", { class: "soft" }, ...prose(description)) : null,
    security?.length === 0 ? element("p", { class: "soft" }, "Needs no token.") : null,
    taken.length
      ? element("dl", { class: "fields" }, ...taken.flatMap(({ name, in: where, required, schema, description: about }) => [
        element("dt", {}, element("code", {}, name), element("span", { class: "soft" }, ` in ${where}${required ? "" : ", may be absent"}`)),
        element("dd", {}, typeOf(schema), about ? element("span", { class: "soft" }, " ", ...prose(about)) : null),
      ]))
      : null,
    element("ul", { class: "answers" }, ...answers(responses)),
  );
}

function render() {
  byId("about").replaceChildren(`${whole.info.title} ${whole.info.version}. `, ...prose(whole.info.description));
  const byTag = grouped();
  byId("contents").replaceChildren(...[...byTag].map(([tag, routes]) =>
    element("p", {}, element("strong", {}, `${tag} `), ...routes.map(([path]) => element("a", { href: `#${anchor(path)}` }, path)))));
  byId("operations").replaceChildren(...[...byTag].flatMap(([tag, routes]) => [element("h2", {}, tag), ...routes.map(([path, item]) => operation(path, item.get))]));
  byId("schemas").replaceChildren(...Object.entries(whole.components.schemas).map(([name, schema]) =>
    element("section", { class: "panel operation", id: `schema-${name}`, "aria-label": name },
      element("h3", {}, name), schema.description ? element("p", { class: "soft" }, ...prose(schema.description)) : null, fields(schema))));
  document.getElementById(location.hash.slice(1))?.scrollIntoView();
}

function grouped() {
  const found = new Map();
  for (const entry of Object.entries(whole.paths)) {
    const [tag] = entry[1].get.tags;
    found.set(tag, [...(found.get(tag) ?? []), entry]);
  }
  return found;
}

for (;;) {
  try {
    whole = await get("api/v1/openapi.json");
    render();
    break;
  } catch (error) {
    if (!(error instanceof Unauthorized)) {
      say(byId("about"), `The description could not be loaded (${error.message}). Reload the page to try again.`);
      break;
    }
    await askToken();
  }
}
