// The page: asks for the indexes and for the chosen one, again every ten seconds, and draws what
// has changed. What has not changed stays as it is, so focus, scroll and open tables are kept.

import "./theme.js";
import { drawBadRows } from "./bad-rows.js";
import { ACTIONS, comingUpdates, heatmap, nameOf } from "./cells.js";
import { chart } from "./charts.js";
import { hideLostTip, hideTip, html, scrolling, table } from "./draw.js";
import { drawReading } from "./reading.js";
import { NONE, byteUnit, bytes, bytesOnAxis, compact, count, number, ratio, secondUnit, seconds, secondsOnAxis, time } from "./format.js";

const EVERY_MS = 10_000;
const NAME = /^[a-z][a-z0-9_]{0,62}$/;
const $ = (id) => document.getElementById(id);

const dagId = new URLSearchParams(window.location.search).get("dag_id");
const ofDag = /^tidetable__([a-z0-9_]+)(-by-hand)?$/.exec(dagId)?.[1] ?? null;

const state = { indexes: null, name: null, data: null, chosen: null };

// -- asking ----------------------------------------------------------------------------------------

class Refused extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

async function ask(path) {
  const answer = await fetch(path, { headers: { Accept: "application/json" } });
  const body = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Refused(answer.status, body.detail ?? `Airflow answered ${answer.status}.`);
  return body;
}

const encoded = (path) => path.split("/").map(encodeURIComponent).join("/");
const pathOf = (name) => `api/indexes/${encodeURIComponent(name)}`;

let turn = 0;

async function refresh() {
  const mine = (turn += 1);
  try {
    const list = await ask("api/indexes");
    if (mine !== turn) return;
    state.indexes = list.indexes;
    state.name = choose();
    drawList();
    const data = state.name ? await ask(pathOf(state.name)) : null;
    if (mine !== turn) return;
    if (data?.name !== state.data?.name) changeIndex();
    state.data = data;
    draw();
    trouble(null);
    $("refreshed").textContent = `Seen at ${new Date().toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" })}`;
  } catch (error) {
    if (mine === turn) trouble(told(error));
  }
}

function told(error) {
  if (!(error instanceof Refused)) {
    console.error(error);
    return "Airflow does not answer. What you see is older; trying again.";
  }
  if (error.status === 401 || error.status === 403) return "Your login has ended. Reload Airflow to log in again.";
  return error.message;
}

function trouble(sentence) {
  $("trouble").hidden = !sentence;
  if (sentence && $("trouble").textContent !== sentence) $("trouble").textContent = sentence;
}

/** The index to show: what the address says, the DAG's own, or the first. */
function choose() {
  const names = state.indexes.map((one) => one.name);
  const wanted = window.location.hash.slice(1);
  if (NAME.test(wanted) && names.includes(wanted)) return wanted;
  if (dagId) return names.includes(ofDag) ? ofDag : null;
  return names.includes(state.name) ? state.name : (names[0] ?? null);
}

// -- drawing what has changed ----------------------------------------------------------------------

const drawn = new Map();

/** Draws a part only if what it shows is not what it showed last, and gives the focus back. */
function part(id, shown, paint) {
  const text = JSON.stringify(shown);
  if (drawn.get(id) === text) return;
  drawn.set(id, text);
  const element = $(id);
  const focused = element.contains(document.activeElement) ? document.activeElement.closest("[data-key]")?.dataset.key : null;
  const open = new Set([...element.querySelectorAll("details[open][data-key]")].map((one) => one.dataset.key));
  paint(element);
  hideLostTip();
  for (const one of element.querySelectorAll("details[data-key]")) if (open.has(one.dataset.key)) one.open = true;
  if (focused) [...element.querySelectorAll("[data-key]")].find((one) => one.dataset.key === focused)?.focus({ preventScroll: true });
}

