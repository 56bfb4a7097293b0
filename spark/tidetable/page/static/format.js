// Numbers, sizes and times as people read them. All times are UTC.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");

export const NONE = "–";

export function number(value) {
  return value === null || value === undefined ? NONE : whole.format(value);
}

/** 1,234 in full, 1.2M where there is little room. */
export function compact(value) {
  if (value === null || value === undefined) return NONE;
  return Math.abs(value) < 10000 ? plainNumber(value) : short.format(value);
}

function plainNumber(value) {
  return Number.isInteger(value) ? whole.format(value) : String(Math.round(value * 100) / 100);
}

export function bytes(value) {
  if (value === null || value === undefined) return NONE;
  let left = value;
  for (const unit of ["B", "KB", "MB", "GB"]) {
    if (left < 1024) return `${unit === "B" || left >= 10 ? Math.round(left) : left.toFixed(1)} ${unit}`;
    left /= 1024;
  }
  return `${left.toFixed(1)} TB`;
}

/** The unit in which a size is told: round steps of an axis are round in it. */
export function byteUnit(value) {
  return 1024 ** Math.min(4, Math.floor(Math.log(Math.max(1, value)) / Math.log(1024)));
}

export function bytesOnAxis(value) {
  if (!value) return "0";
  const unit = byteUnit(value);
  return `${Math.round((value / unit) * 100) / 100} ${["B", "KB", "MB", "GB", "TB"][Math.round(Math.log(unit) / Math.log(1024))]}`;
}

export function secondUnit(value) {
  return value >= 7200 ? 3600 : value >= 120 ? 60 : 1;
}

export function secondsOnAxis(value) {
  if (!value) return "0";
  if (value >= 7200) return `${Math.round((value / 3600) * 100) / 100} h`;
  if (value >= 120) return `${Math.round((value / 60) * 100) / 100} min`;
  return `${Math.round(value * 1000) / 1000} s`;
}

export function seconds(value) {
  if (value === null || value === undefined) return NONE;
  if (value < 1) return `${Math.round(value * 1000)} ms`;
  if (value < 100) return `${value.toFixed(1)} s`;
  const minutes = Math.floor(value / 60);
  if (minutes < 60) return `${minutes} min ${Math.round(value % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export function ratio(value) {
  return value === null || value === undefined ? NONE : value.toFixed(2);
}

export function count(value, one, many = `${one}s`) {
  return `${number(value)} ${value === 1 ? one : many}`;
}

/** 2 Jan 2013, 14:00 UTC; seconds only where there are any. */
export function time(iso) {
  if (!iso) return NONE;
  const at = new Date(iso);
  return `${day(iso)}, ${clock(at)} UTC`;
}

export function day(iso) {
  const at = new Date(iso);
  return `${at.getUTCDate()} ${MONTHS[at.getUTCMonth()]} ${at.getUTCFullYear()}`;
}

/** The time alone, where the day is clear: 14:00; the day too where slots are long. */
export function shortTime(iso, withDay = false) {
  const at = new Date(iso);
  const prefix = withDay ? `${at.getUTCDate()} ${MONTHS[at.getUTCMonth()]} ` : "";
  return prefix + clock(at);
}

/** 2 Jan, without the year: for an axis. */
export function dayOfMonth(iso) {
  const at = new Date(iso);
  return `${at.getUTCDate()} ${MONTHS[at.getUTCMonth()]}`;
}

function clock(at) {
  const two = (value) => String(value).padStart(2, "0");
  const base = `${two(at.getUTCHours())}:${two(at.getUTCMinutes())}`;
  return at.getUTCSeconds() ? `${base}:${two(at.getUTCSeconds())}` : base;
}
