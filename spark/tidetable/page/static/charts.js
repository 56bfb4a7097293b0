// Lines and bars over slots. A chart is one stop for the keyboard; arrow keys move a cursor in it.

import { hideTip, html, showTip, svg, whenRoom } from "./draw.js";
import { dayOfMonth, shortTime } from "./format.js";

const HIGH = 146;
const TOP = 10;
const BOTTOM = 36;
const LETTER = 6.2;

/**
 * points: [{ value: number | null, label, tick, time, lines }], in order; `time` is when a slot ends.
 * axis(value) is for the axis, whose steps are round in the unit that unit(largest value) gives;
 * limit: { value, label } is drawn as a line across. Values above `end` are cut there and printed.
 */
export function chart(container, { name, points, axis, unit = () => 1, bars = false, limit = null, end = null, high = HIGH, key }) {
  const known = points.filter((point) => point.value !== null);
  if (!known.length) {
    container.replaceChildren(html("p", { class: "muted empty" }, "Nothing to draw yet."));
    return;
  }
  const host = html("div", {
    class: "chart", tabindex: "0", role: "slider", "aria-label": name, "aria-valuemin": "1",
    "aria-valuemax": String(points.length), "aria-readonly": "true", "data-key": key,
  });
  container.replaceChildren(host);
  const view = { host, points, axis, unit, bars, limit, end, high, at: points.length - 1, plot: null };
  if (bars) view.at = 0;
  describe(view);
  listen(view);
  whenRoom(host, (width) => {
    view.high = Math.round(Math.max(high, Math.min(1.6 * high, width * 0.42)));
    paint(view, width);
  });
}

function describe(view) {
  const point = view.points[view.at];
  view.host.setAttribute("aria-valuenow", String(view.at + 1));
  view.host.setAttribute("aria-valuetext", [point.label, ...point.lines].join(", "));
}

function paint(view, width) {
  const { points, axis, unit, bars, limit, end, high } = view;
  const values = points.map((point) => point.value).filter((value) => value !== null);
  const most = end ?? Math.max(...values, limit ? limit.value : 0);
  const ticks = niceTicks(most / unit(most)).map((tick) => tick * unit(most));
  const top = Math.max(ticks.at(-1), most) || 1;
  const labels = ticks.map(axis);
  const left = 10 + LETTER * Math.max(4, ...labels.map((label) => label.length));
  const ceiling = end === null ? TOP : TOP + 14;
  const plot = {
    left, right: width - 8, width: width - 8 - left,
    y: (value) => ceiling + (high - ceiling - BOTTOM) * (1 - Math.min(value, top) / top),
    x: (at) => left + ((at + 0.5) * (width - 8 - left)) / points.length,
  };
  view.plot = plot;
  const picture = svg("svg", { width, height: high, viewBox: `0 0 ${width} ${high}`, "aria-hidden": "true" });
  ticks.forEach((tick, at) => {
    const y = Math.round(plot.y(tick)) + 0.5;
    picture.append(
      svg("line", { class: at ? "rule" : "axis", x1: left, x2: plot.right, y1: y, y2: y }),
      svg("text", { class: "tick end", x: left - 6, y: y + 3.5 }, labels[at]),
    );
  });
  paintTicks(picture, view);
  view.cursor = svg("line", { class: "cursor", y1: TOP, y2: high - BOTTOM, visibility: "hidden" });
  picture.append(view.cursor);
  if (bars) paintBars(picture, view);
  else paintLine(picture, view);
  if (limit) paintLimit(picture, view);
  if (end !== null) paintCut(picture, view, top);
  view.dot = svg("circle", { class: "dot", r: 4, visibility: "hidden" });
  picture.append(view.dot);
  view.host.replaceChildren(picture);
  if (document.activeElement === view.host) point(view, view.at);
}

/** Slots, and below them the times at which they end. */
function paintTicks(picture, { points, plot, high }) {
  const longest = Math.max("31 Dec 23:59".length, ...points.map((one) => one.tick.length)) * LETTER;
  const apart = Math.max(1, Math.ceil(((longest + 10) * points.length) / plot.width));
  // Counted from the end for a history, whose newest point matters most.
  const shown = [];
  for (let at = points.length - 1; at >= 0; at -= apart) shown.unshift(at);
  const times = timesOf(shown.map((at) => points[at].time));
  shown.forEach((at, number) => {
    const place = (label) => inside(plot, plot.x(at), label);
    picture.append(
      svg("text", { class: "tick middle", x: place(points[at].tick), y: high - 20 }, points[at].tick),
      svg("text", { class: "tick middle time", x: place(times[number]), y: high - 6 }, times[number]),
    );
  });
  for (const [text, y] of [["slot", high - 20], ["UTC", high - 6]]) {
    picture.append(svg("text", { class: "tick end unit", x: plot.left - 6, y }, text));
  }
}

/** Each with its day where that is another one than before; days alone if the time never changes. */
function timesOf(times) {
  const clocks = times.map((time) => shortTime(time));
  if (times.length > 1 && new Set(clocks).size === 1) return times.map(dayOfMonth);
  return times.map((time, at) => (at && dayOfMonth(times[at - 1]) === dayOfMonth(time) ? clocks[at] : `${dayOfMonth(time)} ${clocks[at]}`));
}

function inside(plot, x, label) {
  const half = (label.length * LETTER) / 2;
  return Math.min(Math.max(x, plot.left + half + 2), plot.right + 8 - half);
}

