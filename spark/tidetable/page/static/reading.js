// Where the table and its source are, and how to read the table elsewhere.

import { html } from "./draw.js";

let reader = null; // chosen last, for all indexes

export function drawReading(element, data) {
  const { snippets, source } = data;
  const chosen = snippets.find((one) => one.reader === reader) ?? snippets[0];
  const choose = (one) => {
    reader = one.reader;
    drawReading(element, data);
    [...element.querySelectorAll("[data-key]")].find((tab) => tab.dataset.key === `reader ${reader}`)?.focus();
  };
  const tabs = snippets.map((one) =>
    html("button", { type: "button", class: "tab", "aria-pressed": String(one === chosen), "data-key": `reader ${one.reader}`, onclick: () => choose(one) }, one.reader));
  const code = html("code", null, chosen.code);
  const copy = html("button", { type: "button", class: "copy", "data-key": "copy" }, "Copy");
  copy.addEventListener("click", () => copied(code, copy));
  element.replaceChildren(
    html(
      "dl", { class: "places" },
      html("dt", null, "Table"), html("dd", null, html("code", null, data.table)),
      html("dt", null, "Source"), html("dd", null, html("code", null, source.path), html("span", { class: "muted" }, ` ${source.format}, arrival by `), html("code", null, source.arrived_at)),
    ),
    html("div", { class: "tabs", role: "group", "aria-label": "Reader" }, tabs),
    html("div", { class: "snippet" }, html("pre", { tabindex: "0", "aria-label": `How ${chosen.reader} reads it` }, code), copy),
  );
}

/** To the clipboard where the browser lets us; else it is marked, to be copied by hand. */
async function copied(code, button) {
  try {
    await navigator.clipboard.writeText(code.textContent);
    button.textContent = "Copied";
  } catch {
    window.getSelection().selectAllChildren(code);
    button.textContent = "Marked: Ctrl+C";
  }
  setTimeout(() => { button.textContent = "Copy"; }, 2000);
}
