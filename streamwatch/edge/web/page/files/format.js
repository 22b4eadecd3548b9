// Formats of numbers and times for people; a dash for undefined ones.

export const DASH = "–";
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const full = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "long" });
const utcClock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit", timeZone: "UTC" });
const utcDay = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

const defined = (value) => typeof value === "number" && Number.isFinite(value);

const compact = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 4 });
export const count = (value) => (defined(value) ? (Math.abs(value) < 1e7 ? whole : compact).format(value) : DASH);
export const percent = (value) => (defined(value) ? `${(value * 100).toFixed(1)}\u202f%` : DASH);
export const wholePercent = (value) => (defined(value) ? `${Math.round(value * 100)}\u202f%` : DASH);
export const ratio = (value) => (defined(value) ? value.toFixed(3).replace("-", "\u2212") : DASH);

export const signed = (value) => (value > 0 ? `+${ratio(value)}` : ratio(value));

export function short(value) {
  if (!defined(value)) return DASH;
  const size = Math.abs(value);
  const text = size !== 0 && (size < 0.001 || size >= 1e6) ? value.toExponential(2) : String(Number(value.toPrecision(4)));
  return text.replace("-", "\u2212");
}

export function duration(seconds) {
  if (!defined(seconds)) return DASH;
  for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "min"]]) {
    if (seconds >= size) return `${(seconds / size).toFixed(1)}\u202f${unit}`;
  }
  return seconds < 1 && seconds > 0 ? `${Math.round(seconds * 1000)}\u202fms` : `${seconds.toFixed(1)}\u202fs`;
}

// A delay that a share of labels does not exceed, of a row: the bound of a bucket, as delays are counted in buckets.
export function delayOf(row, share, sign = "≤\u202f") {
  if (!defined(row[`delay_${share}_seconds`])) return DASH;
  const bound = row[`delay_${share}_within_seconds`];
  return defined(bound) ? `${sign}${duration(bound)}` : `>\u202f${duration(row[`delay_${share}_seconds`])}`;
}

export function bytes(value) {
  if (!defined(value)) return DASH;
  for (const [size, unit] of [[1e9, "GB"], [1e6, "MB"]]) {
    if (value >= size) return `${(value / size).toFixed(1)}\u202f${unit}`;
  }
  return `${(value / 1e3).toFixed(0)}\u202fkB`;
}

// Tells whether a timestamp is a date, as records may carry any number.
const dated = (seconds) => defined(seconds) && Math.abs(seconds) < 8.64e12;

export const time = (seconds) => (dated(seconds) ? clock.format(seconds * 1000) : DASH);
export const moment = (seconds) => (dated(seconds) ? `${full.format(seconds * 1000)}${beside(seconds)}` : `${short(seconds)} s`);

// A local time in UTC, in brackets, with the day if that differs; empty where local time is UTC.
function beside(seconds) {
  const at = seconds * 1000;
  if (new Date(at).getTimezoneOffset() === 0) return "";
  const utc = utcDay.format(at);
  return ` (${utc === day.format(at) ? "" : `${utc}, `}${utcClock.format(at)} UTC)`;
}

// Local time followed by UTC, for sentences; elsewhere UTC is the element's title.
export const both = (seconds) => `${when(seconds)}${dated(seconds) ? beside(seconds) || " UTC" : ""}`;
export const bothClocks = (seconds) => `${time(seconds)}${dated(seconds) ? beside(seconds) || " UTC" : ""}`;

export const iso = (seconds) => (dated(seconds) ? new Date(seconds * 1000).toISOString() : null);

// Time zone of this browser, in which the page shows times: "UTC", "CET", "GMT+5:30".
export const zone = () => new Intl.DateTimeFormat("en-GB", { timeZoneName: "short" }).formatToParts().find(({ type }) => type === "timeZoneName").value;

// Note on the time zones of a page.
export const zones = () => (new Date().getTimezoneOffset() === 0 ? "UTC" : `${zone()}, UTC beside them`);

// Tells whether two times are of one day in this browser's time zone.
export const sameDay = (one, other) => new Date(one * 1000).toDateString() === new Date(other * 1000).toDateString();

export function when(seconds) {
  if (!dated(seconds)) return DASH;
  return sameDay(seconds, Date.now() / 1000) ? time(seconds) : `${day.format(seconds * 1000)}, ${time(seconds)}`;
}

export function ago(seconds) {
  if (!dated(seconds)) return DASH;
  const age = Date.now() / 1000 - seconds;
  if (age < 0) return when(seconds);
  if (age < 5) return "just now";
  for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "min"]]) {
    if (age >= size) return `${Math.floor(age / size)}\u202f${unit} ago`;
  }
  return `${Math.floor(age / 5) * 5}\u202fs ago`;
}
