// Shows openapi.json: a list of operations, what each takes and answers, and a form to try it. Everything from the
// document and from answers is put in as text, never as markup.
"use strict";

const byId = (id) => document.getElementById(id);
const VERBS = ["get", "post", "put", "patch", "delete"];
/// Schemas deeper than this are named only.
const DEEPEST = 8;
/// Characters of an answer that are shown.
const LONGEST = 200_000;

function make(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== false) node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/// Text in which `words` between backticks are code.
function prose(text) {
  return (text || "").split("`").map((part, i) => (i % 2 ? make("code", {}, part) : part));
}

let api;

function resolve(schema) {
  if (!schema || !schema.$ref) return schema || {};
  const path = schema.$ref.replace(/^#\//, "").split("/");
  const found = path.reduce((at, key) => (at ? at[key] : undefined), api) || {};
  return schema.description ? { ...found, description: schema.description } : found;
}

function refName(schema) {
  return schema && schema.$ref ? schema.$ref.split("/").pop() : "";
}

const variants = (schema) => schema.oneOf || schema.anyOf || [];

function typeText(schema) {
  const name = refName(schema);
  schema = resolve(schema);
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (variants(schema).length) return name || variants(schema).map(typeText).filter((t, i, all) => all.indexOf(t) === i).join(" or ");
  const types = [schema.type || "any"].flat().map((type) => (type === "object" && name ? name : type));
  let text = types.join(" or ");
  if (types.includes("array")) text = text.replace("array", `array of ${schema.items ? typeText(schema.items) : "any"}`);
  if (schema.format && !/^u?int/.test(schema.format)) text += ` (${schema.format})`;
  return text;
}

/// Bounds and choices in words.
function rules(schema) {
  const said = [];
  const range = (low, high, what) => {
    if (low !== undefined && high !== undefined) said.push(`${low} to ${high}${what}`);
    else if (low !== undefined) said.push(`at least ${low}${what}`);
    else if (high !== undefined) said.push(`at most ${high}${what}`);
  };
  range(schema.minimum, schema.maximum, "");
  range(schema.minLength, schema.maxLength, " characters");
  range(schema.minItems, schema.maxItems, " entries");
  range(undefined, schema.maxProperties, " entries");
  if (schema.enum) said.push(schema.enum.map((value) => JSON.stringify(value)).join(", "));
  if (schema.default !== undefined) said.push(`default ${JSON.stringify(schema.default)}`);
  return said.join("; ");
}

/// The fields below a schema, or null when there are none. `headed`: its type stands above it.
function fields(schema, depth = 0, headed = false) {
  schema = resolve(schema);
  if (depth > DEEPEST) return null;
  if (schema.properties) {
    const list = make("ul", { class: "fields" });
    for (const [name, part] of Object.entries(schema.properties)) {
      if (headed && name === "type") continue;
      list.append(field(name, part, (schema.required || []).includes(name), depth));
    }
    return list;
  }
  if (schema.items) return fields(schema.items, depth);
  const many = variants(schema).length > 1;
  const parts = variants(schema).map((part) => [part, fields(part, depth + 1, many && Boolean(resolve(part).properties?.type?.enum))]).filter(([, inner]) => inner);
  if (parts.length === 1) return parts[0][1];
  if (parts.length) {
    const list = make("ul", { class: "fields" });
    for (const [part, inner] of parts) {
      const kinds = resolve(part).properties?.type?.enum;
      list.append(make("li", {}, make("code", { class: "name" }, kinds ? kinds.join(", ") : refName(part) || typeText(part)), inner));
    }
    return list;
  }
  return null;
}

function field(name, schema, required, depth) {
  const own = resolve(schema);
  const item = make("li", {}, make("code", { class: "name" }, name), make("span", { class: "type" }, typeText(schema)));
  if (required) item.append(make("span", { class: "must" }, "required"));
  const said = rules(own);
  if (own.description) item.append(make("p", {}, ...prose(own.description)));
  if (said) item.append(make("p", { class: "type mono" }, said));
  const inner = fields(schema, depth + 1);
  if (inner) item.append(make("details", {}, make("summary", {}, "Fields"), inner));
  return item;
}

function parameterList(parameters) {
  const list = make("ul", { class: "fields" });
  for (const parameter of parameters) {
    const item = field(parameter.name, { ...resolve(parameter.schema), description: parameter.description }, parameter.required, 0);
    item.querySelector(".type").append(`, in ${parameter.in}`);
    list.append(item);
  }
  return list;
}

function answers(responses) {
  const list = make("ul", { class: "fields" });
  for (const [status, answer] of Object.entries(responses)) {
    const item = make("li", {}, make("span", { class: `status mono ${status < 400 ? "good" : "bad"}` }, status), " ", ...prose(answer.description));
    const json = answer.content && answer.content["application/json"];
    if (json && status < 400) {
      const inner = fields(json.schema);
      if (inner) item.append(make("details", {}, make("summary", {}, "Fields"), inner));
      if (json.example) {
        const text = make("pre", {}, JSON.stringify(json.example, null, 2));
        item.append(make("details", {}, make("summary", {}, "Example"), text));
      }
    }
    list.append(item);
  }
  return list;
}

/// A word of a shell that means itself.
const quoted = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

/// Copies what a node says, or leaves it selected where the browser does not let a page copy. Over plain HTTP there is no
/// clipboard but that of the selection.
async function copied(node) {
  try {
    await navigator.clipboard.writeText(node.textContent);
    return true;
  } catch {
    getSelection().selectAllChildren(node);
    return document.execCommand("copy");
  }
}

/// The form that tries an operation.
function tryForm(verb, path, operation) {
  const form = make("form", { class: "try" });
  const inputs = [];
  for (const parameter of operation.parameters || []) {
    const choices = resolve(parameter.schema).enum;
    const input = choices
      ? make("select", {}, make("option", { value: "" }, ""), ...choices.map((value) => make("option", {}, value)))
      : make("input", { type: "text", autocomplete: "off", spellcheck: "false", required: Boolean(parameter.required) });
    inputs.push([parameter, input]);
    form.append(make("label", {}, make("span", {}, make("code", {}, parameter.name)), input));
  }
  const json = operation.requestBody && operation.requestBody.content["application/json"];
  let body = null;
  if (json) {
    const examples = Object.entries(json.examples || {});
    body = make("textarea", { spellcheck: "false", "aria-label": "Body" });
    const fill = (i) => { body.value = JSON.stringify(examples[i][1].value, null, 2); };
    if (examples.length) fill(0);
    if (examples.length > 1) {
      const select = make("select", { onchange: () => { fill(select.selectedIndex); show(); } }, ...examples.map(([name]) => make("option", {}, name)));
      form.append(make("label", {}, make("span", {}, "Example"), select));
    }
    form.append(body);
  }

  function request() {
    let address = path;
    const query = new URLSearchParams();
    const headers = {};
    for (const [parameter, input] of inputs) {
      const value = input.value.trim();
      if (parameter.in === "path") address = address.replace(`{${parameter.name}}`, value ? encodeURIComponent(value) : `{${parameter.name}}`);
      else if (value && parameter.in === "query") query.append(parameter.name, value);
      else if (value && parameter.in === "header") headers[parameter.name] = value;
    }
    const isPublic = operation.security && operation.security.length === 0;
    if (!isPublic) headers.Authorization = `Bearer ${byId("key").value.trim() || "KEY"}`;
    const text = body && body.value.trim();
    if (text) headers["Content-Type"] = "application/json";
    const base = new URL(".", location.href);
    const url = base.href.replace(/\/$/, "") + address + (query.size ? `?${query}` : "");
    return { url, method: verb.toUpperCase(), headers, body: text || undefined };
  }

  const line = make("pre", {});
  function show() {
    const asked = request();
    const words = ["curl -s", asked.method === "GET" ? "" : `-X ${asked.method}`, quoted(asked.url)];
    for (const [name, value] of Object.entries(asked.headers)) {
      // The key is in its field; the line is what gets copied and shown to others.
      words.push(`-H ${quoted(`${name}: ${name === "Authorization" ? "Bearer $KEY" : value}`).replace("'Authorization: Bearer $KEY'", '"Authorization: Bearer $KEY"')}`);
    }
    if (asked.body) words.push(`-d ${quoted(asked.body.replace(/\n\s*/g, " "))}`);
    line.textContent = words.filter(Boolean).join(" ");
  }
  const copy = make("button", { type: "button", class: "plain", onclick: async () => {
    copy.textContent = await copied(line) ? "Copied" : "Selected: copy it";
    setTimeout(() => { copy.textContent = "Copy"; }, 3000);
  } }, "Copy");

  const send = make("button", { class: "primary" }, "Send");
  const outcome = make("span", { class: "status mono", role: "status" });
  const said = make("pre", { hidden: true, tabindex: "0" });
  form.addEventListener("input", show);
  byId("key").addEventListener("input", show);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const { url, ...asked } = request();
    send.disabled = true;
    outcome.className = "status mono";
    outcome.textContent = "Waiting for the answer…";
    said.hidden = true;
    const began = performance.now();
    try {
      const answer = await fetch(url, { ...asked, credentials: "omit", cache: "no-store" });
      let text = await answer.text();
      try { text = JSON.stringify(JSON.parse(text), null, 2); } catch { /* It is no JSON: shown as it is. */ }
      outcome.textContent = `${answer.status} in ${Math.round(performance.now() - began)} ms`;
      outcome.classList.add(answer.ok ? "good" : "bad");
      said.textContent = text.length > LONGEST ? `${text.slice(0, LONGEST)}\n… ${text.length - LONGEST} more characters` : text;
      said.hidden = false;
    } catch (error) {
      outcome.textContent = `No answer: ${error.message}`;
      outcome.classList.add("bad");
    }
    send.disabled = false;
  });
  form.append(make("div", { class: "curl" }, line, copy), make("div", { class: "row" }, send, outcome), said);
  show();
  return form;
}

