// Asks for the token and keeps it until the tab is closed.

import { setToken } from "./api.js";
import { byId, element } from "./dom.js";

let asking;

function made() {
  const wrong = element("p", { class: "wrong", id: "login-wrong", role: "alert", hidden: true }, "That token was not accepted.");
  const form = element("form", { id: "login-form" },
    element("h2", { id: "login-title" }, "Sign in with a token"),
    element("p", { class: "soft" }, "This daemon requires the token that is set in ", element("code", {}, "http.token"), ". The browser keeps it until you close this tab."),
    element("input", { type: "text", autocomplete: "username", value: "streamwatch", hidden: true }),
    element("label", {}, "Token ", element("input", { type: "password", id: "token", autocomplete: "current-password", required: true })),
    wrong, element("button", { type: "submit" }, "Show the numbers"));
  const dialog = element("dialog", { id: "login", "aria-labelledby": "login-title" }, form);
  document.body.append(dialog);
  return dialog;
}

export function askToken() {
  asking ??= new Promise((resolve) => {
    const dialog = byId("login") ?? made();
    const form = byId("login-form");
    byId("login-wrong").hidden = !dialog.dataset.tried;
    const given = (event) => {
      event.preventDefault();
      dialog.dataset.tried = "yes";
      setToken(byId("token").value.trim());
      form.removeEventListener("submit", given);
      dialog.close();
      asking = undefined;
      resolve();
    };
    form.addEventListener("submit", given);
    dialog.addEventListener("cancel", (event) => event.preventDefault());
    if (!dialog.open) dialog.showModal();
    byId("token").select();
  });
  return asking;
}

export function welcome() {
  delete byId("login")?.dataset.tried;
}
