// The Node runner: runs the code of one session's calls, one after another, inside a code box.
//
// Calls come over descriptor 3, a JSON object a line: {id, code, timeout, marker, quiet?}. Each is answered there with
// {id, exit, value?, cut?}, or with {id, unreachable} when the browser could not be reached and nothing ran. Before
// the answer the call's marker goes to stdout and stderr, so that the worker knows which output belongs to which call.
//
// Code is evaluated by V8's inspector as a REPL line: top-level await, `const` declared again, the value of the last
// expression. What the inspector refuses is rewritten: a top-level `return`, `import`, a name declared by another
// keyword than before.
'use strict';

const fs = require('node:fs');
const inspector = require('node:inspector');
const net = require('node:net');
const path = require('node:path');
const util = require('node:util');
const Module = require('node:module');
const { Writable } = require('node:stream');
const { pathToFileURL } = require('node:url');

require('./outside.cjs');

/// Longest value of a last expression, characters.
const VALUE_LIMIT = 1 << 20;
/// How long reaching the browser may take, milliseconds.
const CONNECT_LIMIT = 5000;
/// How long a tab that others have opened is waited for, milliseconds.
const TAB_LIMIT = 500;
/// The name of the code in stack traces.
const SOURCE = 'execute.js';

// Code may replace globals; the runner keeps its own.
const { parse, stringify } = JSON;
const turn = setImmediate;
const later = setTimeout;
const { stdout, stderr } = process;
const userRequire = Module.createRequire(path.join(process.cwd(), SOURCE));

// Code that was written elsewhere names the whole package. Its core is what is here, and drives this session's browser as well.
const resolveFilename = Module._resolveFilename;
Module._resolveFilename = function (request, ...rest) {
  try {
    return resolveFilename.call(this, request, ...rest);
  } catch (error) {
    if (request !== 'playwright') throw error;
    return resolveFilename.call(this, 'playwright-core', ...rest);
  }
};

const session = new inspector.Session();
session.connect();

// --- Between the runner and evaluated code --------------------------------------------------------------------------

/// What evaluated code and the runner hand to each other; a global name that code has no reason to touch.
const bridge = Object.assign(Object.create(null), { taken: undefined, page: undefined, context: undefined, browser: undefined, load });
Object.defineProperty(globalThis, '__weir', { value: bridge });
globalThis.require = userRequire;
globalThis.print = (...values) => console.log(...values);