function operationNode(verb, path, operation) {
  const node = make("details", { class: "operation", id: operation.operationId },
    make("summary", {}, make("span", { class: `verb ${verb}` }, verb.toUpperCase()), make("code", { class: "path" }, path),
      make("span", { class: "say" }, operation.summary)));
  // Filled when it is opened first: there are many.
  node.addEventListener("toggle", () => {
    if (!node.open || node.childElementCount > 1) return;
    const inside = make("div", { class: "inside" }, make("p", {}, ...prose(operation.description)));
    if (operation.security && operation.security.length === 0) inside.append(make("p", { class: "lock" }, "No key is needed."));
    if (operation.parameters) inside.append(make("h3", {}, "Parameters"), parameterList(operation.parameters));
    const json = operation.requestBody && operation.requestBody.content["application/json"];
    if (json) inside.append(make("h3", {}, operation.requestBody.required ? "Body" : "Body, optional"), fields(json.schema) || make("p", {}, typeText(json.schema)));
    inside.append(make("h3", {}, "Answers"), answers(operation.responses));
    if (!("101" in operation.responses && !("200" in operation.responses))) inside.append(make("h3", {}, "Try it"), tryForm(verb, path, operation));
    node.append(inside);
  });
  return node;
}

function openNamed() {
  // Operations' names need no coding; an address that somebody typed may be none that can be decoded.
  const node = document.getElementById(location.hash.slice(1));
  if (node && node.classList.contains("operation")) {
    node.open = true;
    node.scrollIntoView();
  }
}