/** Where a line leaves the picture: a mark, and the value where there is room for it. */
function paintCut(picture, { points, plot, axis }, top) {
  let free = 0;
  points.forEach((point, at) => {
    if (point.value === null || point.value <= top) return;
    const label = `▲ ${axis(point.value)}`;
    const half = (label.length * LETTER) / 2;
    const x = Math.min(Math.max(plot.x(at), plot.left + half), plot.right - half);
    const room = x - half > free;
    if (room) free = x + half + 6;
    picture.append(svg("text", { class: "cut-value middle", x: room ? x : plot.x(at), y: room ? 12 : 24 }, room ? label : "▲"));
  });
}

function paintLine(picture, { points, plot }) {
  for (const run of runs(points)) {
    const line = run.map((at) => `${plot.x(at).toFixed(1)},${plot.y(points[at].value).toFixed(1)}`);
    const floor = plot.y(0).toFixed(1);
    if (run.length > 1) {
      const area = [`${plot.x(run[0]).toFixed(1)},${floor}`, ...line, `${plot.x(run.at(-1)).toFixed(1)},${floor}`];
      picture.append(svg("polygon", { class: "area", points: area.join(" ") }));
      picture.append(svg("polyline", { class: "line", points: line.join(" ") }));
    }
    if (points.length <= 30 || run.length === 1) {
      for (const at of run) picture.append(svg("circle", { class: "point", cx: plot.x(at), cy: plot.y(points[at].value), r: 2.2 }));
    }
  }
}

/** Stretches of points that have a value. */
function runs(points) {
  const found = [];
  let run = [];
  points.forEach((point, at) => {
    if (point.value !== null) run.push(at);
    else if (run.length) { found.push(run); run = []; }
  });
  return run.length ? [...found, run] : found;
}

function paintBars(picture, view) {
  const { points, plot } = view;
  const room = plot.width / points.length;
  const wide = Math.max(1, room - Math.max(1, Math.min(4, room * 0.25)));
  view.marks = points.map((point, at) => {
    if (!point.value) return null;
    const y = plot.y(point.value);
    return svg("rect", {
      class: "bar", x: plot.x(at) - wide / 2, y, width: wide, height: Math.max(1.5, plot.y(0) - y), rx: Math.min(2, wide / 3),
    });
  });
  picture.append(...view.marks.filter(Boolean));
}

function paintLimit(picture, { limit, plot }) {
  const y = plot.y(limit.value);
  picture.append(
    svg("line", { class: "limit", x1: plot.left, x2: plot.right, y1: y, y2: y }),
    svg("text", { class: "limit-label end", x: plot.right - 4, y: y - 4 < 9 ? y + 12 : y - 4 }, limit.label),
  );
}

/** 0 and up to four round numbers above it. */
export function niceTicks(most) {
  if (!(most > 0)) return [0, 1];
  const rough = most / 3;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((one) => one * power).find((one) => one >= rough);
  const ticks = [];
  for (let at = 0; at * step <= most * 1.0001; at += 1) ticks.push(Number((at * step).toPrecision(12)));
  return ticks.at(-1) < most * 0.92 ? [...ticks, Number((ticks.length * step).toPrecision(12))] : ticks;
}

// -- the cursor ------------------------------------------------------------------------------------

function point(view, at) {
  view.at = Math.min(Math.max(at, 0), view.points.length - 1);
  const one = view.points[view.at];
  const { plot } = view;
  if (!plot) return;
  const x = plot.x(view.at);
  const y = plot.y(one.value ?? 0);
  view.cursor.setAttribute("x1", x);
  view.cursor.setAttribute("x2", x);
  view.cursor.setAttribute("visibility", "visible");
  if (!view.bars) {
    view.dot.setAttribute("cx", x);
    view.dot.setAttribute("cy", y);
    view.dot.setAttribute("visibility", one.value === null ? "hidden" : "visible");
  } else {
    view.marks.forEach((mark, number) => mark?.classList.toggle("on", number === view.at));
  }
  const box = view.host.getBoundingClientRect();
  showTip(view.host, { left: box.left + x, width: 0, top: box.top + y - 4, bottom: box.top + y + 4 }, [one.label, ...one.lines]);
  describe(view);
}

function leave(view) {
  view.cursor?.setAttribute("visibility", "hidden");
  view.dot?.setAttribute("visibility", "hidden");
  view.marks?.forEach((mark) => mark?.classList.remove("on"));
  hideTip();
}

function listen(view) {
  const { host } = view;
  const STEPS = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10 };
  host.addEventListener("pointermove", (event) => {
    if (!view.plot) return;
    const x = event.clientX - host.getBoundingClientRect().left;
    point(view, Math.floor(((x - view.plot.left) / view.plot.width) * view.points.length));
  });
  host.addEventListener("pointerleave", () => {
    if (document.activeElement !== host) leave(view);
  });
  host.addEventListener("focus", () => point(view, view.at));
  host.addEventListener("blur", () => leave(view));
  host.addEventListener("keydown", (event) => {
    if (event.key === "Escape") leave(view);
    else if (event.key === "Home") point(view, 0);
    else if (event.key === "End") point(view, view.points.length - 1);
    else if (event.key in STEPS) point(view, view.at + STEPS[event.key]);
    else return;
    event.preventDefault();
  });
}
