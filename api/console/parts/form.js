// Forms from the API's own description: what a schema says is what can be filled in. Fields that nobody touched are left
// out of the body, so that the service's defaults hold.
import { html, cls, createContext, useContext, useEffect, useId, useRef, useState } from "../lib/ui.js";
import { Button, Field, Fold } from "./basics.js";

/// Accepted by the service but without effect, or filled in by clients about themselves.
const SILENT = /Accepted for the sake of clients|Has no effect|^Who calls|^The tool that calls|Not available yet/;
const LONG = /prompt|code|script|schema|instructions|javascript/i;

/// Who hears, by the id of a field, the name of one whose text says nothing that could be sent: what is on the screen would
/// be one thing, and what is sent another. Null: it is right again, or gone.
export const Mistakes = createContext(() => {});

function useMistake(title, wrong) {
  const tell = useContext(Mistakes);
  const id = useId();
  useEffect(() => tell(id, wrong ? title : null), [wrong]);
  useEffect(() => () => tell(id, null), []);
}

/// A text that stands for a value: it is written anew when the value changes from elsewhere.
function useText(value, write) {
  const [text, setText] = useState(write(value));
  const given = useRef(value);
  useEffect(() => {
    if (JSON.stringify(value) !== JSON.stringify(given.current)) setText(write(value));
    given.current = value;
  }, [JSON.stringify(value)]);
  const put = (text, value) => {
    given.current = value;
    setText(text);
  };
  return [text, put];
}