function changeIndex() {
  state.chosen = null;
  hideTip();
  for (const id of ["cells", "coming", "expiring", "history", "history-table"]) drawn.delete(id);
  $("probe-answer").replaceChildren();
  $("probe-form").reset();
}

function draw() {
  const { data } = state;
  $("index").hidden = !data;
  drawElsewhere();
  if (!data) return;
  drawHead(data);
  drawFigures(data);
  $("pictures").hidden = !data.cells;
  if (data.cells) {
    drawCells(data);
    drawExpiring(data);
  }
  $("history").parentElement.hidden = !data.updates;
  if (data.updates) drawHistory(data);
  $("details").hidden = !data.key;
  if (data.key) {
    drawQuality(data);
    drawQuarantine(data);
    part("reading", [data.table, data.source, data.snippets], (element) => drawReading(element, data));
  }
  drawProbe(data);
}

// -- the list --------------------------------------------------------------------------------------

function badge(index) {
  return html("span", { class: `badge ${index.health}`, title: index.sentence }, index.health_word);
}

function behind(index) {
  if (index.lag === null) return NONE;
  return index.lag ? count(index.lag, "slot") : "none";
}

function drawList() {
  $("list").hidden = Boolean(ofDag && state.name === ofDag);
  const heads = ["Index", "Scheme", "Slot", "As of", "Live rows", "Behind", "Health"];
  part("indexes", [state.indexes, state.name], (element) => {
    if (!state.indexes.length) {
      element.replaceChildren(html("p", { class: "panel muted" }, "There is no index that you may see. An index is a file in include/indexes."));
      return;
    }
    const row = (index) => {
      const current = index.name === state.name;
      const cells = [
        html("a", { href: `#${index.name}`, "data-key": `index ${index.name}`, "aria-current": current ? "true" : null }, index.name),
        index.scheme ?? NONE, number(index.slot), time(index.as_of), number(index.live), behind(index), badge(index),
      ];
      const classes = (cell, at) => [[2, 4].includes(at) && "number", cell === NONE && "none"].filter(Boolean).join(" ") || null;
      return html("tr", { class: current ? "current" : null }, cells.map((cell, at) =>
        html(at ? "td" : "th", { scope: at ? null : "row", class: classes(cell, at), "data-head": heads[at] }, cell)));
    };
    element.replaceChildren(
      html(
        "table", { class: "indexes panel" },
        html("thead", null, html("tr", null, heads.map((head, at) => html("th", { scope: "col", class: [2, 4].includes(at) ? "number" : null }, head)))),
        html("tbody", null, state.indexes.map(row)),
      ),
    );
  });
}

function drawElsewhere() {
  const lost = Boolean(dagId) && !state.data;
  $("elsewhere").hidden = !lost;
  if (!lost) return;
  part("elsewhere", [dagId, state.indexes.length], (element) => {
    const sentence = ofDag
      ? `There is no index ${ofDag}, or you may not see it.`
      : `The DAG ${dagId} does not keep an index itself: those are the DAGs called tidetable__ and the name of the index.`;
    element.replaceChildren(html("p", null, sentence, state.indexes.length ? " Choose one above." : ""));
  });
}

// -- one index -------------------------------------------------------------------------------------

function drawHead(data) {
  part("index-name", data.name, (element) => element.replaceChildren(data.name));
  const about = [
    data.description, data.scheme, data.update_every && `an update every ${data.update_every}`,
    data.longest_lifetime && `rows live up to ${data.longest_lifetime} (${count(data.period, "slot")})`,
  ];
  part("index-about", about, (element) => element.replaceChildren(about.filter(Boolean).join(" · ")));
  part("index-links", [data.dag_id, data.quality?.report, data.health], (element) =>
    element.replaceChildren(
      ...[
        ofDag === data.name ? outside("./", "All indexes", "same") : data.key && outside(`../dags/${data.dag_id}`, "DAG"),
        data.quality && outside(`reports/${data.name}/index.html`, "Data Docs", "tab"),
      ].filter(Boolean),
    ));
  part("health", [data.health, data.health_word, data.sentence, data.failure], (element) =>
    element.replaceChildren(
      ...[
        html("p", { class: `health ${data.health}` }, html("span", { class: `badge ${data.health}` }, data.health_word), html("span", { class: "sentence" }, data.sentence)),
        data.failure && lastError(data),
      ].filter(Boolean)));
}

