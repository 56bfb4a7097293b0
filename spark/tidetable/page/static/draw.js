// Elements, the tooltip, and drawing again when the room changes.
// Text always becomes a text node, so nothing that comes from data can become markup.
// Marks that turn text round, and what else nobody sees, are shown as escapes.

const SVG = "http://www.w3.org/2000/svg";
const UNSEEN = /[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

function visible(text) {
  return String(text).replace(UNSEEN, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(2)) {
    if (child !== null && child !== undefined && child !== false) element.append(child instanceof Node ? child : visible(child));
  }
  return element;
}

export function html(tag, attributes, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

/** A picture behind which its numbers can be opened as a table. */
export function table(caption, heads, rows, { open = false, key } = {}) {
  const numeric = heads.map((_, column) => rows.length > 0 && rows.every((row) => isNumeric(row[column])));
  const cell = (tag, value, column, more) =>
    html(tag, { class: numeric[column] ? "number" : null, ...more }, String(value));
  return html(
    "details", { class: "numbers", open, "data-key": key },
    html("summary", null, caption),
    scrolling(
      caption,
      html(
        "table", null,
        html("thead", null, html("tr", null, heads.map((head, at) => cell("th", head, at, { scope: "col" })))),
        html("tbody", null, rows.map((row) => html("tr", null, row.map((value, at) => cell("td", value, at))))),
      ),
    ),
  );
}

/** A box that scrolls, and says so while columns of it are cut off. */
export function scrolling(label, content) {
  const hint = html("p", { class: "cut", hidden: true }, "More columns to the right: scroll →");
  const box = html("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, content);
  const room = html("div", { class: "scroll-room" }, hint, box);
  const look = () => {
    const left = box.scrollWidth - box.clientWidth - box.scrollLeft;
    hint.hidden = left < 2;
    room.classList.toggle("more", left >= 2);
  };
  box.addEventListener("scroll", look);
  whenRoom(box, look);
  return room;
}

function isNumeric(value) {
  return /^[\d–-]/.test(String(value)) && !/\d{4},|UTC/.test(String(value));
}

// -- the tooltip -----------------------------------------------------------------------------------

const tip = () => document.getElementById("tip");
let tipOf = null;

/** Shows lines beside a box on the screen; the first is the heading. `owner` is what they tell of. */
export function showTip(owner, box, lines) {
  tipOf = owner;
  const element = tip();
  element.replaceChildren(...lines.filter(Boolean).map((line, at) => html(at ? "span" : "b", null, line)));
  element.hidden = false;
  const { width, height } = element.getBoundingClientRect();
  const room = document.documentElement.clientWidth;
  const left = Math.min(Math.max(8, box.left + box.width / 2 - width / 2), room - width - 8);
  const above = box.top - height - 8;
  element.style.left = `${Math.max(8, left)}px`;
  element.style.top = `${above > 8 ? above : box.bottom + 8}px`;
}

export function hideTip() {
  tipOf = null;
  tip().hidden = true;
}

/** Hides what is told of something that is no longer on the page: it will not say so itself. */
export function hideLostTip() {
  if (tipOf && !tipOf.isConnected) hideTip();
}

// -- room ------------------------------------------------------------------------------------------

const painters = new WeakMap();
const observer = new ResizeObserver((entries) => {
  for (const { target, contentRect } of entries) {
    const painter = painters.get(target);
    const width = Math.floor(contentRect.width);
    if (painter && width > 0 && width !== painter.width) {
      painter.width = width;
      painter.paint(width);
    }
  }
});

/** Calls paint(width) now and whenever the element gets another width. */
export function whenRoom(element, paint) {
  const width = Math.floor(element.getBoundingClientRect().width);
  painters.set(element, { paint, width });
  observer.observe(element);
  if (width > 0) paint(width);
}
