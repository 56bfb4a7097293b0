// Rows in quarantine: how many for which reason, and on request the newest of them.

import { html, scrolling } from "./draw.js";
import { NONE, count, number, time } from "./format.js";

/** ask(path) gives the answer of a route below this index's own. */
export function drawBadRows(element, data, ask) {
  const found = data.quarantine;
  if (!found || !found.updates) {
    element.replaceChildren(html("p", { class: "muted empty" }, "No update has been recorded yet."));
    return;
  }
  const share = found.read ? ` of ${count(found.read, "row")} read (${((100 * found.rows) / found.read).toFixed(1)} %)` : "";
  const over = found.updates === 1 ? "the last update" : `the last ${number(found.updates)} updates`;
  const most = Math.max(1, ...found.reasons.map((one) => one.rows));
  const bar = (one) => {
    const meter = html("span", { class: "meter", "aria-hidden": "true" }, html("span", null));
    meter.firstChild.style.width = `${(100 * one.rows) / most}%`;
    return html("li", null, html("span", { class: "reason" }, one.reason), html("b", null, number(one.rows)), meter);
  };
  element.replaceChildren(
    ...[
      html("p", null, found.rows ? `${count(found.rows, "row")}${share} in ${over}.` : `None in ${over}.`),
      found.reasons.length && html("ul", { class: "reasons" }, found.reasons.map(bar)),
      theRows(ask), // always: some may be from updates before these
      found.rows > 0 && html("p", { class: "muted place" }, "They are kept, with the reason, in the table ", html("code", null, data.quarantine_table), " beside the index’s own."),
    ].filter(Boolean),
  );
}

/** Read when somebody opens them, not at each refresh. */
function theRows(ask) {
  const room = html("div", { "aria-live": "polite" });
  const details = html("details", { class: "numbers", "data-key": "bad rows" }, html("summary", null, "Show the newest rows in quarantine"), room);
  details.addEventListener("toggle", async () => {
    if (!details.open) return;
    room.replaceChildren(html("p", { class: "muted" }, "Reading …"));
    try {
      room.replaceChildren(...shown(await ask("quarantine")));
    } catch (error) {
      room.replaceChildren(html("p", { class: "refused" }, error.message));
    }
  });
  return details;
}

function shown(found) {
  if (!found.rows.length) return [html("p", { class: "muted" }, "No row is in quarantine.")];
  const head = ["Slot", "Ends", "Reason", "Arrived", "Row"].map((name) => html("th", { scope: "col" }, name));
  const line = (one) => html(
    "tr", null,
    html("td", { class: "number" }, number(one.slot)), html("td", null, time(one.as_of)), html("td", null, one.reason),
    html("td", null, one.arrived_at ? time(one.arrived_at) : NONE), html("td", { class: "row" }, html("code", null, one.row)),
  );
  const rows = html("table", null, html("thead", null, html("tr", null, head)), html("tbody", null, found.rows.map(line)));
  return [scrolling("Rows in quarantine", rows), found.more && html("p", { class: "muted" }, "There are more; these are the newest.")].filter(Boolean);
}
