// The cells of an index: how full they are, and what the next updates do to them.

import { bytes, compact, count, number, shortTime } from "./format.js";
import { hideTip, html, showTip, svg, whenRoom } from "./draw.js";

const LEVELS = 6;

/** What is done to a cell: word for a sentence, mark in its corner. */
export const ACTIONS = {
  rewrite: { word: "rewritten", mark: "↻", class: "rewrite" },
  append: { word: "appended to", mark: "+", class: "append" },
  "append+expire": { word: "appended to, expired rows removed", mark: "±", class: "both" },
  expire: { word: "expired rows removed", mark: "−", class: "expire" },
  move: { word: "merged into others", mark: "→", class: "move" },
  drop: { word: "dropped whole", mark: "×", class: "drop" },
};

const isLog = (cell) => cell.e < 0;
/** Sweep may have a second log, with the older rows of the first. */
export const logName = (cell) => (cell.g === 1 ? "log" : "merged log");
const keyOf = (cell) => `${cell.g},${cell.e}`;

/** Which cell it is, in words. A square may stand for several where there are very many. */
export function nameOf(cell, layout) {
  if (isLog(cell)) return capital(logName(cell));
  const part = (first, step, all) => (step > 1 ? `${first} to ${Math.min(first + step, all) - 1}` : `${first}`);
  const e = part(cell.e, layout.e_step, layout.e);
  if (layout.kind === "groups") return `Cell e ${e}`;
  const g = part(cell.g, layout.g_step, layout.g);
  return layout.kind === "levels" ? `Cell level ${g}, e ${e}` : `Cell g ${g}, e ${e}`;
}

/** Where each square goes: columns, lines, and the places of the cells. */
function arrange(cells, layout, width) {
  const base = cells.filter((cell) => !isLog(cell));
  if (layout.kind === "groups") {
    const room = Math.max(1, Math.floor(width / 76));
    const lines = Math.ceil(base.length / Math.min(base.length, room));
    const columns = Math.ceil(base.length / lines);
    return { columns, lines, places: base.map((cell, at) => ({ cell, column: at % columns, line: Math.floor(at / columns) })) };
  }
  return {
    columns: Math.ceil(layout.e / layout.e_step),
    lines: Math.ceil(layout.g / layout.g_step),
    places: base.map((cell) => ({ cell, column: cell.e / layout.e_step, line: cell.g / layout.g_step })),
  };
}

function levelOf(rows, most) {
  return rows ? Math.max(1, Math.ceil((rows / most) * (LEVELS - 1))) : 0;
}

// -- the large picture -----------------------------------------------------------------------------

/** chosen: one of data.coming whose touched cells are marked, or null. */
export function heatmap(container, data, chosen) {
  const host = html("div", { class: "heatmap" });
  container.replaceChildren(host, legend(data));
  whenRoom(host, (width) => paintCells(host, data, chosen, width));
}

function paintCells(host, data, chosen, width) {
  const { layout, cells } = data;
  const grid = layout.kind !== "groups";
  const margin = grid ? { left: 30, top: 20 } : { left: 0, top: 0 };
  const { columns, lines, places } = arrange(cells, layout, width);
  const gap = columns > 24 ? 1 : 3;
  const wide = Math.max(4, Math.min(220, (width - margin.left) / columns - gap));
  const tall = Math.max(4, Math.min(84, Math.max(wide * 0.4, Math.min(wide, 30))));
  const logs = cells.filter(isLog);
  const bottom = margin.top + lines * (tall + gap);
  const high = bottom + (logs.length ? 52 : 0);
  const most = Math.max(1, ...cells.map((cell) => cell.rows));
  const touched = chosen ? new Map(chosen.cells.map((one) => [keyOf(one), one])) : null;
  const picture = svg("svg", {
    width, height: high, viewBox: `0 0 ${width} ${high}`, role: "grid", "data-cells": "",
    "aria-label": `Rows in each cell${chosen ? `, and what update ${chosen.slot} does to it` : ""}`,
    class: chosen ? "choosing" : null,
  });
  if (grid) axes(picture, { columns, lines, layout, margin, wide, tall, gap });
  const view = { most, touched, layout, wide, tall };
  const rows = new Map();
  for (const { cell, column, line } of places) {
    if (!rows.has(line)) rows.set(line, svg("g", { role: "row" }));
    const x = margin.left + column * (wide + gap);
    const y = margin.top + line * (tall + gap);
    rows.get(line).append(square(cell, { ...view, x, y, column, line }));
  }
  picture.append(...[...rows.keys()].sort((a, b) => a - b).map((line) => rows.get(line)));
  const long = Math.min(180, (width - margin.left) / Math.max(1, logs.length) - gap);
  const logSquare = (log, column) => square(log, { ...view, x: margin.left + column * (long + gap), y: bottom + 10, wide: long, tall: 36, column, line: lines });
  if (logs.length) picture.append(svg("g", { role: "row" }, logs.map(logSquare)));
  const focused = host.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  host.replaceChildren(walkable(picture));
  if (focused) [...picture.querySelectorAll("[data-key]")].find((one) => one.dataset.key === focused)?.focus();
}

