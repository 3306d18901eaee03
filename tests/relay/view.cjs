// Uses the live view of one session as people do: in real Chromium, watching and in control. Says what passed.
//
//   CDP_URL=ws://… LIVE_URL=http://… CONTROL_URL=http://… CHROMIUM=/path [SHOTS=folder] node view.cjs
//   closes with "N passed, N failed"
'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const http = require('node:http');
const path = require('node:path');
const { chromium } = require('playwright-core');

const { CDP_URL, LIVE_URL, CONTROL_URL, CHROMIUM, SHOTS } = process.env;
let passed = 0, failed = 0;

async function test(name, body) {
  let timer;
  const bound = new Promise((_, no) => { timer = setTimeout(() => no(new Error('took more than 100 s')), 100_000); });
  try {
    await Promise.race([body(), bound]);
    passed += 1;
    console.log(`ok   ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAIL ${name}: ${error.stack}`);
  } finally {
    clearTimeout(timer);
  }
}

async function until(what, body) {
  const end = Date.now() + 40_000;
  for (;;) {
    if (await body()) return;
    if (Date.now() > end) throw new Error(`never: ${what}`);
    await new Promise((done) => setTimeout(done, 50));
  }
}

const site = http.createServer((request, response) => {
  response.setHeader('Content-Type', 'text/html');
  if (request.url.startsWith('/home')) return response.end('<title>Welcome home</title><body style="font:20px sans-serif"><h1>Welcome home</h1><a href="/">out</a>');
  if (request.url === '/frame') return response.end(`<title>around</title><body style="margin:0"><iframe src="${CONTROL_URL}" width=900 height=600 allow="clipboard-read; clipboard-write"></iframe>`);
  if (request.url === '/moving') {
    return response.end(`<title>moving</title><body style="margin:0;background:#123"><div id=b style="width:160px;height:160px;background:#6cb8e8"></div>
      <script>let n=0;(function t(){n+=3;b.style.transform='translate('+n%1100+'px,'+(n%500)+'px)';requestAnimationFrame(t)})()</script>`);
  }
  response.end(`<title>Log in</title><body style="margin:0;font:18px sans-serif"><form action=/home style="position:absolute;left:440px;top:200px;width:400px">
    <h1 style="margin:0 0 20px">Log in</h1>
    <input name=user id=user placeholder=Name style="display:block;width:380px;height:40px;margin-bottom:10px;font-size:18px">
    <input name=pass id=pass type=password style="display:block;width:380px;height:40px;margin-bottom:10px;font-size:18px">
    <button style="width:380px;height:44px;font-size:18px">Log in</button></form>
    <input type=file id=file style="position:absolute;left:440px;top:480px;height:40px;width:380px">
    <button id=ask style="position:absolute;left:440px;top:540px;width:180px;height:40px" onclick="out.textContent = prompt('Your town?', 'Ulm')">Ask</button>
    <p id=out style="position:absolute;left:640px;top:535px"></p><div style="height:3000px"></div>`);
});

/** Where a point of the remote page lies in the viewer's window. */
async function at(viewer, x, y) {
  const box = await viewer.locator('#picture').boundingBox();
  const { width, height } = await viewer.evaluate(() => page);
  return [box.x + x / width * box.width, box.y + y / height * box.height];
}
const click = async (viewer, x, y) => viewer.page().mouse.click(...await at(viewer, x, y));