function resolve(schema, api) {
  let found = schema || {};
  for (let i = 0; i < 8 && found.$ref; i += 1) {
    const target = found.$ref.replace(/^#\//, "").split("/").reduce((at, key) => at && at[key], api) || {};
    found = { ...target, ...(found.description ? { description: found.description } : {}) };
  }
  const variants = (found.anyOf || found.oneOf || []).filter((one) => one.type !== "null");
  if ((found.anyOf || found.oneOf) && variants.length === 1) return resolve({ ...variants[0],
      description: found.description || variants[0].description, default: found.default }, api);
  return found;
}

const typeOf = (schema) => [schema.type].flat().filter((type) => type && type !== "null")[0];
const variantsOf = (schema) => (schema.anyOf || schema.oneOf || []).filter((one) => one.type !== "null");
const enumOf = (schema) => (schema.enum || []).filter((one) => one !== null);

/// Names become words: "onlyMainContent" is "Only main content".
function words(name) {
  const text = name.replace(/([a-z0-9])([A-Z])/g, "$1 $2").replace(/([A-Z]+)([A-Z][a-z])/g, "$1 $2");
  const lower = text.split(" ").map((word) => (/^[A-Z]{2,}s?$/.test(word) ? word : word.toLowerCase())).join(" ")
    .replace(/\burl\b/g, "URL").replace(/\burls\b/g, "URLs").replace(/\btls\b/g, "TLS").replace(/\bhtml\b/g,
      "HTML").replace(/\bttl\b/g, "TTL").replace(/\bpdf\b/g, "PDF").replace(/\bjson\b/g, "JSON").replace(/\bPI Is?\b/g,
        "PII");
  return lower.charAt(0).toUpperCase() + lower.slice(1);
}

/// `first` names the fields that stand on top; all others fold away.
export function SchemaForm({ api, schema, value, onChange, first = [], hidden = [] }) {
  const whole = resolve(schema, api);
  const names = Object.keys(whole.properties || {}).filter((name) => !hidden.includes(name)
      && !SILENT.test(whole.properties[name].description || ""));
  const top = first.filter((name) => names.includes(name));
  const rest = names.filter((name) => !top.includes(name));
  const used = rest.filter((name) => value[name] !== undefined).length;
  const set = (name, next) => {
    const copy = { ...value };
    if (next === undefined) delete copy[name];
    else copy[name] = next;
    onChange(copy);
  };
  const field = (name) => html`
    <${FieldFor} key=${name} api=${api} name=${name} schema=${whole.properties[name]}
      required=${(whole.required || []).includes(name)} value=${value[name]} onChange=${(next) => set(name, next)}
        depth=${0} />`;
  const small = (name) => ["boolean", "integer", "number"].includes(typeOf(resolve(whole.properties[name], api)))
    || enumOf(resolve(whole.properties[name], api)).length > 0;
  return html`<div class="form">
    ${top.map(field)}
    ${rest.length ? html`<${Fold} title="All options" count=${used || undefined}>
      <div class="form-row">${rest.filter(small).map(field)}</div>
      <div class="form">${rest.filter((name) => !small(name)).map(field)}</div>
    <//>` : null}
  </div>`;
}

function FieldFor({ api, name, schema, value, onChange, required, depth, label }) {
  const whole = resolve(schema, api);
  const title = label || words(name);
  const hint = whole.description;
  const type = typeOf(whole);
  const common = { api, name, whole, value, onChange, title, hint, required, depth };
  if (depth > 4) return html`<${JsonField} ...${common} />`;
  if (name === "formats" || (type === "array" && namedItems(whole, api))) return html`<${NamedList} ...${common} />`;
  if (variantsOf(whole).length) return html`<${Variants} ...${common} />`;
  if (enumOf(whole).length) return html`<${Choice} ...${common} />`;
  if (type === "boolean") return html`<${Flag} ...${common} />`;
  if (type === "integer" || type === "number") return html`<${Amount} ...${common} />`;
  if (type === "string") return html`<${Text} ...${common} />`;
  if (type === "array" && typeOf(resolve(whole.items, api)) === "string") return html`<${Lines} ...${common} />`;
  if (type === "array" && (resolve(whole.items, api).properties
        || variantsOf(resolve(whole.items, api)).length)) return html`<${Items} ...${common} />`;
  if (type === "object" && whole.properties) return html`<${Nested} ...${common} />`;
  if (type === "object" && whole.additionalProperties
      && typeOf(resolve(whole.additionalProperties, api)) === "string") return html`<${Pairs} ...${common} />`;
  return html`<${JsonField} ...${common} />`;
}

function Flag({ whole, value, onChange, title, hint }) {
  const id = useId();
  const usual = whole.default ?? false;
  return html`<div class="field">
      <label class="choice"><input type="checkbox" checked=${value ?? usual} aria-describedby=${hint ? id : undefined}
          onChange=${(event) => onChange(event.target.checked === usual ? undefined : event.target.checked)} />
            <span class="field-label">${title}</span></label>
              ${hint ? html`<span class="hint" id=${id}>${hint}</span>` : null}</div>`;
}

function Amount({ whole, value, onChange, title, hint, required }) {
  return html`<${Field} label=${title} hint=${hint}>
      <input class="input num" type="number" inputmode="numeric" value=${value ?? ""} min=${whole.minimum}
        max=${whole.maximum} step=${typeOf(whole) === "integer" ? 1 : "any"} required=${required}
    placeholder=${whole.default !== undefined ? String(whole.default) : ""}
      onInput=${(event) => onChange(event.target.value === "" ? undefined : Number(event.target.value))} /><//>`;
}

function Text({ name, whole, value, onChange, title, hint, required }) {
  const put = (event) => onChange(event.target.value === "" && !required ? undefined : event.target.value);
  const input = LONG.test(name)
    ? html`<textarea class="area" value=${value ?? ""} maxlength=${whole.maxLength} onInput=${put}></textarea>`
    : html`<input class="input" type="text" spellcheck="false" autocomplete="off" value=${value ?? ""}
        maxlength=${whole.maxLength} required=${required} placeholder=${name === "url" ? "https://example.com" : ""}
          onInput=${put} />`;
  return html`<${Field} label=${title} hint=${hint}>${input}<//>`;
}

function Choice({ whole, value, onChange, title, hint, required }) {
  const usual = whole.default;
  return html`<${Field} label=${title} hint=${hint}>
      <select class="select" value=${value ?? ""}
        onChange=${(event) => onChange(event.target.value === "" ? undefined : event.target.value)}>
    ${required && value ? null : html`<option value="">${usual ? `${usual} (usual)` : "Not set"}</option>`}
    ${enumOf(whole).filter((one) => one !== usual || required).map((one) => html`
          <option value=${one}>${String(one)}</option>`)}
  </select><//>`;
}

/// A list with one entry a line. What is typed is kept as it stands until it is left.
function Lines({ name, value, onChange, title, hint, required }) {
  const [text, setText] = useState((value || []).join("\n"));
  const read = (text) => text.split("\n").map((line) => line.trim()).filter(Boolean);
  useEffect(() => {
    if (read(text).join("\n") !== (value || []).join("\n")) setText((value || []).join("\n"));
  }, [(value || []).join("\n")]);
  return html`<${Field} label=${title} hint=${`${hint || ""} One a line.`.trim()}>
      <textarea class="area" spellcheck="false" value=${text} required=${required}
        placeholder=${name === "urls" ? "https://example.com\nhttps://example.org" : ""}
    onInput=${(event) => {
      setText(event.target.value);
      const list = read(event.target.value);
      onChange(list.length || required ? list : undefined);
    }}></textarea><//>`;
}

const asPairs = (value) => Object.entries(value || {}).map(([name, text]) => `${name}: ${text}`).join("\n");

/// The first line of pairs that is none.
function notPair(text) {
  const lines = text.split("\n");
  const at = lines.findIndex((line) => line.trim() && !/^\s*[^\s:][^:]*:/.test(line));
  return at < 0 ? null : `Line ${at + 1}, "${lines[at].trim()}", is not written as "Name: value".`;
}

function Pairs({ value, onChange, title, hint }) {
  const [text, put] = useText(value, asPairs);
  const wrong = notPair(text);
  useMistake(title, wrong);
  const read = (text) => Object.fromEntries(text.split("\n").map((line) => line.split(/:(.*)/s)).filter((pair) => pair[0].trim()
        && pair[1] !== undefined).map(([name, text]) => [name.trim(), text.trim()]));
  return html`<${Field} label=${title} hint=${`${hint || ""} One a line, as "Name: value".`.trim()} error=${wrong}>
      <textarea class="area" spellcheck="false" value=${text} onInput=${(event) => {
    const pairs = read(event.target.value);
    const next = Object.keys(pairs).length ? pairs : undefined;
    put(event.target.value, next);
    onChange(next);
  }}></textarea><//>`;
}

const asJson = (value) => (value === undefined ? "" : JSON.stringify(value, null, 2));

/// What a text means as JSON, and what is wrong with it; an `object` is asked for where nothing else can be sent.
function readJson(text, object) {
  if (!text.trim()) return { value: object ? {} : undefined, wrong: null };
  try {
    const value = JSON.parse(text);
    const fits = !object || (value !== null && typeof value === "object" && !Array.isArray(value));
    return fits ? { value, wrong: null } : { wrong: "This is no JSON object, as {\"url\": \"https://example.com\"} is." };
  } catch (error) {
    return { wrong: error.message };
  }
}

export function JsonField({ value, onChange, title, hint, big, object }) {
  const [text, put] = useText(value, asJson);
  const { wrong } = readJson(text, object);
  useMistake(title, wrong);
  return html`<${Field} label=${title} hint=${hint ? `${hint} As JSON.` : "As JSON."} error=${wrong}>
      <textarea class=${cls("area", big && "big")} spellcheck="false" value=${text} onInput=${(event) => {
    const read = readJson(event.target.value, object);
    // A text that means nothing changes no value; what it meant before is sent by nobody meanwhile.
    put(event.target.value, read.wrong ? value : read.value);
    if (!read.wrong) onChange(read.value);
  }}></textarea><//>`;
}

function Nested({ api, whole, value, onChange, title, hint, depth }) {
  const used = Object.keys(value || {}).length;
  const set = (name, next) => {
    const copy = { ...(value || {}) };
    if (next === undefined) delete copy[name];
    else copy[name] = next;
    onChange(Object.keys(copy).length ? copy : undefined);
  };
  const names = Object.keys(whole.properties).filter((name) => !SILENT.test(whole.properties[name].description || ""));
  return html`<${Fold} title=${title} count=${used || undefined}>
    ${hint ? html`<span class="hint">${hint}</span>` : null}
    ${names.map((name) => html`
          <${FieldFor} key=${name} api=${api} name=${name} schema=${whole.properties[name]}
            required=${(whole.required || []).includes(name)} value=${value && value[name]}
              onChange=${(next) => set(name, next)} depth=${depth + 1} />`)}
  <//>`;
}

/// The names that items of a list may be, where they may be names at all.
function namedItems(whole, api) {
  const items = resolve(whole.items, api);
  const named = variantsOf(items).find((one) => enumOf(resolve(one, api)).length);
  return named ? enumOf(resolve(named, api)) : enumOf(items).length ? enumOf(items) : null;
}

/// A list whose entries are names, or objects of that type with options of their own.
function NamedList({ api, name, whole, value, onChange, title, hint, depth }) {
  const names = namedItems(whole, api) || [];
  const list = value || [];
  const nameOf = (one) => (typeof one === "string" ? one : one && one.type);
  const toggle = (one) => {
    const next = list.some((item) => nameOf(item) === one) ? list.filter((item) => nameOf(item) !== one) : [...list,
      one];
    onChange(next.length ? next : undefined);
  };
  const objects = variantsOf(resolve(whole.items, api)).map((one) => resolve(one,
      api)).flatMap((one) => (variantsOf(one).length ? variantsOf(one).map((inner) => resolve(inner,
          api)) : [one])).filter((one) => one.properties && one.properties.type);
  const shapeOf = (one) => objects.find((shape) => enumOf(resolve(shape.properties.type, api)).includes(one));
  const optionsOf = (one) => {
    const shape = shapeOf(one);
    return shape ? Object.keys(shape.properties).filter((key) => key !== "type"
        && !SILENT.test(shape.properties[key].description || "")) : [];
  };
  const usual = name === "formats" ? "markdown" : null;
  return html`<fieldset><legend>${title}</legend>
    <div class="chips">${names.map((one) => {
      const on = list.length ? list.some((item) => nameOf(item) === one) : one === usual;
      return html`<label key=${one} class=${cls("chip", on && "on")}>
          <input type="checkbox" checked=${on}
            onChange=${() => (list.length || one !== usual ? toggle(one) : onChange(undefined))} />${one}</label>`;
    })}</div>
    ${hint ? html`<span class="hint">${hint}</span>` : null}
    ${list.map((item, at) => {
      const one = nameOf(item);
      const keys = optionsOf(one);
      if (!keys.length) return null;
      const shape = shapeOf(one);
      const options = typeof item === "string" ? {} : item;
      const set = (key, next) => {
        const copy = { ...options, type: one };
        if (next === undefined) delete copy[key];
        else copy[key] = next;
        const bare = Object.keys(copy).length === 1 && names.includes(one);
        onChange(list.map((other, i) => (i === at ? (bare ? one : copy) : other)));
      };
      return html`<${Fold} key=${one} title=${`Options of ${one}`}
          count=${Object.keys(options).filter((key) => key !== "type").length || undefined} open=${one === "json"}>
        ${keys.map((key) => html`
              <${FieldFor} key=${key} api=${api} name=${key} schema=${shape.properties[key]} value=${options[key]}
                onChange=${(next) => set(key, next)} depth=${depth + 2} />`)}
      <//>`;
    })}
  </fieldset>`;
}

/// A list of objects: each with its kind, its fields, its place.
function Items({ api, whole, value, onChange, title, hint, depth }) {
  const items = resolve(whole.items, api);
  const shapes = (variantsOf(items).length ? variantsOf(items) : [items]).map((one) => resolve(one, api));
  const kindOf = (shape) => (shape.properties
      && shape.properties.type ? String(enumOf(resolve(shape.properties.type, api))[0]) : "");
  const list = value || [];
  const put = (next) => onChange(next.length ? next : undefined);
  const add = () => put([...list, kindOf(shapes[0]) ? { type: kindOf(shapes[0]) } : {}]);
  return html`<${Fold} title=${title} count=${list.length || undefined}>
    ${hint ? html`<span class="hint">${hint}</span>` : null}
    ${list.map((item, at) => {
      const shape = shapes.find((one) => kindOf(one) === item.type) || shapes[0];
      const set = (key, next) => {
        const copy = { ...item };
        if (next === undefined) delete copy[key];
        else copy[key] = next;
        put(list.map((other, i) => (i === at ? copy : other)));
      };
      const swap = (to) => {
        const next = [...list];
        [next[at], next[to]] = [next[to], next[at]];
        put(next);
      };
      return html`<fieldset key=${at}><legend>${title} ${at + 1}</legend>
        <div class="actions">
          ${shapes.length > 1 ? html`
              <select class="select" aria-label="Kind" value=${item.type}
                onChange=${(event) => put(list.map((other, i) => (i === at ? { type: event.target.value } : other)))}>
                  ${shapes.map((one) => html`<option value=${kindOf(one)}>${kindOf(one)}</option>`)}</select>` : null}
          <${Button} small kind="quiet" disabled=${at === 0} onClick=${() => swap(at - 1)}>Up<//>
          <${Button} small kind="quiet" disabled=${at === list.length - 1} onClick=${() => swap(at + 1)}>Down<//>
          <${Button} small kind="quiet" icon="trash" label="Remove"
            onClick=${() => put(list.filter((_, i) => i !== at))} />
        </div>
        ${Object.keys(shape.properties || {}).filter((key) => key !== "type" && !SILENT.test(shape.properties[key].description || "")).map((key) => html`
              <${FieldFor} key=${key} api=${api} name=${key} schema=${shape.properties[key]}
                required=${(shape.required || []).includes(key)} value=${item[key]} onChange=${(next) => set(key, next)}
                  depth=${depth + 1} />`)}
      </fieldset>`;
    })}
    <div><${Button} small icon="plus" onClick=${add}>Add<//></div>
  <//>`;
}

