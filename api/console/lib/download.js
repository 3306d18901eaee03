// Files that are made in the browser of what the service answers piece by piece: however large a job is, no request holds
// all of it.

/// A cell of a table that a spreadsheet opens. Strangers write addresses and errors: what would begin a formula is text.
function cell(value) {
  const text = value === null || value === undefined ? "" : String(value);
  const safe = /^[=+\-@\t\r]/.test(text) && typeof value !== "number" ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/// Rows as CSV (RFC 4180).
export const csv = (rows) => rows.map((row) => `${row.map(cell).join(",")}\r\n`).join("");

/// Has the browser keep a file.
export function save(name, parts, type) {
  const address = URL.createObjectURL(new Blob(parts, { type }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  // The browser reads it after the click.
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