function setMenu(open) {
  byId("side").classList.toggle("open", open);
  byId("menu").setAttribute("aria-expanded", String(open));
}

function show(text) {
  api = text;
  document.title = `${api.info.title} API ${api.info.version}`;
  byId("title").textContent = document.title;
  const main = byId("main");
  main.replaceChildren(make("p", {}, ...prose(api.info.description), " The document: ", make("a", { href: "openapi.json" }, "openapi.json"), "."));
  const links = [];
  for (const tag of api.tags) {
    const all = Object.entries(api.paths).flatMap(([path, verbs]) => VERBS.filter((verb) => verbs[verb]).map((verb) => [verb, path, verbs[verb]]));
    const own = all.filter(([, , operation]) => operation.tags.includes(tag.name));
    if (!own.length) continue;
    main.append(make("h2", {}, tag.name), make("p", {}, ...prose(tag.description)));
    const head = make("h2", {}, tag.name);
    byId("list").append(head);
    const group = own.map(([verb, path, operation]) => {
      main.append(operationNode(verb, path, operation));
      const link = make("a", { href: `#${operation.operationId}`, title: path, onclick: () => { setMenu(false); setTimeout(openNamed); } },
        make("span", { class: `verb ${verb}` }, verb === "delete" ? "DEL" : verb.toUpperCase()), operation.summary);
      byId("list").append(link);
      return { link, words: `${verb} ${path} ${operation.summary} ${tag.name}`.toLowerCase() };
    });
    links.push({ head, group });
  }
  const none = make("p", { class: "none", role: "status", hidden: true }, "No operation has these words.");
  byId("list").append(none);
  byId("filter").addEventListener("input", () => {
    const words = byId("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const { head, group } of links) {
      for (const entry of group) entry.link.hidden = !words.every((word) => entry.words.includes(word));
      head.hidden = group.every((entry) => entry.link.hidden);
    }
    none.hidden = links.some(({ head }) => !head.hidden);
  });
  openNamed();
}

addEventListener("keydown", (event) => event.key === "Escape" && setMenu(false));
byId("menu").addEventListener("click", () => setMenu(!byId("side").classList.contains("open")));
addEventListener("hashchange", openNamed);
fetch("openapi.json").then((answer) => (answer.ok ? answer.json() : Promise.reject(new Error(`status ${answer.status}`)))).then(show)
  .catch((error) => byId("main").replaceChildren(make("p", { role: "alert" }, `The document cannot be read: ${error.message}. `,
    make("button", { type: "button", class: "plain", onclick: () => location.reload() }, "Try again"))));
