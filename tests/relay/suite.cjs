// Drives one session as users do: Playwright and Puppeteer, unmodified, through its cdpUrl. Says what passed.
//
//   CDP_URL=ws://… [DOWNLOADS=folder of this machine] node suite.cjs      closes with "N passed, N failed"
'use strict';

const assert = require('node:assert/strict');
const crypto = require('node:crypto');
const fs = require('node:fs');
const http = require('node:http');
const os = require('node:os');
const path = require('node:path');
const { chromium } = require('playwright-core');
const puppeteer = require('puppeteer-core');

// A client that a failed test leaves behind would answer the next one's dialogs.
const opened = [];
const connect = chromium.connectOverCDP.bind(chromium);
chromium.connectOverCDP = async (url) => {
  // What does not come at all is waited for in vain anyway: a machine with much else to do takes its time.
  const browser = await connect(url, { timeout: 90_000 });
  for (const context of browser.contexts()) context.setDefaultTimeout(90_000);
  opened.push(browser);
  return browser;
};

const CDP_URL = process.env.CDP_URL;
const HTTP_URL = CDP_URL.replace(/^ws/, 'http');
let passed = 0, failed = 0;

async function test(name, body) {
  let timer;
  const bound = new Promise((_, no) => { timer = setTimeout(() => no(new Error('took more than 120 s')), 120_000); });
  try {
    await Promise.race([body(), bound]);
    passed += 1;
    console.log(`ok   ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAIL ${name}: ${error.stack}`);
  } finally {
    clearTimeout(timer);
    await Promise.all(opened.splice(0).map((browser) => browser.close()));
  }
}

// A site of our own: a form, an upload, a download, a page of noise.
const uploads = [];
const site = http.createServer((request, response) => {
  const url = new URL(request.url, 'http://site');
  if (request.method === 'POST') {
    const parts = [];
    request.on('data', (part) => parts.push(part));
    request.on('end', () => {
      uploads.push(Buffer.concat(parts).toString('latin1'));
      response.end('<title>taken</title>taken');
    });
    return;
  }
  if (url.pathname === '/file') {
    response.setHeader('Content-Disposition', 'attachment; filename="report.txt"');
    return response.end('the report');
  }
  if (url.pathname === '/api') {
    response.setHeader('Content-Type', 'application/json');
    return response.end('{"answer":42}');
  }
  response.setHeader('Content-Type', 'text/html');
  response.setHeader('Set-Cookie', 'visited=yes; Path=/');
  if (url.pathname === '/noise') {
    return response.end(`<title>noise</title><body style="margin:0"><canvas id=c width=1200 height=3000></canvas><script>
      const g = c.getContext('2d'), d = g.createImageData(1200, 3000);
      for (let i = 0; i < d.data.length; i += 65536) crypto.getRandomValues(d.data.subarray(i, Math.min(i + 65536, d.data.length)));
      for (let i = 3; i < d.data.length; i += 4) d.data[i] = 255; g.putImageData(d, 0, 0)</script>`);
  }
  response.end(`<title>form</title><h1>Form</h1><form method=post enctype=multipart/form-data action=/upload>
    <label>Name <input name=name id=name></label><input type=file name=file id=file multiple>
    <button id=send>Send</button></form><button id=b onclick="out.textContent = 'hello ' + document.getElementById('name').value">Greet</button>
    <p id=out></p><a id=load href=/file>load</a><a id=pop href=/other target=_blank>pop</a>
    <script>console.log('form is here', 7); fetch('/api')</script>`);
});

