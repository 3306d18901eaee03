// Numbers with their units, and times in words. Everything that is shown comes through here, so that a kilobyte is the
// same on every page.

const whole = new Intl.NumberFormat("en");
const one = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const two = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const exactTime = new Intl.DateTimeFormat("en-GB", {
  year: "numeric", month: "short", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit",
    timeZoneName: "short",
});
const dayName = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const clockTime = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });

const known = (value) => value !== null && value !== undefined && !Number.isNaN(value);
export const DASH = "–";
/// Characters at the end of an address that stay as long as there is room for them.
const TAIL = 16;

export function count(value) {
  return known(value) ? whole.format(value) : DASH;
}

/// A count where room is short: 12.3K. The exact one belongs into the title.
export function short(value) {
  if (!known(value)) return DASH;
  return Math.abs(value) < 10_000 ? one.format(value) : compact.format(value);
}

export function decimal(value) {
  return known(value) ? two.format(value) : DASH;
}

export function percent(part, of = 1) {
  if (!known(part) || !of) return DASH;
  const value = (part / of) * 100;
  if (value > 0 && value < 0.1) return "< 0.1 %";
  return `${value >= 10 ? Math.round(value) : one.format(value)} %`;
}

export function bytes(value) {
  if (!known(value)) return DASH;
  const units = ["B", "KB", "MB", "GB", "TB"];
  let at = 0;
  let left = value;
  while (left >= 1024 && at < units.length - 1) {
    left /= 1024;
    at += 1;
  }
  return `${at === 0 ? whole.format(left) : one.format(left)} ${units[at]}`;
}

/// A length of time from milliseconds: "340 ms", "4.2 s", "3 min 10 s", "2 h 5 min", "3 d 4 h".
export function duration(ms) {
  if (!known(ms)) return DASH;
  if (ms < 0) return duration(0);
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${ms < 9_950 ? one.format(ms / 1000) : Math.round(ms / 1000)} s`;
  const seconds = Math.round(ms / 1000);
  const parts = [["d", 86_400], ["h", 3600], ["min", 60], ["s", 1]];
  const at = parts.findIndex(([, size]) => seconds >= size);
  const [unit, size] = parts[at];
  const rest = parts[at + 1];
  const main = Math.floor(seconds / size);
  const more = rest ? Math.floor((seconds % size) / rest[1]) : 0;
  return more ? `${main} ${unit} ${more} ${rest[0]}` : `${main} ${unit}`;
}

export function exact(time) {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? String(time) : exactTime.format(date);
}

/// "4 min ago", "in 2 h", "just now".
export function relative(time, now = Date.now()) {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return String(time);
  const apart = date.getTime() - now;
  const size = Math.abs(apart);
  if (size < 1500) return "just now";
  const words = size < 60_000 ? `${Math.round(size / 1000)} s`
    : size < 3_600_000 ? `${Math.floor(size / 60_000)} min`
      : size < 86_400_000 ? `${Math.floor(size / 3_600_000)} h`
        : size < 14 * 86_400_000 ? `${Math.floor(size / 86_400_000)} d`
          : dayName.format(date);
  if (size >= 14 * 86_400_000) return words;
  return apart < 0 ? `${words} ago` : `in ${words}`;
}

const utcDayName = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
const utcDate = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric", timeZone: "UTC" });

/// A day that the service counts by: days of UTC, wherever somebody looks from.
export const utcDay = (time) => utcDayName.format(new Date(time));
export const utcDayExact = (time) => utcDate.format(new Date(time));

export const day = (time) => dayName.format(new Date(time));
export const hourMinute = (time) => clockTime.format(new Date(time));

/// The last eight characters of an id: ids begin with their time, and those of one minute begin alike.
export const shortId = (id) => String(id).slice(-8);

/// "1 page", "3 pages".
export function plural(value, word, many = `${word}s`) {
  return `${count(value)} ${value === 1 ? word : many}`;
}

/// An address where room is short, in two parts: its ends tell it from others of its site, so what lies between gives way.
/// Both schemes look alike in a list.
export function halves(url) {
  const text = String(url).replace(/^https?:\/\//, "");
  let at = text.length - TAIL;
  if (at < 6) return [text, ""];
  // Not between the halves of a character.
  if (text.codePointAt(at - 1) > 0xffff) at -= 1;
  return [text.slice(0, at), text.slice(at)];
}

/// The host of an address, or the address itself where it has none.
export function host(url) {
  try {
    return new URL(url).host || String(url);
  } catch {
    return String(url);
  }
}

/// An address that may become a link: http and https only, since pages and callers write them.
export function safeUrl(url) {
  try {
    const parsed = new URL(url);
    return parsed.protocol === "http:" || parsed.protocol === "https:" ? parsed.href : null;
  } catch {
    return null;
  }
}
