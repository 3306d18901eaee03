// What the console's suites share: a browser, a small site of their own, and a way to say what passed.
'use strict';

const http = require('node:http');
const { chromium } = require('playwright-core');

const BASE = process.env.BASE;
const KEY = process.env.KEY;
const OPERATOR = process.env.OPERATOR;
const READER = process.env.READER;

const counts = { passed: 0, failed: 0 };
let browser;
let contexts = [];

/// Opens the console in a browser of its own. Whatever a page reports as wrong fails the test that opened it.
async function open(path = '/console', { theme = 'light', width = 1360, height = 900, allow = [], timezoneId } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: theme, baseURL: BASE, reducedMotion: 'reduce', timezoneId });
  // What does not come at all is waited for in vain anyway: a machine with much else to do takes its time.
  context.setDefaultTimeout(60_000);
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  const wrong = [];
  context.on('weberror', (error) => wrong.push(`${error.error().stack}`));
  context.on('dialog', async (dialog) => {
    wrong.push(`a dialog: ${dialog.message()}`);
    await dialog.dismiss();
  });
  context.on('console', (message) => {
    const text = message.text();
    if (message.type() === 'error' && !/status of (4\d\d|5\d\d)/.test(text) && !allow.some((one) => one.test(text))) wrong.push(`console: ${text}`);
  });
  const page = await context.newPage();
  contexts.push({ context, wrong });
  await page.goto(path);
  return page;
}

/// Signs in by the form.
async function signIn(page, key) {
  await page.getByLabel('Key', { exact: true }).fill(key);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.locator('main#main').waitFor();
}

async function signedIn(path = '/console', { key = KEY, ...options } = {}) {
  const page = await open(path, options);
  await signIn(page, key);
  return page;
}

/// One page of the console after another, by links: nothing is loaded anew.
async function visit(page, path) {
  await page.evaluate((path) => {
    const link = document.createElement('a');
    link.href = path;
    document.body.append(link);
    link.click();
    link.remove();
  }, path);
  await settled(page);
}

/// Waits until nothing is being read any more.
async function settled(page) {
  // The playground keeps its form in the fragment, which is no other page.
  await page.waitForFunction(() => document.getElementById('main')?.dataset.at?.split('#')[0] === location.href.split('#')[0]);
  await page.waitForFunction(() => !document.querySelector('.bone, .stale, [aria-busy="true"]'));
}

async function test(name, body, bound = 180_000) {
  if (process.env.ONLY && !name.includes(process.env.ONLY)) return;
  let timer;
  const late = new Promise((_, no) => { timer = setTimeout(() => no(new Error(`took more than ${bound / 1000} s`)), bound); });
  contexts = [];
  try {
    await Promise.race([body(), late]);
    const wrong = contexts.flatMap((one) => one.wrong);
    if (wrong.length) throw new Error(`the page reported: ${wrong.join('\n')}`);
    counts.passed += 1;
    console.log(`ok   ${name}`);
  } catch (error) {
    counts.failed += 1;
    console.log(`FAIL ${name}: ${error.stack}`);
    await picture(name);
  } finally {
    clearTimeout(timer);
    await Promise.all(contexts.map(({ context }) => context.close().catch(() => {})));
  }
}

/// Where a failure is looked into, its pages are kept as pictures.
async function picture(name) {
  if (!process.env.PICTURES) return;
  for (const [at, { context }] of contexts.entries()) {
    for (const page of context.pages()) await page.screenshot({ path: `${process.env.PICTURES}/${name.replace(/\W+/g, '-').slice(0, 60)}-${at}.png` }).catch(() => {});
  }
}

async function run(suite) {
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox'] });
  try {
    await suite();
  } finally {
    await browser.close();
  }
  console.log(`${counts.passed} passed, ${counts.failed} failed`);
  process.exit(counts.failed ? 1 : 0);
}

// --- The public API, as programs call it --------------------------------------------------------------

async function api(method, path, body, key = KEY) {
  const response = await fetch(BASE + path, { method, headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }, body: body && JSON.stringify(body) });
  const text = await response.text();
  return { status: response.status, body: text ? JSON.parse(text) : null };
}

/// Asks until something is so.
async function until(what, look, bound = 60_000) {
  const end = Date.now() + bound;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (Date.now() > end) throw new Error(`waited too long for ${what}`);
    await new Promise((go) => setTimeout(go, 100));
  }
}

/// A job by its route, when it has ended.
async function ended(path) {
  return until(`the end of ${path}`, async () => {
    const { body } = await api('GET', path);
    return body.status && body.status !== 'scraping' ? body : null;
  });
}

// --- A site ---------------------------------------------------------------------------------------------

/// `routes`: path to HTML, or to a function of request and response.
async function site(routes) {
  const server = http.createServer((request, response) => {
    const found = routes[new URL(request.url, 'http://site').pathname];
    if (found === undefined) {
      response.statusCode = 404;
      return response.end('<title>not here</title><p>There is no such page.</p>');
    }
    if (typeof found === 'function') return found(request, response);
    response.setHeader('Content-Type', 'text/html; charset=utf-8');
    return response.end(found);
  });
  await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
  return { url: (path) => `http://127.0.0.1:${server.address().port}${path}`, server, close: () => server.closeAllConnections() || server.close() };
}

module.exports = { BASE, KEY, OPERATOR, READER, open, signIn, signedIn, visit, settled, test, run, api, until, ended, site };