async function main() {
  await new Promise((done) => site.listen(0, '127.0.0.1', done));
  const SITE = `http://127.0.0.1:${site.address().port}`;
  const remote = await chromium.connectOverCDP(CDP_URL, { timeout: 90_000 });
  const target = await remote.contexts()[0].newPage();
  // Without this Playwright answers dialogs itself.
  target.on('dialog', () => {});
  const local = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'], timeout: 90_000 });
  const context = await local.newContext({ viewport: { width: 1100, height: 760 } });
  const problems = [];
  const open = async (url, options) => {
    const page = await (options ? await local.newContext(options) : context).newPage();
    page.setDefaultTimeout(60_000);
    page.on('console', (message) => message.type() === 'error' && problems.push(message.text()));
    page.on('pageerror', (error) => problems.push(String(error)));
    await page.goto(url);
    return page;
  };
  const shot = async (page, name) => { if (SHOTS) await page.screenshot({ path: path.join(SHOTS, `${name}.png`) }); };
  const isLive = (page) => page.waitForFunction(() => document.body.classList.contains('live') && !document.body.classList.contains('connecting'));
  // A frame of the viewer knows its page by `page()`; a page is its own.
  const frameOf = (page) => page.mainFrame();

  let viewer, reader;

  await test('both pages show the session', async () => {
    await target.goto(SITE);
    [viewer, reader] = await Promise.all([open(CONTROL_URL), open(LIVE_URL)]);
    await Promise.all([isLive(viewer), isLive(reader)]);
    await until('the title', async () => (await viewer.title()) === 'Log in – live view');
    assert.equal(await viewer.locator('#mode').textContent(), 'You are in control');
    assert.equal(await reader.locator('#mode').textContent(), 'View only');
    assert.equal(await reader.locator('#address').inputValue(), `${SITE}/`);
    // The picture is painted: something in it is not white.
    await until('a picture', () => reader.evaluate(() => {
      const { data } = document.getElementById('picture').getContext('2d').getImageData(400, 150, 500, 300);
      return data.some((value) => value < 100);
    }));
    await shot(viewer, 'control');
    await shot(reader, 'view');
  });

  await test('a form is filled in and sent by typing and clicking, and the reader sees it', async () => {
    const frame = frameOf(viewer);
    await click(frame, 500, 265);
    await viewer.keyboard.type('Ada Lovelace');
    await viewer.keyboard.press('Tab');
    await viewer.keyboard.type('secret!');
    await until('what was typed', () => target.evaluate(() => user.value === 'Ada Lovelace' && pass.value === 'secret!'));
    await viewer.keyboard.press('Backspace');
    await until('one letter less', () => target.evaluate(() => pass.value === 'secret'));
    await click(frame, 600, 365);
    await until('the next page', () => target.url().startsWith(`${SITE}/home`));
    await until('its title at the reader', async () => (await reader.title()).startsWith('Welcome home'));
    await until('its address at the reader', async () => (await reader.locator('#address').inputValue()).includes('/home'));
    await shot(reader, 'view-after-login');
  });

  await test('back, forward, reload and the address bar', async () => {
    await viewer.click('#back');
    await until('the page before', () => target.url() === `${SITE}/`);
    await viewer.click('#forward');
    await until('the page after', () => target.url().includes('/home'));
    await viewer.fill('#address', 'javascript:alert(1)');
    await viewer.keyboard.press('Enter');
    await viewer.locator('#notice').filter({ hasText: 'Only http' }).waitFor();
    await viewer.fill('#address', SITE);
    await viewer.keyboard.press('Enter');
    await until('the typed address', () => target.url() === `${SITE}/`);
  });

  await test('the reader cannot act, not even past its page', async () => {
    const frame = frameOf(reader);
    await click(frame, 500, 265);
    await reader.keyboard.type('nobody');
    await reader.evaluate(() => {
      for (const order of [{ type: 'navigate', url: 'http://example.com' }, { type: 'newTab' }, { type: 'text', text: 'x' }]) socket.send(JSON.stringify(order));
      hasControl = true;
      send({ type: 'mouse', event: 'down', x: 500, y: 265, button: 0, buttons: 1, clicks: 1 });
      socket.send(new Uint8Array([0, 0, 0, 0]));
    });
    await new Promise((done) => setTimeout(done, 600));
    assert.equal(await target.evaluate(() => user.value + document.activeElement.tagName), 'BODY');
    assert.equal(target.url(), `${SITE}/`);
    assert.ok(await reader.locator('#address').evaluate((input) => input.readOnly));
    assert.equal(await reader.locator('#new-tab').isVisible(), false);
    await reader.reload();
    await isLive(reader);
  });

  await test('wheel, paste, select all, copy', async () => {
    await viewer.mouse.move(...await at(frameOf(viewer), 900, 400));
    await viewer.mouse.wheel(0, 500);
    await until('the scroll', () => target.evaluate(() => scrollY >= 400));
    await target.evaluate(() => scrollTo(0, 0));
    await click(frameOf(viewer), 500, 265);
    await viewer.evaluate(() => {
      const data = new DataTransfer();
      data.setData('text/plain', 'pasted – 漢字');
      keys.dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }));
    });
    await until('the pasted text', () => target.evaluate(() => user.value === 'pasted – 漢字'));
    await viewer.keyboard.press('Control+a');
    await viewer.keyboard.type('new');
    await until('the text that replaced it', () => target.evaluate(() => user.value === 'new'));
    // An input method: text that is composed and then committed.
    const session = await viewer.context().newCDPSession(viewer);
    await session.send('Input.imeSetComposition', { text: 'かん', selectionStart: 2, selectionEnd: 2 });
    await session.send('Input.insertText', { text: '漢' });
    await until('the composed text', () => target.evaluate(() => user.value === 'new漢'));
  });

  await test('a dialog is shown to both and answered by one', async () => {
    await click(frameOf(viewer), 500, 560);
    await viewer.locator('#ask').waitFor();
    await reader.locator('#ask').waitFor();
    assert.equal(await viewer.locator('#ask-text').textContent(), 'Your town?');
    assert.equal(await reader.locator('#ask-yes').isVisible(), false);
    await shot(viewer, 'control-dialog');
    await shot(reader, 'view-dialog');
    await viewer.fill('#ask-input', 'Ghent');
    await viewer.keyboard.press('Enter');
    await until('the answer', () => target.evaluate(() => out.textContent === 'Ghent'));
    await viewer.locator('#ask').waitFor({ state: 'hidden' });
  });

  await test('a file of the viewer reaches the page', async () => {
    await click(frameOf(viewer), 480, 500);
    await viewer.locator('#ask').waitFor();
    await shot(viewer, 'control-chooser');
    const chooser = viewer.waitForEvent('filechooser');
    await viewer.click('#ask-yes');
    await (await chooser).setFiles({ name: 'card.txt', mimeType: 'text/plain', buffer: Buffer.from('my card') });
    await until('the file', () => target.evaluate(async () => file.files.length === 1 && await file.files[0].text() === 'my card'));
    await viewer.locator('#ask').waitFor({ state: 'hidden' });
  });

  await test('tabs: of any context, picked, opened, closed', async () => {
    const own = await remote.newContext();
    const second = await own.newPage();
    await second.goto(`${SITE}/home`);
    await viewer.locator('.tab.active', { hasText: 'Welcome home' }).waitFor();
    await shot(viewer, 'control-tabs');
    await viewer.locator('.tab', { hasText: 'Log in' }).locator('[role=tab]').click();
    await viewer.locator('.tab.active', { hasText: 'Log in' }).waitFor();
    const before = await viewer.locator('.tab').count();
    await viewer.click('#new-tab');
    await until('one more', async () => (await viewer.locator('.tab').count()) === before + 1);
    await viewer.locator('.tab.active', { hasText: /about:blank|New tab/ }).waitFor();
    await viewer.locator('.tab.active .close').click();
    await until('one less', async () => (await viewer.locator('.tab').count()) === before);
    await own.close();
    await viewer.locator('.tab', { hasText: 'Welcome home' }).waitFor({ state: 'detached' });
    await viewer.locator('.tab', { hasText: 'Log in' }).locator('[role=tab]').click();
  });

  await test('the page fits the window when asked to', async () => {
    await viewer.click('#fit');
    await until('the size', () => target.evaluate(() => innerWidth === 1100));
    await shot(viewer, 'control-fit');
    await viewer.click('#fit');
    await until('the old size', () => target.evaluate(() => innerWidth === 1280));
  });

  await test('a touch is a touch', async () => {
    const phone = await open(CONTROL_URL, { viewport: { width: 390, height: 780 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 });
    await isLive(phone);
    await target.evaluate(() => { window.touches = []; addEventListener('touchstart', () => touches.push('touch')); });
    await phone.touchscreen.tap(...await at(frameOf(phone), 600, 280));
    await until('the touch', () => target.evaluate(() => touches.length > 0));
    await shot(phone, 'phone');
    await phone.close();
  });

  await test('it works inside a frame of another site', async () => {
    const around = await open(`${SITE.replace('127.0.0.1', 'localhost')}/frame`);
    const frame = around.frames().find((f) => f.url().startsWith(CONTROL_URL.split('#')[0])) ?? await around.waitForEvent('frameattached');
    await frame.waitForFunction(() => document.body.classList.contains('live') && !document.body.classList.contains('connecting'));
    await target.evaluate(() => { user.value = ''; });
    await click(frame, 500, 265);
    await around.keyboard.type('framed');
    await until('what was typed', () => target.evaluate(() => user.value === 'framed'));
    await shot(around, 'framed');
    await around.close();
  });

  await test('dark, and a moving page moves', async () => {
    const dark = await open(LIVE_URL, { colorScheme: 'dark', viewport: { width: 1100, height: 760 } });
    await isLive(dark);
    await target.goto(`${SITE}/moving`);
    await until('the page', async () => (await dark.title()).startsWith('moving'));
    // How many a second `scripts/bench sessions` measures: here a page that moves is shown as often as it takes.
    await dark.evaluate(() => {
      window.pictures = 0;
      socket.addEventListener('message', (event) => { window.pictures += typeof event.data !== 'string'; });
    });
    await until('pictures that follow each other', () => dark.evaluate(() => window.pictures >= 12));
    await shot(dark, 'view-dark');
    await dark.close();
  });

  await test('a lost connection comes back by itself', async () => {
    await viewer.evaluate(() => { window.old = socket; socket.close(); });
    await until('another connection', () => viewer.evaluate(() => socket !== null && socket !== window.old && socket.readyState === 1));
    await isLive(viewer);
  });

  await test('a wrong link says so', async () => {
    const wrong = await open(LIVE_URL.replace(/#.*/, `#${'0'.repeat(64)}`));
    await wrong.getByText('This link is not valid').waitFor();
    await shot(wrong, 'wrong-link');
    const empty = await open(LIVE_URL.replace(/#.*/, ''));
    await empty.getByText('This link is not valid').waitFor();
    await wrong.close();
    await empty.close();
  });

  await test('the page is closed to the outside and says nothing wrong', async () => {
    const answer = await fetch(LIVE_URL.split('#')[0]);
    assert.match(answer.headers.get('content-security-policy'), /default-src 'none'.*frame-ancestors \*/);
    assert.equal(answer.headers.get('referrer-policy'), 'no-referrer');
    assert.deepEqual(problems, []);
  });

  if (process.env.END) {
    await test('the end of the session is told', async () => {
      fs.writeFileSync(process.env.END, 'now');
      await reader.getByText('The session has ended').waitFor();
      await shot(reader, 'ended');
      const late = await open(LIVE_URL);
      await late.getByText('The session has ended').waitFor();
    });
  }

  await local.close();
  await remote.close();
  site.closeAllConnections();
  site.close();
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed ? 1 : 0);
}

main();
