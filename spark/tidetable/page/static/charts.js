// Lines and bars over slots. A chart is one stop for the keyboard; arrow keys move a cursor in it.

import { hideTip, html, showTip, svg, whenRoom } from "./draw.js";

const HIGH = 132;
const TOP = 10;
const BOTTOM = 22;

/**
 * points: [{ value: number | null, label, tick, lines }], in order.
 * axis(value) is for the axis, whose steps are round in the unit that unit(largest value) gives;
 * limit: { value, label } is drawn as a line across.
 */
export function chart(container, { name, points, axis, unit = () => 1, bars = false, limit = null, high = HIGH, key }) {
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
  const view = { host, points, axis, unit, bars, limit, high, at: points.length - 1, plot: null };
  if (bars) view.at = 0;
  describe(view);
  listen(view);
  whenRoom(host, (width) => paint(view, width));
}

function describe(view) {
  const point = view.points[view.at];
  view.host.setAttribute("aria-valuenow", String(view.at + 1));
  view.host.setAttribute("aria-valuetext", [point.label, ...point.lines].join(", "));
}

function paint(view, width) {
  const { points, axis, unit, bars, limit, high } = view;
  const values = points.map((point) => point.value).filter((value) => value !== null);
  const most = Math.max(...values, limit ? limit.value : 0);
  const ticks = niceTicks(most / unit(most)).map((tick) => tick * unit(most));
  const top = Math.max(ticks.at(-1), most) || 1;
  const labels = ticks.map(axis);
  const left = 10 + 6.4 * Math.max(...labels.map((label) => label.length));
  const plot = {
    left, right: width - 8, width: width - 8 - left,
    y: (value) => TOP + (high - TOP - BOTTOM) * (1 - value / top),
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
  view.dot = svg("circle", { class: "dot", r: 4, visibility: "hidden" });
  picture.append(view.dot);
  view.host.replaceChildren(picture);
  if (document.activeElement === view.host) point(view, view.at);
}

function paintTicks(picture, { points, plot, high }) {
  const step = Math.max(1, Math.ceil((points.length * 46) / plot.width));
  const longest = Math.max(...points.map((one) => one.tick.length)) * 6.4;
  const apart = Math.max(step, Math.ceil(((longest + 12) * points.length) / plot.width));
  // Counted from the end for a history, whose newest point matters most.
  for (let at = points.length - 1; at >= 0; at -= apart) {
    picture.append(svg("text", { class: "tick middle", x: inside(plot, plot.x(at), points[at].tick), y: high - 6 }, points[at].tick));
  }
}

function inside(plot, x, label) {
  const half = label.length * 3.2;
  return Math.min(Math.max(x, half), plot.right + 8 - half);
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
    svg("text", { class: "limit-label", x: plot.left + 4, y: y - 4 < 9 ? y + 12 : y - 4 }, limit.label),
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
  showTip({ left: box.left + x, width: 0, top: box.top + y - 4, bottom: box.top + y + 4 }, [one.label, ...one.lines]);
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