function axes(picture, { columns, lines, layout, margin, wide, tall, gap }) {
  const every = Math.ceil(26 / (wide + gap));
  for (let column = 0; column < columns; column += every) {
    picture.append(svg("text", { class: "tick middle", x: margin.left + column * (wide + gap) + wide / 2, y: 13, "aria-hidden": "true" }, `e${column * layout.e_step}`));
  }
  const each = Math.ceil(14 / (tall + gap));
  for (let line = 0; line < lines; line += each) {
    picture.append(svg("text", { class: "tick end", x: margin.left - 7, y: margin.top + line * (tall + gap) + tall / 2 + 4, "aria-hidden": "true" }, `${layout.kind === "levels" ? "L" : "g"}${line * layout.g_step}`));
  }
}

function square(cell, { most, touched, layout, x, y, wide, tall, column, line }) {
  const action = touched?.get(keyOf(cell));
  const about = action ? ACTIONS[action.action] : null;
  const name = nameOf(cell, layout);
  const lines = [name, count(cell.rows, "row"), `${count(cell.files, "file")}, ${bytes(cell.bytes)}`];
  if (action) lines.push(`${capital(about.word)}: ${action.why}`);
  const group = svg("g", {
    class: ["cell", `level${levelOf(cell.rows, most)}`, touched && (about ? `touched ${about.class}` : "untouched")].filter(Boolean).join(" "),
    role: "gridcell", tabindex: "-1", "aria-label": lines.join(", "), "data-key": `cell ${keyOf(cell)}`,
    "data-column": column, "data-line": line,
  });
  const label = wide > 7 * compact(cell.rows).length + 8 && tall >= 16 ? compact(cell.rows) : "";
  const own = layout.kind === "groups" && !isLog(cell) && tall >= 30;
  group.append(svg("rect", { class: "fill", x: x + 0.5, y: y + 0.5, width: wide - 1, height: tall - 1, rx: Math.min(5, wide / 5) }));
  if (isLog(cell)) group.append(svg("text", { class: "name", x: x + 10, y: y + tall / 2 + 4 }, logName(cell)));
  else if (own) group.append(svg("text", { class: "name", x: x + 6, y: y + 13 }, layout.e_step > 1 ? `e${cell.e}+` : `e${cell.e}`));
  if (label) group.append(svg("text", { class: "value", x: x + wide / 2, y: y + tall / 2 + (own ? 9 : 4.5) }, label));
  if (about && wide >= 18) group.append(svg("text", { class: "mark", x: x + wide - 5, y: y + 13 }, about.mark));
  const show = () => showTip(group, group.getBoundingClientRect(), lines);
  group.addEventListener("pointerenter", show);
  group.addEventListener("pointerleave", hideTip);
  group.addEventListener("focus", show);
  group.addEventListener("blur", hideTip);
  return group;
}

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** One stop for the keyboard; arrow keys go from cell to cell. */
function walkable(picture) {
  const cells = [...picture.querySelectorAll(".cell")];
  // Around the picture: an <svg> that listens for the focus would become a stop of its own.
  const room = html("div", null, picture);
  cells[0].setAttribute("tabindex", "0");
  const place = (cell) => [Number(cell.dataset.column), Number(cell.dataset.line)];
  const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  room.addEventListener("focusin", (event) => {
    for (const cell of cells) cell.setAttribute("tabindex", cell === event.target ? "0" : "-1");
  });
  room.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return hideTip();
    const at = cells.indexOf(event.target);
    if (at < 0) return;
    let next = null;
    if (event.key === "Home") next = cells[0];
    else if (event.key === "End") next = cells.at(-1);
    else if (event.key in step) {
      const [column, line] = place(cells[at]);
      const [right, down] = step[event.key];
      const wanted = cells.filter((cell) => place(cell)[1] === line + down);
      next = down
        ? wanted.sort((a, b) => Math.abs(place(a)[0] - column) - Math.abs(place(b)[0] - column))[0]
        : cells.find((cell) => place(cell)[0] === column + right && place(cell)[1] === line);
    } else return;
    event.preventDefault();
    next?.focus();
  });
  return room;
}

