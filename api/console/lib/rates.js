// Rates of a team as they are typed: one a line, as "scrape=100". A line that cannot be read would otherwise be a limit less
// than somebody believes there is.

/// The rates, and in words what is wrong with the first line that is none.
export function readRates(text) {
  const rates = {};
  for (const [at, line] of text.split("\n").entries()) {
    if (!line.trim()) continue;
    const found = /^\s*([^\s=]+)\s*=\s*([1-9]\d{0,8})\s*$/.exec(line);
    if (!found) return { rates, wrong: `Line ${at + 1}, "${line.trim()}", is not written as "scrape=100".` };
    if (Object.hasOwn(rates, found[1])) return { rates, wrong: `Line ${at + 1}: ${found[1]} stands there twice.` };
    rates[found[1]] = Number(found[2]);
  }
  return { rates, wrong: null };
}
