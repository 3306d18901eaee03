// Hostile content in every field that a caller or a page can fill: nothing of it runs, nothing of it becomes an element
// or a link that runs, and nothing is loaded from where it points.
//
//   BASE=http://… KEY=… OPERATOR=… CHROMIUM=… node hostile.cjs      closes with "N passed, N failed"
'use strict';

const assert = require('node:assert/strict');
const { BASE, KEY, OPERATOR, open, signedIn, visit, test, run, api, until, ended, site } = require('./lib.cjs');

/// What each hostile text tries: to run, to load, to become markup.
const attack = (where) => `<img src=x onerror="window.hurt='${where}'"><script>window.hurt='${where}'</script><svg onload="window.hurt='${where}'"><a href="javascript:window.hurt='${where}'">${where}</a>"'><iframe srcdoc="<script>parent.hurt=1</script>">{{constructor.constructor('window.hurt=1')()}}\${window.hurt=1}`;
const MARK = 'hostile-mark';

run(async () => {
  const loads = [];
  const web = await site({
    '/page': (request, response) => {
      response.setHeader('Content-Type', 'text/html; charset=utf-8');
      const text = attack(`page ${MARK}`).replaceAll('<', '&lt;');
      response.end(`<!doctype html><html lang='"><img src=x onerror=alert(1)>'><head><title>${text}</title><meta name="description" content='${text.replaceAll("'", '&#39;')}'>
        <meta property="og:title" content='${text.replaceAll("'", '&#39;')}'></head><body><main><h1>${text}</h1>
        <p>${text} A long paragraph that is kept as the content of this page, with words enough to count.</p>
        <p><a href="javascript:window.hurt='link'">a link that runs</a> <a href="data:text/html,<script>parent.hurt=1</script>">data</a> <a href="${web.url('/ok')}">fine</a></p>
        <p><img src="${web.url('/loaded.png')}" alt='${text.replaceAll("'", '&#39;')}'></p>
        <pre><code>${text}</code></pre><table><tr><th>${text}</th></tr><tr><td>${text}</td></tr></table>
        <p>&lt;script&gt;window.hurt='md'&lt;/script&gt; [md](javascript:window.hurt='md') ![md](${web.url('/loaded.png')}) &lt;javascript:window.hurt=1&gt;</p>
        </main><script>window.hurt = 'frame'; parent.hurt = 'frame'; top.hurt = 'frame'; alert(1);</script><link rel=stylesheet href="${web.url('/loaded.css')}"><form action="${web.url('/sent')}"><button>go</button></form>
        <meta http-equiv=refresh content="0;url=${web.url('/moved')}"></body></html>`);
    },
    '/loaded.png': (request, response) => {
      loads.push(request.headers['user-agent'] + request.url);
      response.end();
    },
    '/hook': (request, response) => {
      response.statusCode = 500;
      response.setHeader('Content-Type', 'text/html');
      response.end(attack('hook'));
    },
  });

  /// Goes through a page of the console and holds it to what must never be.
  const harmless = async (page, where) => {
    const found = await page.evaluate(() => ({
      hurt: window.hurt,
      scripts: [...document.scripts].map((one) => one.src).filter((src) => !src.startsWith(`${location.origin}/console/assets/`)).length,
      links: [...document.querySelectorAll('a[href]')].filter((one) => !['http:', 'https:'].includes(one.protocol)).map((one) => one.outerHTML.slice(0, 300)),
      open: [...document.querySelectorAll('a[target]')].filter((one) => !/noopener/.test(one.rel) || !/noreferrer/.test(one.rel)).map((one) => one.outerHTML),
      images: [...document.images].map((one) => one.src).filter((src) => !src.startsWith(location.origin) && !src.startsWith('data:image/')),
      handlers: [...document.querySelectorAll('*')].filter((one) => one.getAttributeNames().some((name) => name.startsWith('on') || name === 'style' && /url\(/.test(one.getAttribute('style')))).map((one) => one.outerHTML.slice(0, 200)),
      frames: [...document.querySelectorAll('iframe')].filter((one) => !one.src.includes('/live/') && one.getAttribute('sandbox') !== '').map((one) => one.outerHTML.slice(0, 200)),
    }));
    assert.deepEqual(found, { hurt: undefined, scripts: 0, links: [], open: [], images: [], handlers: [], frames: [] }, where);
  };

  const url = `${web.url('/page')}?q=${encodeURIComponent(attack('url'))}&m=${MARK}#${attack('hash')}`;
  const formats = ['markdown', 'html', 'rawHtml', 'links', 'images', 'screenshot', { type: 'changeTracking', modes: ['git-diff'] }];
  const scraped = await api('POST', '/v2/scrape', { url, formats, maxAge: 0, origin: attack('origin').slice(0, 250), headers: { 'X-Note': 'a "note" <b>' } });
  assert.equal(scraped.status, 200, JSON.stringify(scraped.body).slice(0, 500));
  loads.length = 0;
  const { body: batch } = await api('POST', '/v2/batch/scrape', {
    urls: [url, `http://127.0.0.1:2/${encodeURIComponent(attack('failed'))}`], formats, maxAge: 0, integration: attack('integration').slice(0, 250),
    webhook: { url: `${web.url('/hook')}?${encodeURIComponent(attack('webhook'))}`, headers: { 'X-A': attack('header') }, metadata: { note: attack('metadata') } },
  });
  assert.ok(batch.id, JSON.stringify(batch));
  await ended(`/v2/batch/scrape/${batch.id}`);

  await test('what pages and callers wrote stays text on every page of the console', async () => {
    const page = await signedIn('/console/keys', { key: OPERATOR, allow: [/Content Security Policy|sandboxed|Blocked script/] });
    // Names of teams and keys.
    await visit(page, '/console/teams');
    await page.getByRole('button', { name: 'New team' }).click();
    await page.getByRole('dialog').getByLabel('Name').fill(`<img src=x onerror=window.hurt=1> ${MARK}`);
    await page.getByRole('button', { name: 'Create team' }).click();
    await page.getByRole('row', { name: /<img src=x onerror/ }).or(page.getByRole('dialog').getByRole('alert')).first().waitFor();
    await harmless(page, 'teams');
    await page.keyboard.press('Escape');
    await visit(page, '/console/keys');
    await page.getByRole('button', { name: 'New key' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill(`"><script>window.hurt=1</script> ${MARK}`);
    await dialog.getByLabel('As team').selectOption({ label: 'tests' });
    await page.getByRole('button', { name: 'Create key' }).click();
    await page.locator('[data-key]').or(dialog.getByRole('alert')).first().waitFor();
    await page.keyboard.press('Escape');
    await harmless(page, 'keys');

    for (const path of ['/console', '/console/jobs', `/console/jobs/${batch.id}`, `/console/jobs/${batch.id}?status=failed`, `/console/jobs/${batch.id}?tab=request`, `/console/failures`, '/console/usage', '/console/sessions']) {
      await visit(page, path);
      await harmless(page, path);
    }
    for (const name of ['curl', 'Python', 'JavaScript']) {
      await visit(page, `/console/jobs/${batch.id}?tab=request`);
      await page.getByRole('button', { name, exact: true }).click();
      await harmless(page, name);
    }
    // Tries of webhooks, with what the receiver said.
    await visit(page, `/console/jobs/${batch.id}?tab=webhooks`);
    await page.getByText('given up').first().waitFor();
    for (const more of await page.locator('.tries summary').all()) await more.click();
    await harmless(page, 'webhooks');
  });

  await test('a hostile page is shown in every format without running or loading anything', async () => {
    const page = await signedIn(`/console/jobs/${batch.id}`, { allow: [/Content Security Policy|sandboxed|Blocked script|Refused to/] });
    const asked = [];
    page.context().on('request', (request) => asked.push(request.url()));
    const links = await page.getByRole('table', { name: 'Pages of the job' }).locator('a').evaluateAll((all) => all.map((one) => one.getAttribute('href')));
    for (const link of links) {
      await visit(page, link);
      await harmless(page, link);
      for (const tab of await page.getByRole('tab').all()) {
        const name = await tab.textContent();
        await tab.click();
        await harmless(page, `${link} ${name}`);
        for (const way of ['As a page', 'Source', 'Side by side', 'Left out only']) {
          const button = page.getByRole('button', { name: way, exact: true });
          if (!(await button.count())) continue;
          await button.click();
          if (way === 'As a page') await until('the frame', () => page.frames().some((frame) => frame !== page.mainFrame() && /html|srcdoc/.test(frame.url())));
          await harmless(page, `${link} ${name} ${way}`);
        }
      }
    }
    const beyond = asked.filter((url) => !url.startsWith(BASE) && !url.startsWith('data:') && !url.startsWith('about:'));
    assert.deepEqual(beyond, [], 'nothing is asked of the page\'s site');
  });

  await test('the playground shows hostile answers as text', async () => {
    const page = await signedIn(`/console/playground/scrape#${encodeURIComponent(JSON.stringify({ url, formats, maxAge: 0, __proto__: { hurt: 1 }, constructor: 'x' }))}`, { allow: [/Content Security Policy|sandboxed|Blocked script|Refused to/] });
    await harmless(page, 'the form');
    await page.getByRole('button', { name: 'JSON', exact: true }).click();
    await harmless(page, 'the body');
    await page.getByLabel('Body').fill(JSON.stringify({ url, formats, maxAge: 0 }));
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.getByText('HTTP 200').waitFor();
    const tabs = await page.getByRole('tablist', { name: 'Formats' }).getByRole('tab').all();
    assert.ok(tabs.length > 5);
    for (const tab of tabs) {
      await tab.click();
      for (const way of ['As a page', 'Source', 'Side by side']) {
        const button = page.getByRole('button', { name: way, exact: true });
        if (await button.count()) await button.click();
        await harmless(page, `${await tab.textContent()} ${way}`);
      }
    }
    for (const name of ['curl', 'Python', 'JavaScript', 'JSON']) {
      await page.getByRole('tablist', { name: 'Result' }).getByRole('tab', { name, exact: true }).click();
      await harmless(page, name);
    }
  });

  await test('addresses of the console itself do no harm', async () => {
    for (const path of [`/console/jobs/${encodeURIComponent(attack('id'))}`, `/console/jobs?host=${encodeURIComponent(attack('host'))}&code=${encodeURIComponent(attack('code'))}&since=%3Cb%3E`, `/console/playground/${encodeURIComponent('<img src=x>')}#${encodeURIComponent('{"url":"<img src=x onerror=hurt=1>"')}`, `/console/failures?code=${encodeURIComponent(attack('code'))}`, `/console/sign-in#${encodeURIComponent(attack('token'))}`, '/console/%E0%A4%A', '/console//evil.example/']) {
      const page = await open(path);
      await page.getByLabel('Key', { exact: true }).waitFor();
      await page.getByLabel('Key', { exact: true }).fill(KEY);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.locator('main#main').waitFor();
      await harmless(page, path);
      assert.equal(new URL(page.url()).origin, BASE);
      await page.context().close();
    }
  });

  await test('the console is not framed, and its pages may run nothing from elsewhere', async () => {
    const around = await site({ '/': `<!doctype html><title>around</title><iframe src="${BASE}/console"></iframe>` });
    const page = await open('/console', { allow: [/frame-ancestors|Refused to (frame|display)|Framing/] });
    const policy = (await page.request.get('/console')).headers()['content-security-policy'];
    assert.match(policy, /frame-ancestors 'none'/);
    assert.doesNotMatch(policy, /unsafe/);
    await page.goto(around.url('/'));
    await page.waitForTimeout(300);
    const inside = page.frames().find((frame) => frame !== page.mainFrame());
    assert.ok(!inside || !inside.url().startsWith(BASE) || (await inside.locator('.sign').count()) === 0);
    around.close();
  });
  web.close();
});