/// Something that may be of several kinds: a choice, then the field of what was chosen.
function Variants({ api, name, whole, value, onChange, title, hint, depth }) {
  const shapes = variantsOf(whole).map((one) => resolve(one, api));
  const kind = (shape) => (shape.properties ? "With options" : { boolean: "Yes or no", string: "Text", array: "List",
      integer: "Number", number: "Number" }[typeOf(shape)] || "JSON");
  const fits = (shape) => {
    const type = typeOf(shape);
    return Array.isArray(value) ? type === "array" : value !== null && typeof value === "object" ? type === "object"
      || Boolean(shape.properties) : typeof value === type
        || (typeof value === "number" && (type === "integer" || type === "number"));
  };
  const held = value === undefined ? -1 : shapes.findIndex(fits);
  const [chosen, choose] = useState(held < 0 ? 0 : held);
  const at = held < 0 ? chosen : held;
  return html`<fieldset><legend>${title}</legend>
    <select class="select" aria-label=${`Kind of ${title}`} value=${String(at)} onChange=${(event) => {
      choose(Number(event.target.value));
      onChange(undefined);
    }}>${shapes.map((shape, i) => html`<option value=${String(i)}>${kind(shape)}</option>`)}</select>
    <${FieldFor} key=${at} api=${api} name=${name} label=${title}
      schema=${{ ...shapes[at], description: hint || shapes[at].description }} value=${value} onChange=${onChange}
        depth=${depth + 1} />
  </fieldset>`;
}