/** The last task that failed, with the way to its log. */
function lastError(data) {
  const { run, task, at, over } = data.failure;
  const log = `../dags/${data.dag_id}/runs/${encodeURIComponent(run)}/tasks/${encodeURIComponent(task)}`;
  return html(
    "p", { class: "last-error muted" },
    `Last error: the task ${task} failed at ${time(at)}${over ? ", and has succeeded since" : ""}. `, outside(log, "Its log"),
  );
}

function drawFigures(data) {
  const figures = data.cells
    ? [
        ["Live rows", number(data.live)],
        ["Slot", number(data.slot), time(data.as_of)],
        ["Behind", behind(data), data.lag ? `slot ${number(data.due)} is due` : data.coming.length ? "nothing is due" : "it has reached its end"],
        ["Size", bytes(data.bytes), count(data.files, "file")],
        ["Imbalance", ratio(data.imbalance), `fullest cell to mean cell; limit ${data.imbalance_max}`],
        ["Expire next", number(data.coming[0]?.expiring), data.coming[0] ? `in slot ${number(data.coming[0].slot)}, ${time(data.coming[0].as_of)}` : "no update comes"],
      ]
    : [];
  part("figures", figures, (element) =>
    element.replaceChildren(...figures.map(([name, value, more]) =>
      html("div", null, html("dt", null, name), html("dd", null, value, more && html("small", null, more))))));
}

function drawCells(data) {
  const chosen = data.coming.find((update) => update.slot === state.chosen) ?? null;
  state.chosen = chosen?.slot ?? null;
  const words = data.layout.kind === "groups"
    ? `Rows in each of ${count(data.layout.e, "cell")}, by the slot in which they expire`
    : data.layout.kind === "levels"
    ? `Rows in each cell: a line for each of ${count(data.layout.g, "level")}, columns by the slot in which rows expire`
    : `Rows in each cell: lines (g) by the slot in which rows came, columns (e) by the slot in which they expire`;
  const several = data.layout.e_step > 1 || data.layout.g_step > 1 ? "; a square stands for several" : "";
  const marked = chosen ? ` Marked: what update ${chosen.slot} does.` : "";
  part("cells-about", [words, several, marked], (element) => element.replaceChildren(`${words}${several}.${marked}`));
  part("cells", [data.cells, data.layout, chosen], (element) => {
    heatmap(prepared(element, "picture"), data, chosen);
    const rows = data.cells.map((cell) => [nameOf(cell, data.layout), number(cell.rows), number(cell.files), bytes(cell.bytes)]);
    element.append(table("Cells as a table", ["Cell", "Rows", "Files", "Size"], rows, { key: "cells table" }));
  });
  const ended = !data.coming.length;
  $("pictures").classList.toggle("ended", ended);
  $("coming").closest(".panel").hidden = ended;
  $("ended").hidden = !ended;
  if (ended) part("ended", [data.end, data.slot], (element) => element.replaceChildren(`No update comes: the index has reached its end, ${time(data.end)}.`));
  const about = "Choose one to mark its cells in the picture.";
  part("coming-about", about, (element) => element.replaceChildren(about));
  part("coming", [data.coming, data.layout, state.chosen], (element) => {
    comingUpdates(prepared(element, "picture"), data, state.chosen, (update) => {
      state.chosen = update?.slot ?? null;
      drawCells(state.data);
    });
    const rows = data.coming.flatMap((update) => update.cells.map((cell) => [update.slot, time(update.as_of), nameOf(cell, data.layout), ACTIONS[cell.action].word, cell.why]));
    if (rows.length) element.append(table("Touched cells as a table", ["Slot", "Ends", "Cell", "What is done", "Why"], rows, { key: "coming table" }));
  });
}