async function main() {
  await new Promise((done) => site.listen(0, '127.0.0.1', done));
  const SITE = `http://127.0.0.1:${site.address().port}`;
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'weir-suite-'));
  fs.writeFileSync(path.join(folder, 'note.txt'), 'content of the note');

  await test('playwright: navigate, click, type, read', async () => {
    const browser = await chromium.connectOverCDP(CDP_URL);
    const page = await browser.contexts()[0].newPage();
    await page.goto(SITE);
    assert.equal(await page.title(), 'form');
    await page.fill('#name', 'Ada');
    await page.click('#b');
    assert.equal(await page.textContent('#out'), 'hello Ada');
    await page.press('#name', 'End');
    await page.locator('#name').pressSequentially(' Lovelace', { delay: 1 });
    await page.getByRole('button', { name: 'Greet' }).click();
    assert.equal(await page.textContent('#out'), 'hello Ada Lovelace');
    assert.equal(await page.evaluate(() => [1, 2, 3].map((n) => n * 2).join()), '2,4,6');
    await page.close();
    await browser.close();
  });

  await test('playwright: a file of this machine and one from memory are uploaded', async () => {
    const browser = await chromium.connectOverCDP(CDP_URL);
    const page = await browser.contexts()[0].newPage();
    await page.goto(SITE);
    await page.setInputFiles('#file', path.join(folder, 'note.txt'));
    await page.click('#send');
    await page.waitForFunction(() => document.title === 'taken');
    assert.match(uploads.pop(), /filename="note.txt"[\s\S]*content of the note/);
    await page.goto(SITE);
    const many = { name: 'big.bin', mimeType: 'application/octet-stream', buffer: Buffer.alloc(3 << 20, 'z') };
    const chooser = page.waitForEvent('filechooser');
    await page.click('#file');
    await (await chooser).setFiles([many, { name: 'b.txt', mimeType: 'text/plain', buffer: Buffer.from('b') }]);
    await page.click('#send');
    await page.waitForFunction(() => document.title === 'taken');
    assert.ok(uploads.pop().length > 3 << 20);
    await page.close();
    await browser.close();
  });

  await test('playwright: a download happens in the session, and its file is there', async () => {
    const browser = await chromium.connectOverCDP(CDP_URL);
    const page = await browser.contexts()[0].newPage();
    const ended = new Promise((done) => {
      // The events of the protocol say under which name the file lies.
      browser.newBrowserCDPSession().then(async (session) => {
        await session.send('Browser.setDownloadBehavior', { behavior: 'allowAndName', downloadPath: '/nonexistent', eventsEnabled: true });
        session.on('Browser.downloadProgress', (event) => event.state === 'completed' && done(event));
        await page.goto(SITE);
        const download = page.waitForEvent('download');
        await page.click('#load');
        assert.equal((await download).suggestedFilename(), 'report.txt');
        assert.equal(await (await download).failure(), null);
      });
    });
    const event = await ended;
    if (process.env.DOWNLOADS) {
      assert.equal(path.dirname(event.filePath), process.env.DOWNLOADS);
      assert.equal(fs.readFileSync(event.filePath, 'utf8'), 'the report');
    }
    await page.close();
    await browser.close();
  });

  await test('playwright: full-page screenshot of several megabytes, and a PDF', async () => {
    const browser = await chromium.connectOverCDP(CDP_URL);
    const page = await browser.contexts()[0].newPage();
    await page.goto(`${SITE}/noise`);
    const shot = await page.screenshot({ fullPage: true });
    assert.ok(shot.length > 6 << 20, `${shot.length}`);
    assert.equal(shot.readUInt32BE(20), 3000);
    assert.equal((await page.pdf()).subarray(0, 5).toString(), '%PDF-');
    await page.close();
    await browser.close();
  });

  await test('playwright: several tabs, a pop-up and a context of its own', async () => {
    const browser = await chromium.connectOverCDP(CDP_URL);
    const context = browser.contexts()[0];
    const [one, two] = await Promise.all([context.newPage(), context.newPage()]);
    await Promise.all([one.goto(SITE), two.goto(`${SITE}/other`)]);
    const popup = context.waitForEvent('page');
    await one.click('#pop');
    await (await popup).waitForLoadState();
    assert.equal((await popup).url(), `${SITE}/other`);
    const own = await browser.newContext({ viewport: { width: 700, height: 500 } });
    const page = await own.newPage();
    await page.goto(SITE);
    assert.equal(await page.evaluate(() => innerWidth), 700);
    await own.close();
    await Promise.all([one.close(), two.close(), (await popup).close()]);
    await browser.close();
  });

  await test('playwright: console, network, interception, dialogs', async () => {
    const browser = await chromium.connectOverCDP(CDP_URL);
    const page = await browser.contexts()[0].newPage();
    const said = [], asked = [];
    page.on('console', (message) => said.push(message.text()));
    page.on('response', (response) => asked.push(`${response.status()} ${new URL(response.url()).pathname}`));
    page.on('dialog', (dialog) => dialog.accept('typed'));
    await page.route('**/api', (route) => route.fulfill({ json: { answer: 'ours' } }));
    await page.goto(SITE, { waitUntil: 'networkidle' });
    assert.deepEqual(said, ['form is here 7']);
    assert.ok(asked.includes('200 /') && asked.includes('200 /api'), asked.join());
    assert.equal(await page.evaluate(async () => (await (await fetch('/api')).json()).answer), 'ours');
    assert.equal(await page.evaluate(() => prompt('well?')), 'typed');
    await page.close();
    await browser.close();
  });

  await test('playwright: cookies', async () => {
    const browser = await chromium.connectOverCDP(CDP_URL);
    const context = browser.contexts()[0];
    await context.addCookies([{ name: 'given', value: 'one', url: SITE }]);
    const page = await context.newPage();
    await page.goto(SITE);
    const names = (await context.cookies(SITE)).map((cookie) => `${cookie.name}=${cookie.value}`).sort();
    assert.deepEqual(names, ['given=one', 'visited=yes']);
    await context.clearCookies();
    await page.close();
    await browser.close();
  });

  await test('closing disconnects one client; pages and other clients stay', async () => {
    const first = await chromium.connectOverCDP(CDP_URL);
    const second = await chromium.connectOverCDP(CDP_URL);
    const page = await first.contexts()[0].newPage();
    await page.goto(SITE);
    await page.evaluate(() => { window.mark = 'mine'; });
    await first.close();
    const puppet = await puppeteer.connect({ browserWSEndpoint: CDP_URL, defaultViewport: null });
    const found = (await puppet.pages()).find((p) => p.url() === `${SITE}/`);
    assert.equal(await found.evaluate(() => window.mark), 'mine');
    // This one sends Browser.close.
    await puppet.close();
    assert.equal(second.isConnected(), true);
    const again = second.contexts()[0].pages().find((p) => p.url() === `${SITE}/`);
    assert.equal(await again.evaluate(() => window.mark), 'mine');
    await again.close();
    await second.close();
  });

  await test('puppeteer: navigate, click, type, screenshot, cookies, tabs', async () => {
    const browser = await puppeteer.connect({ browserWSEndpoint: CDP_URL, defaultViewport: null });
    const page = await browser.newPage();
    const said = [];
    page.on('console', (message) => said.push(message.text()));
    await page.goto(SITE, { waitUntil: 'networkidle0' });
    await page.type('#name', 'Grace');
    await page.click('#b');
    assert.equal(await page.$eval('#out', (out) => out.textContent), 'hello Grace');
    assert.deepEqual(said, ['form is here 7']);
    assert.ok((await page.cookies()).some((cookie) => cookie.name === 'visited'));
    const popup = new Promise((done) => page.once('popup', done));
    await page.click('#pop');
    await (await popup).close();
    await page.goto(`${SITE}/noise`);
    assert.ok((await page.screenshot({ fullPage: true })).length > 6 << 20);
    const own = await browser.createBrowserContext();
    await (await own.newPage()).goto(SITE);
    await own.close();
    await page.close();
    await browser.disconnect();
  });

  await test('puppeteer: a path of this machine is refused in words, content goes through', async () => {
    const browser = await puppeteer.connect({ browserWSEndpoint: CDP_URL, defaultViewport: null });
    const page = await browser.newPage();
    await page.goto(SITE);
    const input = await page.$('#file');
    await assert.rejects(() => input.uploadFile(path.join(folder, 'note.txt')), /runs on another machine/);
    await input.evaluate((element, text) => {
      const files = new DataTransfer();
      files.items.add(new File([text], 'sent.txt', { type: 'text/plain' }));
      element.files = files.files;
    }, 'sent as content');
    await Promise.all([page.waitForNavigation(), page.click('#send')]);
    assert.match(uploads.pop(), /filename="sent.txt"[\s\S]*sent as content/);
    await page.close();
    await browser.disconnect();
  });

  await test('two clients work side by side', async () => {
    const [one, two] = await Promise.all([
      chromium.connectOverCDP(CDP_URL),
      puppeteer.connect({ browserWSEndpoint: CDP_URL, defaultViewport: null }),
    ]);
    const work = async (page, text) => {
      for (let round = 0; round < 30; round += 1) {
        assert.equal(await page.evaluate((t) => t + t, `${text}${round}`), `${text}${round}${text}${round}`);
      }
      await page.close();
    };
    await Promise.all([work(await one.contexts()[0].newPage(), 'a'), work(await two.newPage(), 'b')]);
    await one.close();
    await two.disconnect();
  });

  await test('an http address works for discovery', async () => {
    const answer = await fetch(HTTP_URL.replace('?', '/json/version?'));
    const version = await answer.json();
    assert.equal(version.webSocketDebuggerUrl, CDP_URL);
    assert.match(version.Browser, /Chrome/);
    const browser = await chromium.connectOverCDP(HTTP_URL);
    assert.equal(browser.contexts().length, 1);
    await browser.close();
  });

  await test('a wrong token is 401, an unknown session 401 or 404', async () => {
    const wrong = CDP_URL.replace(/token=.*/, `token=${crypto.randomBytes(32).toString('hex')}`);
    await assert.rejects(() => chromium.connectOverCDP(wrong), /401/);
    await assert.rejects(() => puppeteer.connect({ browserWSEndpoint: wrong }), (event) => /401/.test(event.message));
    const without = await fetch(HTTP_URL.replace(/\?.*/, '/json/version'));
    assert.equal(without.status, 401);
    const other = await fetch(HTTP_URL.replace(/\/cdp\/[^?]*/, '/cdp/nothing'));
    assert.equal(other.status, 404);
    assert.equal((await fetch(HTTP_URL)).status, 400);
  });

  await test('what would break out is refused in words', async () => {
    const browser = await chromium.connectOverCDP(CDP_URL);
    const page = await browser.contexts()[0].newPage();
    await assert.rejects(() => page.goto('file:///etc/passwd'), /cannot open file: addresses/);
    await assert.rejects(() => browser.newContext({ proxy: { server: 'http://127.0.0.1:1' } }), /proxyServer/);
    const raw = await browser.newBrowserCDPSession();
    await assert.rejects(() => raw.send('Browser.crash'), /not open to clients/);
    await assert.rejects(() => raw.send('SystemInfo.getProcessInfo'), /not open to clients/);
    assert.ok((await raw.send('Browser.getVersion')).product);
    await page.close();
    await browser.close();
  });

  site.closeAllConnections();
  site.close();
  fs.rmSync(folder, { recursive: true });
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed ? 1 : 0);
}

main();