function legend(data) {
  const most = Math.max(1, ...data.cells.map((cell) => cell.rows));
  const scale = svg("svg", { width: 6 * 20, height: 12, "aria-hidden": "true", class: "scale" });
  for (let level = 0; level < LEVELS; level += 1) {
    scale.append(svg("g", { class: `cell level${level}` }, svg("rect", { class: "fill", x: level * 20 + 0.5, y: 0.5, width: 18, height: 11, rx: 3 })));
  }
  return html("p", { class: "legend" }, html("span", null, "0"), scale, html("span", null, count(most, "row")));
}

// -- small pictures of the next updates ------------------------------------------------------------

/** onChoose(update or null) is called when a person picks one. */
export function comingUpdates(container, data, chosenSlot, onChoose) {
  const longSlots = /d$/.test(data.update_every);
  const list = html("ul", { class: "coming" });
  for (const update of data.coming) {
    const pressed = update.slot === chosenSlot;
    list.append(
      html(
        "li", null,
        html(
          "button",
          {
            type: "button", "aria-pressed": String(pressed), "data-key": `coming ${update.slot}`,
            onclick: () => onChoose(pressed ? null : update),
          },
          miniature(data, update),
          html(
            "span", { class: "told" },
            html("b", null, `Slot ${update.slot}`), html("span", { class: "muted" }, ` · ${shortTime(update.as_of, longSlots)}`),
            html("span", { class: "line" }, told(update)),
          ),
        ),
      ),
    );
  }
  container.replaceChildren(list, actionLegend(data));
}

/** 24 rows expire · 1 cell rewritten, 5 appended to */
function told(update) {
  const parts = Object.keys(ACTIONS)
    .filter((action) => update.counts[action])
    .map((action, at) => `${at ? number(update.counts[action]) : count(update.counts[action], "cell")} ${ACTIONS[action].word}`);
  const expire = `${count(update.expiring, "row")} ${update.expiring === 1 ? "expires" : "expire"}`;
  return `${expire} · ${parts.join(", ") || "no cell is touched"}`;
}

function miniature(data, update) {
  const { layout } = data;
  const { columns, lines, places } = arrange(data.cells, layout, layout.kind === "groups" ? 76 * 8 : 0);
  const size = Math.max(1.5, Math.min(10, 76 / columns - 1.5, layout.kind === "groups" ? 99 : 48 / lines));
  const gap = size < 4 ? 0.5 : 1.5;
  const touched = new Map(update.cells.map((one) => [keyOf(one), one]));
  const logs = data.cells.filter(isLog);
  const width = Math.ceil(columns * (size + gap));
  const height = Math.ceil(lines * (size + gap) + (logs.length ? size + 2 : 0));
  const picture = svg("svg", { class: "mini", width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  const add = (cell, x, y, wide) => {
    const action = touched.get(keyOf(cell));
    picture.append(svg("rect", { class: action ? ACTIONS[action.action].class : "rest", x: x + 0.5, y: y + 0.5, width: wide - 1, height: size - 1, rx: size / 5 }));
  };
  for (const { cell, column, line } of places) add(cell, column * (size + gap), line * (size + gap), size);
  logs.forEach((log, at) => add(log, (at * width) / logs.length, height - size, width / logs.length));
  return html("span", { class: "mini-room" }, picture);
}

function actionLegend(data) {
  const seen = Object.keys(ACTIONS).filter((action) => data.coming.some((update) => update.counts[action]));
  return html(
    "p", { class: "legend actions" },
    seen.map((action) =>
      html(
        "span", null,
        svg("svg", { class: "mini", width: 12, height: 12, "aria-hidden": "true" }, svg("rect", { class: ACTIONS[action].class, x: 1, y: 1, width: 10, height: 10, rx: 2 })),
        ` ${ACTIONS[action].mark} ${ACTIONS[action].word}`,
      ),
    ),
  );
}