/** An emptied element with one child to draw in. */
function prepared(element, name) {
  const child = html("div", { class: name });
  element.replaceChildren(child);
  return child;
}

function drawExpiring(data) {
  const bars = data.expiring;
  const together = bars.length ? bars[0].last - bars[0].first + 1 : 1;
  const several = together > 1 ? ` ${together} slots to a bar.` : "";
  const about = `Live rows by the slot in which they die.${several}`;
  part("expiring-about", about, (element) => element.replaceChildren(about));
  part("expiring", bars, (element) => {
    const label = (bar) => (bar.first === bar.last ? `Slot ${bar.last}` : `Slots ${bar.first} to ${bar.last}`);
    chart(prepared(element, "picture"), {
      name: `Rows that will expire in the coming ${bars.length * together} slots`, key: "expiring chart", bars: true, axis: compact, high: 150,
      points: bars.map((bar) => ({
        value: bar.rows, label: label(bar), tick: bar.first === bar.last ? `${bar.last}` : `${bar.first}–${bar.last}`, time: bar.as_of,
        lines: [`${count(bar.rows, "row")} will expire`, `by ${time(bar.as_of)}`],
      })),
    });
    element.append(table("Rows that will expire as a table", ["Slot", "Ends", "Rows"], bars.map((bar) => [label(bar), time(bar.as_of), number(bar.rows)]), { key: "expiring table" }));
  });
}

// -- the last updates ------------------------------------------------------------------------------

const CHARTS = [
  { field: "live", title: "Live rows", format: compact, full: (value) => count(value, "live row") },
  { field: "read", title: "Rows read", hint: "from the source", format: compact, full: (value) => `${count(value, "row")} read` },
  { field: "bytes", title: "Size", format: bytes, axis: bytesOnAxis, unit: byteUnit, full: (value) => `${bytes(value)} in the table` },
  { field: "files", title: "Files", format: compact, full: (value) => count(value, "file") },
  { field: "imbalance", title: "Imbalance", hint: "fullest cell to mean", format: ratio, axis: compact, full: (value) => `the fullest cell holds ${ratio(value)} times the mean`, limit: "imbalance_max", note: imbalanceNote },
  { field: "seconds", title: "Update time", format: seconds, axis: secondsOnAxis, unit: secondUnit, full: (value) => `took ${seconds(value)}` },
  { field: "written_per_inserted", title: "Rows written per row inserted", format: ratio, axis: compact, full: (value) => `${ratio(value)} rows written per row inserted`, end: "written_top", note: writtenNote },
];

function imbalanceNote(data) {
  const above = data.imbalance_fails ? "the validation fails and the next update waits until somebody acts" : "the quality report warns";
  return `Rows of the fullest cell against the mean cell; 1 is even. An uneven cell makes the updates that rewrite it slow. Above ${data.imbalance_max} ${above}.`;
}

function writtenNote(data) {
  const cut = data.written_top === null ? "" : " The axis ends where it suits most updates; ▲ marks what lies above, when few rows came in.";
  return `(rewritten + inserted) / inserted: what an update costs.${cut}`;
}