/// `import()` for evaluated code, which the inspector gives no loader: relative to the working directory, then as `require` finds it.
async function load(name) {
  const text = String(name);
  if (/^\.{0,2}\//.test(text)) return import(pathToFileURL(path.resolve(text)));
  if (/^[a-z]+:/.test(text)) return import(text);
  const found = userRequire.resolve(text);
  return import(path.isAbsolute(found) ? pathToFileURL(found) : found);
}

/// One inspector command; its answer.
function post(method, params) {
  return new Promise((resolve, reject) => session.post(method, params, (error, answer) => (error ? reject(error) : resolve(answer))));
}

/// The very value that the inspector describes, in a box of its own: a bare promise would be awaited on the way.
async function valueOf(remote) {
  if (remote.objectId !== undefined) {
    await post('Runtime.callFunctionOn', {
      objectId: remote.objectId,
      functionDeclaration: 'function () { "use strict"; __weir.taken = this; }',
    });
    const { taken } = bridge;
    bridge.taken = undefined;
    return { value: taken };
  }
  const text = remote.unserializableValue;
  if (text === undefined) return { value: remote.value };
  return { value: text.endsWith('n') ? BigInt(text.slice(0, -1)) : Number(text) };
}

/// Evaluates one piece of code: {value} or {error, details}.
async function evaluate(expression) {
  try {
    const { result, exceptionDetails } = await post('Runtime.evaluate', {
      expression: `${expression}\n//# sourceURL=${SOURCE}`,
      replMode: true,
      awaitPromise: true,
      objectGroup: 'call',
    });
    if (exceptionDetails) {
      const { exception } = exceptionDetails;
      return { error: exception ? (await valueOf(exception)).value : new Error(exceptionDetails.text), details: exceptionDetails };
    }
    return await valueOf(result);
  } finally {
    session.post('Runtime.releaseObjectGroup', { objectGroup: 'call' });
  }
}

// --- The code -------------------------------------------------------------------------------------------------------

/// Whether the code never began, because it does not parse or its declarations clash with those that are there (as
/// opposed to code that throws a SyntaxError). A clash is reported at the very beginning of the code.
const isUnparsed = ({ error }) => {
  try {
    return error instanceof SyntaxError && !/execute\.js:(?!1:1\b)/.test(String(error.stack));
  } catch {
    return false;
  }
};

let acorn;
function parsed(code) {
  acorn ??= require('acorn');
  const options = { ecmaVersion: 'latest', allowReturnOutsideFunction: true, allowAwaitOutsideFunction: true };
  for (const sourceType of ['module', 'script']) {
    try {
      return acorn.parse(code, { ...options, sourceType });
    } catch {
      // The inspector will say what is wrong.
    }
  }
}

/// `code` with the given replacements of [start, end, text].
function replaced(code, edits) {
  for (const [start, end, text] of edits.sort((a, b) => b[0] - a[0])) code = code.slice(0, start) + text + code.slice(end);
  return code;
}

/// `import … from "x"` and `import("x")` in terms of the loader above.
function withoutImports(code) {
  const tree = /\bimport\b/.test(code) && parsed(code);
  if (!tree) return code;
  const edits = [];
  const visit = (node) => {
    if (node.type === 'ImportExpression') edits.push([node.start, node.start + 'import'.length, '__weir.load']);
    if (node.type === 'ImportDeclaration') edits.push([node.start, node.end, asConst(node)]);
    for (const child of Object.values(node)) {
      if (Array.isArray(child)) child.forEach((one) => one?.type && visit(one));
      else if (child?.type) visit(child);
    }
  };
  visit(tree);
  return replaced(code, edits);
}

function asConst(declaration) {
  const loaded = `await __weir.load(${declaration.source.raw});`;
  const names = [];
  let space = '';
  for (const { type, local, imported } of declaration.specifiers) {
    if (type === 'ImportNamespaceSpecifier') space = local.name;
    else names.push(type === 'ImportDefaultSpecifier' ? `default: ${local.name}` : `${imported.raw ?? imported.name}: ${local.name}`);
  }
  const whole = space ? `const ${space} = ${loaded}` : '';
  if (!names.length) return whole || loaded;
  return `${whole} const { ${names.join(', ')} } = ${space ? `${space};` : loaded}`;
}

/// The code with the top-level declaration of `name` made by another keyword: V8 lets a name be declared again only by
/// the keyword of before, which is the first of `kinds` that works. `undefined` when there is nothing left to try. A
/// function becomes a value of its name, and keeps its place before everything else.
function redeclared(code, name, kinds) {
  const declares = (pattern) => {
    switch (pattern?.type) {
      case 'Identifier': return pattern.name === name;
      case 'ObjectPattern': return pattern.properties.some((one) => declares(one.value ?? one.argument));
      case 'ArrayPattern': return pattern.elements.some(declares);
      case 'AssignmentPattern': return declares(pattern.left);
      case 'RestElement': return declares(pattern.argument);
      default: return false;
    }
  };
  const edits = [];
  for (const node of parsed(code)?.body ?? []) {
    if (node.type === 'VariableDeclaration' && node.declarations.some((one) => declares(one.id))) {
      if (kinds.at(-1) === node.kind) kinds.pop();
      if (kinds.length) edits.push([node.start, node.start + node.kind.length, kinds.pop()]);
    } else if (node.type === 'FunctionDeclaration' && node.id.name === name) {
      const kind = kinds.pop();
      if (kind) {
        const made = `${kind} ${name} = ${code.slice(node.start, node.end)};`;
        edits.push([node.start, node.end, ''], [0, 0, made]);
      }
    } else if (node.type === 'ClassDeclaration' && node.id.name === name) {
      edits.push([node.start, node.start, `var ${name} = `]);
    }
  }
  return edits.length ? replaced(code, edits) : undefined;
}

/// Runs the code of a call: {value} or {error, details}.
async function run(code) {
  // As in any REPL, braces around the whole are an object, if they can be one.
  if (/^\s*\{[^]*\}\s*$/.test(code)) {
    const answer = await evaluate(`(${code})`);
    if (!isUnparsed(answer)) return answer;
  }
  let text = withoutImports(code);
  let answer = await evaluate(text);
  const untried = new Map();
  for (let tries = 0; tries < 32 && isUnparsed(answer); tries += 1) {
    const { message } = answer.error;
    const [, name] = /^Identifier '(.+)' has already been declared$/.exec(message) ?? [];
    if (name !== undefined && !untried.has(name)) untried.set(name, ['const', 'var', 'let']);
    const again = name === undefined ? undefined : redeclared(text, name, untried.get(name));
    if (again !== undefined) text = again;
    else if (message === 'Illegal return statement') text = `(async () => {${text}\n})()`;
    else break;
    answer = await evaluate(text);
  }
  // A script that ends with a promise means what the promise brings.
  if (util.types.isPromise(answer.value)) {
    try {
      return { value: await answer.value };
    } catch (error) {
      return { error };
    }
  }
  return answer;
}

// --- What the caller reads ------------------------------------------------------------------------------------------

const plain = (text) => util.stripVTControlCharacters(text);

/// A value as text: strings as they are, bytes as base64, data as JSON, anything else as Node shows it.
function textOf(value) {
  if (typeof value === 'string') return value;
  if (typeof value !== 'object' || value === null) return util.inspect(value);
  if (ArrayBuffer.isView(value)) return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64');
  if (value instanceof Error) return errorText({ error: value });
  if (typeof value._guid === 'string') {
    // One of Playwright's objects: a handle to something in the browser, not data.
    const url = typeof value.url === 'function' ? ` url='${value.url()}'` : '';
    return `<${value.constructor.name.replace(/^_/, '')}${url}>`;
  }
  if (value instanceof Map || value instanceof Set || value instanceof RegExp) return util.inspect(value, { maxArrayLength: null });
  try {
    return stringify(value) ?? util.inspect(value);
  } catch {
    return util.inspect(value);
  }
}

/// An error as Node would print it, without the runner's own frames.
function errorText({ error, details }) {
  if (!(error instanceof Error)) return `Uncaught ${util.inspect(error)}`;
  let text = typeof error.stack === 'string' ? error.stack : `${error.name}: ${error.message}`;
  if (details && isUnparsed({ error })) {
    text = `${error.name}: ${error.message}\n    at ${SOURCE}:${details.lineNumber + 1}:${details.columnNumber + 1}`;
  }
  const lines = text.split('\n');
  const own = lines.findIndex((line) => /^\s+at .*(?:node:inspector|node:internal|\/node\.cjs:)/.test(line));
  text = (own === -1 ? lines : lines.slice(0, own)).join('\n');
  if (error.cause !== undefined) text += `\n  [cause]: ${errorText({ error: error.cause })}`;
  return plain(text);
}

/// What `toText` makes of a value. Objects are code, too: one that cannot be shown ends no call.
function shown(toText, value) {
  try {
    return String(toText(value));
  } catch {
    return '[a value that cannot be shown]';
  }
}

/// Writes behind everything that code has printed so far; resolves when the pipe has it.
function write(stream, text) {
  return new Promise((resolve) => {
    if (stream.writable) Writable.prototype.write.call(stream, text, () => resolve());
    else resolve(fs.write(stream.fd, text, () => {}));
  });
}

// --- The browser ----------------------------------------------------------------------------------------------------

/// The connection of now: {browser, control: a session with the browser itself, tabs: ids of the tabs that were there at the
/// last look, active: page -> turn of its last opening or navigation, own: pages that code here opened}.
let link;
let clock = 0;
/// The caller's own default timeout, once code has set one.
let chosenTimeout = false;

async function connect() {
  const { chromium } = require('playwright-core');
  // Where every download of the session's browser goes, whoever asks for it.
  const artifactsDir = path.join(process.env.HOME, 'downloads');
  const browser = await chromium.connectOverCDP(process.env.CDP_URL, { timeout: CONNECT_LIMIT, artifactsDir });
  const [context] = browser.contexts();
  const control = await browser.newBrowserCDPSession();
  const fresh = { browser, control, context, tabs: new Set(), active: new Map(), own: new WeakSet() };
  const follow = (page) => {
    fresh.active.set(page, (clock += 1));
    page.on('framenavigated', (frame) => frame === page.mainFrame() && fresh.active.set(page, (clock += 1)));
    page.on('close', () => fresh.active.delete(page));
    // Nothing can be done with a page whose renderer has died.
    page.on('crash', () => fresh.active.delete(page));
  };
  context.pages().forEach(follow);
  context.on('page', follow);
  const { newPage, setDefaultTimeout } = context;
  context.newPage = async function (...args) {
    const page = await newPage.apply(this, args);
    fresh.own.add(page);
    return page;
  };
  fresh.setTimeout = (ms) => setDefaultTimeout.call(context, ms);
  context.setDefaultTimeout = function (ms) {
    chosenTimeout = true;
    return setDefaultTimeout.call(this, ms);
  };
  fresh.open = () => newPage.call(context);
  for (const page of await inOrder(context.pages())) if (fresh.active.has(page)) fresh.active.set(page, (clock += 1));
  chosenTimeout = false;
  link = fresh;
}

/// Tabs in the order of their last navigation, those that do not answer first.
async function inOrder(pages) {
  if (pages.length < 2) return pages;
  const began = (page) => Promise.race([page.evaluate('performance.timeOrigin').catch(() => 0), new Promise((resolve) => later(resolve, TAB_LIMIT, 0))]);
  const times = await Promise.all(pages.map(began));
  return pages.map((page, at) => [page, times[at]]).sort((a, b) => a[1] - b[1]).map(([page]) => page);
}

/// Ids of the tabs that the browser has now.
async function tabs() {
  const { targetInfos } = await link.control.send('Target.getTargets');
  return targetInfos.filter(({ type }) => type === 'page').map(({ targetId }) => targetId);
}

/// Waits until the library knows of what others have done: a tab that was closed before this call is not the one to use, and
/// one that was opened may be. The browser's answer comes behind the events of tabs that are gone; a new tab has to be
/// attached to, which takes the library a moment more.
async function catchUp() {
  const now = await tabs();
  const isNew = now.some((id) => !link.tabs.has(id));
  link.tabs = new Set(now);
  const known = () => link.browser.contexts().reduce((sum, context) => sum + context.pages().length, 0);
  for (let waited = 0; isNew && known() < now.length && waited < TAB_LIMIT; waited += 10) await new Promise((resolve) => later(resolve, 10));
}

/// The page last active in the browser: a tab that code here opened into a variable of its own counts only when there is no other.
async function livePage() {
  const pages = [...link.active].filter(([page]) => !page.isClosed()).sort((a, b) => b[1] - a[1]).map(([page]) => page);
  return pages.find((page) => !link.own.has(page)) ?? pages[0] ?? link.open();
}

const isLive = {
  page: (value) => typeof value?.isClosed === 'function' && !value.isClosed() && typeof value.context === 'function' && value.context().browser()?.isConnected(),
  context: (value) => typeof value?.pages === 'function' && typeof value.browser === 'function' && value.browser()?.isConnected(),
  browser: (value) => typeof value?.isConnected === 'function' && value.isConnected(),
};

/// Points `page`, `context` and `browser` at what is live, except where code has put something live itself.
async function bind() {
  const given = { page: bridge.page, context: bridge.context, browser: bridge.browser };
  const kept = (name, value) => value !== given[name] && isLive[name](value);
  const now = bridge.seen();
  if (!kept('browser', now.browser)) await assign('browser', link.browser, now.browser);
  if (!kept('context', now.context)) await assign('context', link.context, now.context);
  if (!kept('page', now.page)) await assign('page', await livePage(), now.page);
}


async function assign(name, value, seen) {
  bridge[name] = value;
  if (seen === value) return;
  globalThis[name] = value;
  for (const kind of ['let', 'const']) {
    if (bridge.seen()[name] !== value) await evaluate(`${kind} ${name} = __weir.${name};`);
  }
}

/// A browser that is there, connected to again when the connection was lost. `quiet`: it was told nothing since the last look.
async function ensureBrowser(timeout, quiet) {
  // A connection that breaks meanwhile is made again.
  if (!quiet && link?.browser.isConnected()) await catchUp().catch(() => {});
  if (!link?.browser.isConnected()) await connect();
  await bind();
  // Playwright's own error says more than a killed run, so it gets to speak first.
  if (!chosenTimeout) link.setTimeout(Math.min(30_000, Math.max(500, timeout * 0.9)));
}

// --- Calls ----------------------------------------------------------------------------------------------------------

let failed = false;
process.on('uncaughtException', (error) => {
  failed = true;
  write(stderr, `${shown(errorText, { error })}\n`);
});

async function call({ id, code, timeout, marker, quiet = false }) {
  const answer = { id, exit: 0 };
  failed = false;
  try {
    await ensureBrowser(timeout, quiet);
  } catch (error) {
    answer.unreachable = plain(String(error?.message ?? error)).toWellFormed();
  }
  if (answer.unreachable === undefined) {
    const outcome = await run(code);
    // A rejection that nobody handles shows itself one turn later.
    await new Promise((resolve) => turn(resolve));
    if ('error' in outcome) {
      failed = true;
      write(stderr, `${shown(errorText, outcome)}\n`);
    } else if (outcome.value !== undefined) {
      const text = shown(textOf, outcome.value);
      answer.value = text.slice(0, VALUE_LIMIT).toWellFormed();
      answer.cut = text.length > VALUE_LIMIT;
    }
    answer.exit = failed ? 1 : 0;
  }
  await Promise.all([write(stdout, marker), write(stderr, marker)]);
  return answer;
}

/// The answer to a call in which the runner itself failed.
async function unanswered({ id, marker }) {
  await Promise.all([write(stdout, marker), write(stderr, `the runner failed\n${marker}`)]);
  return { id, exit: 1 };
}

const control = new net.Socket({ fd: 3, readable: true, writable: true });
const send = (message) => control.write(`${stringify(message)}\n`);
let line = '';
control.setEncoding('utf8');
control.on('data', (text) => {
  line += text;
  for (let end = line.indexOf('\n'); end !== -1; end = line.indexOf('\n')) {
    const request = parse(line.slice(0, end));
    line = line.slice(end + 1);
    // Code can break what this is made of, and is answered all the same.
    call(request).catch(() => unanswered(request)).then(send);
  }
});
// Without a line to the worker there is nothing left to do.
control.on('close', () => process.exit(1));

// The three names as evaluated code sees them, also when a `const` of its own hides the global.
const seen = ['page', 'context', 'browser'].map((name) => `${name}: (() => { try { return ${name}; } catch {} })()`);
evaluate(`__weir.seen = () => ({ ${seen} });`)
  // Connecting now saves the first call the wait; if it fails, that call says so.
  .then(connect)
  .then(() => send({ ready: true }), () => send({ ready: true, unreachable: true }));
