// Line charts over time, drawn by uPlot, with a legend of the values under the cursor, alarms as vertical marks, and
// a sentence for screen readers.

/* global uPlot */
import { element, say } from "./dom.js";
import { both, bothClocks, percent, sameDay, time, wholePercent } from "./format.js";

const HEIGHT = 210;
export const COLOURS = ["line-3", "line-2", "line-4", "line-5", "line-6"];
// Range of an axis of shares: whole tenths, and never empty.
export const shares = (_, low, high) => [Math.max(0, Math.floor(low * 10 - 0.1) / 10), Math.min(1, Math.max(0.1, Math.ceil(high * 10) / 10))];

const daily = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const hourly = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });

// Value of a custom property in the current theme, because a canvas does not support light-dark().
export function colour(name) {
  const probe = element("span", { class: "probe" });
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

export class Chart {
  // lines: [{name, colour, dash, width, hidden}], bands: [[upper, lower]] by index of the line
  constructor({ title, hint, lines, band, format, axisFormat = format, range, sync, dated = false }) {
    this.title = title;
    this.lines = lines;
    this.format = format;
    this.marks = [];
    this.canvas = element("div", { class: "canvas", role: "img", "aria-label": title });
    this.values = lines.map(() => element("span", { class: "legend-value" }));
    this.at = element("li", { class: "soft" });
    const items = lines.map((line, index) => {
      if (line.hidden) return null;
      const swatch = element("span", { class: `swatch${line.dash ? " dashed" : ""}` });
      swatch.style.color = colour(line.colour);
      return element("li", {}, swatch, line.name, " ", this.values[index]);
    });
    this.node = element(
      "figure",
      { class: "chart" },
      element("figcaption", {}, element("h2", {}, title), element("p", { class: "soft" }, hint)),
      element("ul", { class: "chart-legend" }, ...items, this.at),
      this.canvas,
    );
    const axis = { stroke: colour("soft"), grid: { stroke: colour("grid"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
    this.plot = new uPlot(
      {
        width: 300,
        height: HEIGHT,
        padding: [10, 26, 0, 0],
        legend: { show: false },
        cursor: { sync: { key: sync }, points: { size: 6 }, drag: { x: true, y: false } },
        scales: { x: { time: true }, y: { range } },
        axes: [
          { ...axis, space: 70, size: 28, values: (_, ticks) => ticks.map((at) => tick(at, ticks, dated)) },
          { ...axis, size: 52, space: 34, values: (_, ticks) => ticks.map((value) => axisFormat(value)) },
        ],
        series: [
          {},
          ...lines.map((line) => ({
            label: line.name,
            stroke: line.hidden ? "transparent" : colour(line.colour),
            width: line.hidden ? 0 : (line.width ?? 1.6),
            dash: line.dash,
            points: { show: false },
          })),
        ],
        bands: band ? [{ series: [band[0] + 1, band[1] + 1], fill: colour("band") }] : [],
        hooks: { draw: [(plot) => this.drawMarks(plot)], setCursor: [(plot) => this.showValues(plot.cursor.idx)] },
      },
      [[], ...lines.map(() => [])],
      this.canvas,
    );
    this.resized = new ResizeObserver(() => {
      const width = Math.floor(this.canvas.clientWidth);
      if (width > 0 && width !== this.plot.width) this.plot.setSize({ width, height: HEIGHT });
    });
    this.resized.observe(this.canvas);
  }

  // times: seconds; columns: one array per line; marks: times of alarms
  update(times, columns, marks) {
    this.marks = marks;
    this.plot.setData([times, ...columns]);
    this.showValues(this.plot.cursor.idx);
    const latest = this.lines.flatMap((line, index) => {
      const last = lastDefined(columns[index]);
      return last === null ? [] : [`${line.name} ${this.format(last)}`];
    });
    const clock = sameDay(times[0], times.at(-1)) ? bothClocks : both;
    const span = times.length > 1 ? ` from ${clock(times[0])} to ${clock(times.at(-1))}` : "";
    const alarms = marks.length === 1 ? "; 1 alarm" : marks.length ? `; ${marks.length} alarms` : "";
    this.canvas.setAttribute("aria-label", `${this.title}${span}. Latest: ${latest.join(", ") || "nothing yet"}${alarms}.`);
  }

  showValues(index) {
    const at = this.plot.data[0][index ?? this.plot.data[0].length - 1];
    say(this.at, at === undefined ? "" : `at ${both(at)}`);
    this.lines.forEach((line, at) => {
      const column = this.plot.data[at + 1];
      const value = index === null || index === undefined ? lastDefined(column) : column[index];
      say(this.values[at], value === null || value === undefined ? "–" : this.format(value));
    });
  }

  drawMarks(plot) {
    const { ctx, bbox } = plot;
    const ratio = devicePixelRatio;
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = colour("bad");
    ctx.lineWidth = ratio;
    ctx.setLineDash([4 * ratio, 3 * ratio]);
    for (const at of this.marks) {
      const x = Math.round(plot.valToPos(at, "x", true));
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      ctx.beginPath();
      ctx.moveTo(x - 4.5 * ratio, bbox.top - 1);
      ctx.lineTo(x + 4.5 * ratio, bbox.top - 1);
      ctx.lineTo(x, bbox.top + 7 * ratio);
      ctx.fill();
    }
    ctx.restore();
  }

  destroy() {
    this.resized.disconnect();
    this.plot.destroy();
  }
}

// Seconds are shown only where ticks are closer than a minute.
function tick(at, ticks, dated) {
  if (dated && ticks.length > 1 && ticks.at(-1) - ticks[0] > 86_400) return ticks[1] - ticks[0] < 86_400 ? `${daily.format(at * 1000)} ${hourly.format(at * 1000)}` : daily.format(at * 1000);
  return ticks.length > 1 && ticks[1] - ticks[0] < 60 ? time(at) : hourly.format(at * 1000);
}

function lastDefined(column) {
  for (let at = column.length - 1; at >= 0; at -= 1) if (column[at] !== null && column[at] !== undefined) return column[at];
  return null;
}

// Charts of the shares and the recalls of true classes over time, which show which of them changed.

const KINDS = [
  ["class_truth_ratio", "Share of each class", "Share of the labels, faded. If the shares move while the recalls stay, the classes have changed, not the model."],
  ["recall_ratio", "Recall of each class", "Share of the class that the model recognised, faded. If the recalls move while the shares stay, the model no longer fits."],
];

export function classCharts(past, sync, alarms) {
  return KINDS.flatMap(([metric, title, hint]) => {
    const classes = past.defined(metric);
    if (classes.length === 0) return [];
    const lines = classes.map((name, at) => ({ name, colour: at === 0 ? "line-1" : COLOURS[(at - 1) % COLOURS.length], dash: at > COLOURS.length ? [5, 3] : undefined }));
    return [{
      chart: new Chart({ title, hint, lines, sync, format: percent, axisFormat: wholePercent, range: shares }),
      columns: classes.map((name) => [metric, name]),
      alarms,
    }];
  });
}