function drawHistory(data) {
  const { updates } = data;
  const about = updates.length
    ? `${count(updates.length, "update")}, the newest is ${updates.at(-1).kind === "update" ? "" : `a ${updates.at(-1).kind} at `}slot ${updates.at(-1).slot}.`
    : data.updates_error ? `The table of updates cannot be read: ${data.updates_error}` : "No update has been recorded yet.";
  part("history-about", about, (element) => element.replaceChildren(about));
  part("history", [updates, data.imbalance_max, data.imbalance_fails, data.written_top], (element) => {
    element.hidden = !updates.length;
    element.replaceChildren();
    for (const one of CHARTS) {
      const room = html("div", { class: "picture" });
      const values = updates.map((update) => update[one.field] ?? null);
      const last = [...values].reverse().find((value) => value !== null) ?? null;
      const heading = html("h4", null, one.title, one.hint && html("small", null, ` ${one.hint}`));
      element.append(html("section", { class: "panel small", "aria-label": one.title }, html("div", { class: "heading" }, heading, html("b", null, one.format(last))), room, one.note && html("p", { class: "note" }, one.note(data))));
      chart(room, {
        name: `${one.title} over ${count(updates.length, "update")}`, key: `chart ${one.field}`, axis: one.axis ?? one.format, unit: one.unit, end: one.end ? data[one.end] : null,
        limit: one.limit ? { value: data[one.limit], label: `limit ${data[one.limit]}` } : null,
        points: updates.map((update, at) => ({
          value: values[at], label: `${update.kind === "update" ? "Slot" : `${update.kind}, slot`} ${update.slot}`, tick: String(update.slot), time: update.as_of,
          lines: [
            values[at] === null ? "not known" : one.full(values[at]), time(update.as_of),
            ...(one.field === "read" && update.folders_missing ? [`${count(update.folders_missing, "folder")} of the source missing`] : []),
          ],
        })),
      });
    }
  });
  part("history-table", updates, (element) => {
    const heads = ["Slot", "As of", "Kind", "Read", "Inserted", "Expired", "Quarantined", "Live", "Rewritten", "Written", "Cells", "Files", "Size", "Imbalance", "Time"];
    const rows = [...updates].reverse().map((one) => [
      one.slot, time(one.as_of), one.kind, number(one.read), number(one.inserted), number(one.expired), number(one.quarantined), number(one.live),
      number(one.rewritten_rows), bytes(one.written_bytes), number(one.cells), number(one.files), bytes(one.bytes), ratio(one.imbalance), seconds(one.seconds),
    ]);
    element.replaceChildren(...(rows.length ? [table("The last updates as a table", heads, rows, { key: "updates table" })] : []));
  });
}

// -- quality and quarantine ------------------------------------------------------------------------

function drawQuality(data) {
  part("quality", [data.quality, data.slot], (element) => {
    const { quality } = data;
    if (!quality) {
      element.replaceChildren(html("p", { class: "muted empty" }, "No quality report yet. The task validate of the DAG makes one after each update."));
      return;
    }
    const tally = quality.tally ? `${quality.tally}; ` : "";
    const old = quality.slot !== null && data.slot !== null && quality.slot < data.slot ? ` (the table is at ${data.slot})` : "";
    const verdict = !quality.success ? ["failing", "failed"] : quality.warnings.length ? ["warning", "passed with warnings"] : ["ok", "passed"];
    const list = (kind, sentences) => sentences.length && html("ul", { class: `findings ${kind}` }, sentences.map((one) => html("li", null, one)));
    element.replaceChildren(
      ...[
        html("p", null, html("span", { class: `badge ${verdict[0]}` }, verdict[1]), html("span", { class: "muted" }, ` ${tally}slot ${number(quality.slot)}${old}`)),
        list("failing", quality.failed), quality.advice && html("p", null, quality.advice), list("warning", quality.warnings),
        html("p", null, outside(`reports/${data.name}/${encoded(quality.report)}`, "This report", "tab"), " · ", outside(`reports/${data.name}/index.html`, "All Data Docs", "tab")),
      ].filter(Boolean),
    );
  });
}

function drawQuarantine(data) {
  part("quarantine", [data.name, data.quarantine, data.quarantine_table], (element) =>
    drawBadRows(element, data, (route) => ask(`${pathOf(data.name)}/${route}`)));
}

// -- the probe box ---------------------------------------------------------------------------------

