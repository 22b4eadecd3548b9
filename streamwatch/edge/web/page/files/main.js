// Follows the stream of news, draws at most once a frame, and shows the view that the address names.

import { Alarms } from "./alarms.js";
import { events, get, Unauthorized } from "./api.js";
import { Comparisons } from "./comparisons.js";
import { byId, mark, say } from "./dom.js";
import { Folds } from "./folds.js";
import { both, moment, time, zones } from "./format.js";
import { renderHealth, version } from "./health.js";
import { askToken, welcome } from "./login.js";
import { Model } from "./model.js";
import { Overview } from "./overview.js";
import { Pace } from "./pace.js";
import { remedy, runbook } from "./remedies.js";
import { remembered, switchDetails } from "./sections.js";
import { apply, state } from "./state.js";

const HEALTH_MS = 15_000;
const UNREADY_MS = 1_000;
const TICK_MS = 5_000; // "12 s ago" grows without a report, too
const LONGEST_WAIT_MS = 10_000;
const QUIET_MS = 2_500; // a reconnection shorter than this is nobody's business

const overview = new Overview(() => draw());
const alarms = new Alarms();
let model = null;
let pace = overview.pace; // of what is shown
let due = false;
let lostTimer;
let began; // version of the daemon that this page is from
let told; // what the banner says

function draw() {
  const wanted = title(); // not within a frame: a tab in the background has none
  if (document.title !== wanted) document.title = wanted;
  if (due) return;
  due = true;
  requestAnimationFrame(() => {
    due = false;
    renderHealth();
    renderBanner();
    if (model === null) {
      overview.render();
      alarms.render();
    }
  });
}

// Refreshes the view after a report or a choice; a tab in the background requests nothing.
function renew() {
  if (!document.hidden) pace.poke();
}

// Title of the tab, which also shows lost connections and worse models.
function title() {
  const worse = state.counts?.worse;
  const what = model ? `${model.name} · streamwatch` : worse ? `(${worse}) streamwatch` : "streamwatch";
  return state.lost ? `No connection · ${what}` : what;
}

function connection(text, how) {
  say(byId("connection"), text);
  mark(byId("connection"), "data-state", how);
}

function connected() {
  clearTimeout(lostTimer);
  lostTimer = undefined;
  if (state.lost) pace.hurry();
  state.lost = null;
  connection(state.published ? `live · ${time(state.published)}` : "live", "live");
  mark(byId("connection"), "title", state.published ? moment(state.published) : null);
}

function lost(why) {
  connection("reconnecting…", "lost");
  lostTimer ??= setTimeout(() => {
    state.lost = why;
    draw();
  }, QUIET_MS);
}

// What is wrong with the page itself, and the page of the documentation with the remedy, if any; null if all is well.
function trouble() {
  if (state.lost) {
    const shows = state.published ? `The page shows the numbers of ${both(state.published)}. ` : "";
    return [`${state.lost} ${shows}Trying again… `, runbook("Down")];
  }
  if (pace.failing !== null) {
    return [`Since ${both(pace.failing)} the daemon does not answer with numbers; older ones are shown. Trying again… `, runbook("Down")];
  }
  began ??= version();
  if (version() === began) return null;
  return [`This page is of streamwatch ${began}, and the daemon is now ${version()}: reload the page.`, null];
}

function renderBanner() {
  const found = trouble();
  const text = JSON.stringify(found);
  if (text === told) return;
  told = text;
  byId("banner").hidden = found === null;
  if (found) byId("banner").replaceChildren(found[0], ...(found[1] ? [remedy(found[1])] : []));
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function follow() {
  let wait = 500;
  for (;;) {
    let why = "The connection was lost.";
    try {
      alarms.catchUp((await get("api/v1/alarms?limit=50")).alarms);
      if (state.alarms.some((alarm) => alarm.model === model?.name)) pace.hurry();
      for await (const { data } of events("api/v1/stream")) {
        wait = 500;
        welcome();
        apply(data);
        alarms.announce(data.alarms);
        connected();
        draw();
        if (data.alarms.length) pace.hurry();
        else renew();
      }
    } catch (error) {
      if (error instanceof Unauthorized) {
        connection("a token is needed", "lost");
        await askToken();
        continue;
      }
      if (error.status === 503) why = "Too many pages are open.";
    }
    lost(why);
    await pause(wait * (0.75 + Math.random() / 2));
    wait = Math.min(wait * 2, LONGEST_WAIT_MS);
  }
}

async function watchHealth() {
  for (;;) {
    try {
      state.health = await get("api/v1/health");
      draw();
    } catch {
      // follow() reports a lost connection, and asks for the token
    }
    await pause(state.health?.ready && state.counts?.models > 0 ? HEALTH_MS : UNREADY_MS);
  }
}

// A name as the address has it; one that somebody typed may be no escaped text, and is taken as it stands.
function unescaped(name) {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

function route() {
  const named = /^#\/model\/(.+)$/.exec(location.hash);
  const left = model?.name;
  model?.destroy();
  if (pace !== overview.pace) pace.end();
  if (named) model = new Model(unescaped(named[1]), overview.choices.address());
  else if (location.hash === "#/comparisons") model = new Comparisons();
  else model = location.hash === "#/folds" ? new Folds() : null;
  if (model === null) overview.choices.read(/^#\/\?(.*)$/.exec(location.hash)?.[1] ?? "");
  pace = model ? new Pace(() => model?.refresh()) : overview.pace;
  pace.hurry();
  byId("overview").hidden = model !== null;
  if (model) {
    scrollTo(0, 0);
    byId("model").querySelector("h1").focus({ preventScroll: true });
  } else if (left !== undefined) overview.focus(left);
  draw();
}

const THEMES = ["automatic", "light", "dark"];

function theme(chosen) {
  if (chosen === "automatic") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
  localStorage.setItem("streamwatch-theme", chosen);
  say(byId("theme-name"), chosen);
  model?.repaint();
}

byId("theme").addEventListener("click", () => {
  const now = document.documentElement.dataset.theme ?? "automatic";
  theme(THEMES[(THEMES.indexOf(now) + 1) % THEMES.length]);
});
say(byId("zone"), `Times in ${zones()}`);
say(byId("theme-name"), document.documentElement.dataset.theme ?? "automatic");
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => model?.repaint());
byId("skip").addEventListener("click", () => byId("content").focus());
addEventListener("hashchange", route);
document.addEventListener("visibilitychange", renew);
remembered(byId("daemon"), "daemon");
switchDetails(() => pace.hurry());
setInterval(draw, TICK_MS);
route();
follow();
watchHealth();
