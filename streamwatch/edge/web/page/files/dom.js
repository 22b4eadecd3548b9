// Makes elements without parsing markup, so that names are never parsed.

const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

export function element(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

export function drawn(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

function filled(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== null && value !== false) node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

// Sets a text only if it differs, as writing the same one costs a layout.
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function mark(node, name, value) {
  if (value === undefined || value === null) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

// Arranges children in the given order with few moves; removes others; keeps the focus.
export function arrange(parent, children) {
  const focused = document.activeElement;
  let at = parent.firstElementChild;
  for (const child of children) {
    if (child === at) at = at.nextElementSibling;
    else parent.insertBefore(child, at);
  }
  while (at) {
    const next = at.nextElementSibling;
    at.remove();
    at = next;
  }
  if (focused !== document.activeElement && parent.contains(focused)) focused.focus({ preventScroll: true });
}

// Shows a page in place of the list of models, with a way back to it; returns its node.
export function opened(title, back, beside, ...parts) {
  const node = byId("model");
  node.replaceChildren(
    element("p", { class: "back" }, element("a", { href: back }, "← All models")),
    element("div", { class: "bar" }, element("h1", { tabindex: "-1" }, title), beside),
    ...parts,
  );
  node.hidden = false;
  return node;
}

// Ends such a page, and the requests under way.
export function closed(page) {
  page.leave.abort();
  page.node.hidden = true;
  page.node.replaceChildren();
}
