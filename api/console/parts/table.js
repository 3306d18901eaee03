// Tables: a heading for each column, rows that open what they stand for, selection, and "more" by cursor.
import { html, cls } from "../lib/ui.js";
import { Button, Empty, Loading, Trouble } from "./basics.js";

/// `columns`: {name, cell(row), numeric, hide: "narrow" | "medium", width}. Columns that are hidden on small screens are
/// never the only place where something is said.
export function Table({ label, columns, rows, id, empty, stale, error, retry, selection, onSelect, more, onMore,
    moreBusy, rowClass }) {
  if (error && !rows) return html`<${Trouble} error=${error} retry=${retry} />`;
  if (!rows) return html`<${Loading} />`;
  const shown = selection ? rows.map(id) : [];
  const chosen = shown.filter((key) => selection && selection.has(key));
  const toggleAll = () => onSelect(chosen.length === shown.length ? new Set() : new Set(shown));
  const toggle = (key) => {
    const next = new Set(selection);
    if (!next.delete(key)) next.add(key);
    onSelect(next);
  };
  return html`<div>
    ${error ? html`<${Trouble} error=${error} retry=${retry} />` : null}
    ${rows.length === 0 ? empty || html`<${Empty} title="Nothing here" />`
      : html`<div class=${cls("table-wrap", stale && "stale")} tabindex="0" role="region"
          aria-label=${`${label}: table`}>
      <table class="table">
        <caption class="hidden">${label}</caption>
        <thead><tr>
          ${selection ? html`<th class="pick" scope="col">
                <input type="checkbox" aria-label="Select all that are shown"
                  checked=${chosen.length > 0 && chosen.length === shown.length}
            indeterminate=${chosen.length > 0 && chosen.length < shown.length} onChange=${toggleAll} /></th>` : null}
          ${columns.map((column) => html`
                <th scope="col" key=${column.name}
                  class=${cls(column.numeric && "right", column.hide && `hide-${column.hide}`, column.kind)}>
                    ${column.silent ? html`<span class="hidden">${column.name}</span>` : column.name}</th>`)}
        </tr></thead>
        <tbody>${rows.map((row) => html`
                <tr key=${id(row)} class=${cls(selection && selection.has(id(row)) && "chosen",
                      rowClass && rowClass(row))}>
          ${selection ? html`<td class="pick">
                <input type="checkbox" aria-label=${`Select ${id(row)}`} checked=${selection.has(id(row))}
                  onChange=${() => toggle(id(row))} /></td>` : null}
          ${columns.map((column) => html`
                <td key=${column.name} class=${cls(column.numeric && "right num", column.hide && `hide-${column.hide}`,
                      column.kind)}>${column.cell(row)}</td>`)}
        </tr>`)}</tbody>
      </table>
    </div>`}
    ${more ? html`<div class="more"><${Button} busy=${moreBusy} onClick=${onMore}>Show more<//></div>` : null}
  </div>`;
}
