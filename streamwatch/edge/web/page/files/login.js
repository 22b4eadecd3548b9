// Asks for the token and keeps it until the tab is closed.

import { setToken } from "./api.js";
import { byId } from "./dom.js";

let asking;

export function askToken() {
  asking ??= new Promise((resolve) => {
    const dialog = byId("login");
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
  delete byId("login").dataset.tried;
}