function drawProbe(data) {
  $("probe").hidden = !data.probe;
  if (!data.probe) return;
  part("probe-column", data.key, (element) => element.replaceChildren(html("span", null, data.key)));
  const { example } = data.probe;
  $("probe-example").hidden = !example;
  part("probe-example", example, (element) => {
    element.textContent = example ? `Try ${example}` : "";
    element.dataset.example = example ?? "";
  });
}

async function runProbe() {
  const name = state.data?.name;
  if (!name) return;
  const key = $("probe-key").value;
  const asked = new URLSearchParams({ key });
  if ($("probe-alive").value) asked.set("alive_at", `${$("probe-alive").value}Z`);
  const answer = $("probe-answer");
  answer.setAttribute("aria-busy", "true");
  const started = performance.now();
  try {
    const found = await ask(`${pathOf(name)}/probe?${asked}`);
    if (state.data?.name === name) answer.replaceChildren(...probed(found, performance.now() - started));
  } catch (error) {
    answer.replaceChildren(html("p", { class: "refused", role: "alert" }, told(error)));
  } finally {
    answer.removeAttribute("aria-busy");
  }
}

function probed(found, ms) {
  const rows = found.rows.length;
  const head = html(
    "p", { class: "found" },
    html("b", null, rows ? `${count(rows, "live row")}${found.cut ? ", the first of more," : ""} for ` : "No live row for "),
    html("code", null, found.key), html("span", { class: "muted" }, ` as of ${time(found.as_of)} · ${seconds(found.seconds)} to read, ${Math.round(ms)} ms in all`),
  );
  if (!rows) return [head];
  const shown = (value) => (value === null ? html("span", { class: "muted" }, "null") : String(value));
  return [
    head,
    found.cut && html("p", { class: "muted" }, `These are not all: there are ${found.cut_because}. The command tidetable probe shows the rest.`),
    scrolling(
      "Rows found",
      html(
        "table", null,
        html("thead", null, html("tr", null, found.columns.map((one) => html("th", { scope: "col", class: one.numeric ? "number" : null }, one.name)))),
        html("tbody", null, found.rows.map((row) => html("tr", null, row.map((value, at) => html("td", { class: found.columns[at].numeric ? "number" : null }, shown(value)))))),
      ),
    ),
  ].filter(Boolean);
}

// -- links, keys, time -----------------------------------------------------------------------------

/** A link to another page: in this frame, instead of Airflow's page, or in a tab of its own. */
function outside(href, text, where = "top") {
  return html("a", { href, "data-where": where, target: where === "tab" ? "_blank" : where === "top" ? "_top" : null, "data-key": `link ${text}` }, text);
}

/** Airflow's frame may neither open tabs nor leave its page, so the page around it does that. */
function throughAirflow(event) {
  const link = event.target.closest?.("a[data-where]");
  if (!link || link.dataset.where === "same" || window.parent === window) return;
  try {
    const twin = window.parent.document.createElement("a");
    twin.href = link.href;
    if (link.dataset.where === "tab" || event.ctrlKey || event.metaKey) {
      twin.target = "_blank";
      twin.rel = "noopener";
    }
    window.parent.document.body.append(twin);
    twin.click();
    twin.remove();
    event.preventDefault();
  } catch {
    link.removeAttribute("target"); // framed by somebody else: stay in this frame
  }
}

document.addEventListener("click", throughAirflow);
window.addEventListener("hashchange", () => refresh());
$("skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address names the index
  $("main-content").focus();
});
$("probe-form").addEventListener("submit", (event) => {
  event.preventDefault();
  runProbe();
});
$("probe-example").addEventListener("click", (event) => {
  $("probe-key").value = event.currentTarget.dataset.example;
  runProbe();
});
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && $("refresh").checked) refresh();
});
$("refresh").addEventListener("change", (event) => {
  if (event.currentTarget.checked) refresh();
});
setInterval(() => {
  if (!document.hidden && $("refresh").checked) refresh();
}, EVERY_MS);
refresh();
