// Every page of the console and everything that can be done on it, by pointer and by keys, as a team and as operators.
//
//   BASE=http://… KEY=… OTHER_KEY=… OPERATOR=… READER=… CHROMIUM=… PYTHON=… SDK=… node pages.cjs      closes with "N passed, N failed"
'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const execute = require('node:util').promisify(require('node:child_process').execFile);
const { BASE, KEY, OPERATOR, READER, open, signIn, signedIn, visit, settled, test, run, api, until, ended, site } = require('./lib.cjs');

const OTHER_KEY = process.env.OTHER_KEY;
const article = (n, more = '') => `<!doctype html><html lang="en"><head><title>Article ${n}</title></head><body><nav><a href="/">Home of everything</a></nav>
  <main><h1>Article ${n}</h1><p>A long enough paragraph about number ${n}, so that it counts as the content of this page and is kept.</p>${more}</main>
  <footer>Imprint and nothing else of interest</footer></body></html>`;

run(async () => {
  const hooks = [];
  let hooksFail = true;
  let price = 29;
  let isSlow = true;
  const waiting = [];
  const web = await site({
    '/a': article(1), '/b': article(2, '<p><a href="/a">the first</a></p>'),
    '/kettle': (request, response) => {
      response.setHeader('Content-Type', 'text/html');
      response.end(article(3, `<p>The price is ${price} pounds.</p>`));
    },
    '/broken': (request) => request.socket.destroy(),
    '/slow': (request, response) => {
      if (!isSlow) return response.end(article(9));
      return waiting.push(response);
    },
    '/hook': (request, response) => {
      let body = '';
      request.on('data', (part) => { body += part; });
      request.on('end', () => {
        hooks.push(JSON.parse(body));
        response.statusCode = hooksFail ? 500 : 200;
        response.end(hooksFail ? 'not today' : 'thanks');
      });
    },
  });
  const scrape = async (path, more = {}, key = KEY) => (await api('POST', '/v2/scrape', { url: web.url(path), maxAge: 0, ...more }, key)).body;
  const batch = async (paths, more = {}) => {
    const { body } = await api('POST', '/v2/batch/scrape', { urls: paths.map((path) => web.url(path)), maxAge: 0, ...more });
    return body.id;
  };

  await test('a key signs in, a wrong one does not, and signing out ends it', async () => {
    const page = await open('/console/jobs');
    await page.getByLabel('Key', { exact: true }).fill('fc-not-a-key');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').getByText('This key is not known here.').waitFor();
    await signIn(page, KEY);
    await page.getByRole('heading', { name: 'Jobs' }).waitFor();
    assert.equal(new URL(page.url()).pathname, '/console/jobs', 'the address that was asked for');
    const [cookie] = await page.context().cookies();
    assert.deepEqual([cookie.httpOnly, cookie.sameSite], [true, 'Strict']);
    assert.equal(await page.evaluate(() => document.cookie), '');
    const kept = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]));
    assert.ok(!kept.includes(KEY), kept);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('button', { name: 'Sign in' }).waitFor();
    await page.goto('/console');
    await page.getByRole('button', { name: 'Sign in' }).waitFor();
  });

  await test('a sign-in that has ended elsewhere leads back to the form', async () => {
    const page = await signedIn('/console/keys');
    await page.context().clearCookies();
    const told = page.getByText('Your sign-in has ended').waitFor();
    // The stream of figures may be told first, and then nothing is left to be clicked.
    await page.getByRole('link', { name: 'Failures', exact: true }).click({ timeout: 5_000 }).catch(() => {});
    await told;
  });

  await test('the overview shows health, live figures, charts with their tables, and reads values by keys', async () => {
    await scrape('/a');
    const page = await signedIn('/console', { key: OPERATOR });
    await page.getByText('Healthy').waitFor();
    await page.getByText('Live', { exact: true }).waitFor();
    await page.locator('.tile').filter({ hasText: 'In work' }).filter({ hasText: 'slots' }).waitFor();
    for (const range of ['Day', 'Week', 'Hour']) {
      await page.getByRole('button', { name: range, exact: true }).click();
      await settled(page);
      assert.equal(new URL(page.url()).searchParams.get('range'), range === 'Hour' ? null : range.toLowerCase());
    }
    const chart = page.getByRole('img', { name: /^Pages\./ });
    await chart.focus();
    await page.keyboard.press('End');
    await page.locator('[role=status]', { hasText: /HTTP \d/ }).first().waitFor({ state: 'attached' });
    await page.getByRole('button', { name: 'Show Pages as a table' }).click();
    await page.getByRole('table', { name: 'Pages', exact: true }).getByRole('row').nth(3).waitFor();
    await page.getByRole('button', { name: 'Pause live figures' }).click();
    await page.getByText('Paused').waitFor();
    await page.getByRole('button', { name: 'Go on with live figures' }).click();
    await page.getByText('Live', { exact: true }).waitFor();
  });

  await test('a page that was scraped counts in the overview', async () => {
    const page = await signedIn('/console');
    const read = async () => {
      const text = await page.locator('.tile').filter({ hasText: 'Failed' }).locator('.tile-note').textContent();
      return Number((/of ([\d,]+)/.exec(text) || [])[1]?.replaceAll(',', '') || 0);
    };
    await settled(page);
    const before = await read();
    await scrape('/a');
    await until('the count', async () => {
      await page.getByRole('button', { name: 'Day', exact: true }).click();
      await page.getByRole('button', { name: 'Hour', exact: true }).click();
      await settled(page);
      return (await read()) > before;
    });
  });

  await test('jobs are filtered in the address bar, and the back button undoes it', async () => {
    await scrape('/a');
    const id = await batch(['/a', '/b']);
    await ended(`/v2/batch/scrape/${id}`);
    const page = await signedIn('/console/jobs');
    await page.getByLabel('Kind').selectOption('batch');
    await settled(page);
    assert.equal(new URL(page.url()).search, '?kind=batch');
    await page.getByLabel('Status').selectOption('completed');
    await page.getByLabel('Age', { exact: true }).selectOption('1h');
    await page.getByLabel('Site').fill('127.0.0.1');
    await page.waitForURL(/host=127/);
    await settled(page);
    const rows = page.getByRole('table', { name: 'Jobs' }).locator('tbody tr');
    await rows.filter({ hasText: id.slice(-8) }).waitFor();
    for (const text of await rows.allTextContents()) assert.match(text, /Batch/);
    await page.reload();
    await rows.filter({ hasText: id.slice(-8) }).waitFor();
    assert.equal(await page.getByLabel('Status').inputValue(), 'completed');
    await page.getByRole('button', { name: 'Clear' }).click();
    await page.waitForURL((url) => url.search === '');
    await page.goBack();
    await page.waitForURL(/kind=batch/);
    await page.getByLabel('Site').fill('nowhere.example');
    await page.getByText('No job fits the filter').waitFor();
  });

  await test('jobs are cancelled, replayed and deleted by selection and by filter, once that was confirmed', async () => {
    isSlow = true;
    const running = await batch(['/slow', '/slow']);
    const failed = await batch(['/broken']);
    await ended(`/v2/batch/scrape/${failed}`);
    const page = await signedIn('/console/jobs?kind=batch&status=scraping');
    const table = page.getByRole('table', { name: 'Jobs' });
    await table.getByRole('checkbox', { name: `Select ${running}` }).check();
    await page.getByText('1 job chosen').waitFor();
    await page.getByRole('button', { name: 'Cancel', exact: true }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Back' }).click();
    assert.equal((await api('GET', `/v2/batch/scrape/${running}`)).body.status, 'scraping', 'nothing happens before it is confirmed');
    await page.getByRole('button', { name: 'Cancel', exact: true }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel 1 job' }).click();
    await page.getByText('1 job cancelled.').waitFor();
    assert.equal((await api('GET', `/v2/batch/scrape/${running}`)).body.status, 'cancelled');
    for (const response of waiting.splice(0)) response.end('late');
    isSlow = false;

    await visit(page, '/console/jobs?kind=batch&code=SCRAPE_SITE_ERROR');
    await page.getByText('All that fit the filter').waitFor();
    await page.getByRole('button', { name: 'Replay', exact: true }).click();
    await page.getByRole('dialog').getByRole('button', { name: /^Replay \d+ jobs?$/ }).click();
    await page.getByText(/put back/).waitFor();

    await ended(`/v2/batch/scrape/${failed}`);
    await visit(page, '/console/jobs?kind=batch');
    await table.getByRole('checkbox', { name: `Select ${failed}` }).check();
    await table.getByRole('checkbox', { name: `Select ${running}` }).check();
    await page.getByRole('button', { name: 'Delete', exact: true }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete 2 jobs' }).click();
    await page.getByText('2 jobs deleted.').waitFor();
    await until('their end', async () => (await api('GET', `/v2/batch/scrape/${failed}`)).status === 404);
  });

  await test('a job shows its states, its pages, its request as code, and opens in the playground', async () => {
    const id = await batch(['/a', '/broken'], { formats: ['markdown', 'links'] });
    await ended(`/v2/batch/scrape/${id}`);
    const page = await signedIn(`/console/jobs/${id}`);
    await page.getByRole('list', { name: 'States of its pages' }).getByText('Failed').waitFor();
    await page.getByRole('button', { name: /^Failed 1$/ }).click();
    await page.waitForURL(/status=failed/);
    const pages = page.getByRole('table', { name: 'Pages of the job' });
    await pages.getByText('SCRAPE_SITE_ERROR').waitFor();
    await until('the failed page alone', async () => (await pages.locator('tbody tr').count()) === 1);
    await page.getByRole('tab', { name: 'Request' }).click();
    await page.getByText('/v2/batch/scrape').first().waitFor();
    for (const [name, words] of [['curl', 'curl -X POST'], ['Python', 'weir.batch_scrape('], ['JavaScript', 'weir.batchScrape(']]) {
      await page.getByRole('button', { name, exact: true }).click();
      await page.locator('pre').filter({ hasText: words }).waitFor();
    }
    await page.getByRole('link', { name: 'Open in the playground' }).click();
    await page.getByLabel('URLs').waitFor();
    assert.equal(await page.getByLabel('URLs').inputValue(), `${web.url('/a')}\n${web.url('/broken')}`);
  });

  await test('a job that runs is cancelled on its page, one that failed is replayed, and one is deleted', async () => {
    isSlow = true;
    const running = await batch(['/slow']);
    const page = await signedIn(`/console/jobs/${running}`);
    await page.getByRole('button', { name: 'Cancel', exact: true }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
    await page.getByText('The job is cancelled.').waitFor();
    await page.locator('.page-head').getByText('cancelled').waitFor();
    for (const response of waiting.splice(0)) response.end('late');
    isSlow = false;
    const failed = await batch(['/broken']);
    await ended(`/v2/batch/scrape/${failed}`);
    await visit(page, `/console/jobs/${failed}`);
    await page.getByRole('button', { name: 'Replay failed' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Replay' }).click();
    await page.getByText('1 page put back.').waitFor();
    await ended(`/v2/batch/scrape/${failed}`);
    await page.getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('heading', { name: 'Jobs' }).waitFor();
    assert.equal(await page.getByText(failed.slice(-8)).count(), 0);
  });

  await test('webhooks show each try, and what was given up is replayed', async () => {
    hooksFail = true;
    const id = await batch(['/a'], { webhook: { url: web.url('/hook'), events: ['completed'] } });
    await ended(`/v2/batch/scrape/${id}`);
    const page = await signedIn(`/console/jobs/${id}?tab=webhooks`);
    const row = page.getByRole('table', { name: 'Deliveries' }).locator('tbody tr');
    await row.getByText('given up').waitFor();
    await row.getByText(/tries/).click();
    await row.getByText('HTTP 500').nth(1).waitFor();
    hooksFail = false;
    const before = hooks.length;
    await row.getByRole('button', { name: 'Replay' }).click();
    await page.getByText('1 delivery put back.').waitFor();
    await until('the delivery', async () => hooks.length > before);
    await row.getByText('delivered').waitFor();
  });

  await test('a page shows each format, what was left out, and how it went', async () => {
    const answer = await scrape('/b', { formats: ['markdown', 'html', 'rawHtml', 'links', 'screenshot', { type: 'attributes', selectors: [{ selector: 'a', attribute: 'href' }] }] });
    assert.ok(answer.success, JSON.stringify(answer).slice(0, 500));
    const id = answer.data.metadata.scrapeId;
    const page = await signedIn('/console/jobs');
    await page.getByRole('table', { name: 'Jobs' }).getByRole('link', { name: web.url('/b') }).first().click();
    await page.getByRole('table', { name: 'Pages of the job' }).getByRole('link').first().click();
    await page.getByRole('heading', { level: 1, name: 'Article 2' }).waitFor();
    assert.ok(page.url().includes(id));
    await page.getByRole('button', { name: 'Source', exact: true }).click();
    await page.locator('pre').filter({ hasText: '# Article 2' }).waitFor();
    await page.getByRole('button', { name: 'Side by side' }).click();
    await page.locator('.side-by-side pre').waitFor();
    await page.getByRole('tab', { name: 'HTML', exact: true }).click();
    await page.frameLocator('iframe.frame').getByText('A long enough paragraph').waitFor();
    await page.getByRole('tab', { name: 'Raw HTML' }).click();
    await page.locator('pre').filter({ hasText: 'Imprint and nothing else' }).waitFor();
    await page.getByRole('button', { name: 'As a page' }).click();
    await page.frameLocator('iframe.frame').getByText('Imprint and nothing else').waitFor();
    await page.getByRole('tab', { name: 'Screenshot' }).click();
    await until('the picture', () => page.locator('.shot img').evaluate((image) => image.complete && image.naturalWidth > 100));
    await page.getByRole('tab', { name: /^Links/ }).click();
    await page.locator('.links').getByText('/a').waitFor();
    await page.getByRole('tab', { name: 'Left out' }).click();
    const left = page.locator('.block.left');
    await left.filter({ hasText: 'Imprint and nothing else' }).getByText('footer').waitFor();
    assert.equal(await left.filter({ hasText: 'A long enough paragraph' }).count(), 0);
    await page.getByRole('button', { name: 'Left out only' }).click();
    assert.equal(await page.locator('.block:not(.left)').count(), 0);
    await page.getByRole('tab', { name: 'Metadata' }).click();
    await page.getByRole('rowheader', { name: 'statusCode' }).waitFor();
    await page.waitForURL(/tab=metadata/);
    await page.getByRole('tab', { name: 'As JSON' }).click();
    await page.locator('pre').filter({ hasText: '"attributes"' }).waitFor();
    // A page with a picture is rendered and not fetched before.
    for (const step of [/^Rendered in /, /^Extracted in /, /^Committed/]) await page.getByRole('listitem').getByText(step).first().waitFor();
  });

  await test('a page that failed says why and what to do', async () => {
    const id = await batch(['/broken']);
    await ended(`/v2/batch/scrape/${id}`);
    const page = await signedIn(`/console/jobs/${id}`);
    await page.getByRole('table', { name: 'Pages of the job' }).getByRole('link').first().click();
    await page.getByRole('alert').getByText('The site refused the connection').waitFor();
    await page.getByText(/Try 1 failed/).waitFor();
    await page.getByRole('button', { name: 'Replay failed' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Replay' }).click();
    await page.getByText('1 page put back.').waitFor();
  });

  await test('a page with change tracking shows its history', async () => {
    const formats = ['markdown', { type: 'changeTracking', modes: ['git-diff'] }];
    price = 29;
    await scrape('/kettle', { formats });
    price = 24;
    const second = await scrape('/kettle', { formats });
    assert.equal(second.data.changeTracking.changeStatus, 'changed', JSON.stringify(second).slice(0, 400));
    const page = await signedIn('/console/jobs');
    await page.getByRole('table', { name: 'Jobs' }).getByRole('link', { name: web.url('/kettle') }).first().click();
    await page.getByRole('table', { name: 'Pages of the job' }).getByRole('link').first().click();
    await page.getByRole('tab', { name: 'Changes' }).click();
    await page.locator('.diff-line.new', { hasText: '24 pounds' }).waitFor();
    await page.getByRole('tab', { name: 'History' }).click();
    await page.locator('.timeline .status', { hasText: 'changed' }).waitFor();
    await page.locator('.timeline .status', { hasText: 'new' }).waitFor();
    await page.locator('.diff-line.gone', { hasText: '29 pounds' }).waitFor();
  });

  await test('the playground makes its forms from the description, and runs each operation', async () => {
    const page = await signedIn('/console/playground');
    await page.getByLabel('URL', { exact: true }).fill(web.url('/a'));
    await page.getByText('links', { exact: true }).click();
    await page.getByText('All options').click();
    await page.getByLabel('Timeout', { exact: true }).fill('20000');
    await page.getByLabel('Mobile').check();
    await page.getByRole('button', { name: 'JSON', exact: true }).click();
    assert.deepEqual(JSON.parse(await page.getByLabel('Body').inputValue()), { url: web.url('/a'), formats: ['links'], timeout: 20_000, mobile: true });
    await page.getByRole('button', { name: 'Form', exact: true }).click();
    await page.getByText('markdown', { exact: true }).click();
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.getByText('HTTP 200').waitFor();
    await page.getByRole('tab', { name: 'Markdown' }).waitFor();
    await page.reload();
    assert.equal(await page.getByLabel('URL', { exact: true }).inputValue(), web.url('/a'), 'the address bar keeps it');

    await page.getByRole('button', { name: 'Batch', exact: true }).click();
    await page.getByLabel('URLs').fill(`${web.url('/a')}\n${web.url('/b')}`);
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.getByText('2 of 2 pages').waitFor();
    await page.getByRole('link', { name: 'Open the job' }).waitFor();

    await page.getByRole('button', { name: 'Crawl', exact: true }).click();
    await page.getByLabel('URL', { exact: true }).fill(web.url('/b'));
    await page.getByLabel('Limit', { exact: true }).fill('3');
    await page.getByLabel('Prompt').fill('only the articles, at most 2 pages');
    await page.getByRole('button', { name: 'Preview parameters' }).click();
    await page.getByText('The prompt was turned into options').waitFor();
    assert.equal(await page.getByLabel('Limit', { exact: true }).inputValue(), '3', 'what was given stays');
    await page.getByRole('button', { name: 'Clear' }).click();
    await page.getByLabel('URL', { exact: true }).fill(web.url('/b'));
    await page.getByLabel('Limit', { exact: true }).fill('2');
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.locator('.card', { hasText: 'Result' }).getByText('completed', { exact: true }).waitFor();

    await page.getByRole('button', { name: 'Map', exact: true }).click();
    await page.getByLabel('URL', { exact: true }).fill(web.url('/b'));
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.locator('.links').getByText(web.url('/a')).waitFor();

    await page.getByRole('button', { name: 'Search', exact: true }).click();
    await page.getByLabel('Query').fill('kettles');
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.getByText(process.env.SEARCH ? 'HTTP 200' : 'SEARCH_NOT_CONFIGURED').first().waitFor();

    await page.getByRole('button', { name: 'Parse', exact: true }).click();
    await page.getByLabel('File').setInputFiles({ name: 'note.html', mimeType: 'text/html', buffer: Buffer.from(article(7)) });
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.getByRole('heading', { name: 'Article 7' }).waitFor();
    await page.getByRole('tab', { name: 'curl' }).click();
    await page.getByText("file=@note.html").waitFor();
  }, 150_000);

  await test('what the playground offers to copy is what curl and the official clients take', async () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'weir-console-'));
    fs.symlinkSync(process.env.SDK, path.join(folder, 'node_modules'));
    const calls = {
      scrape: { url: web.url('/a'), formats: ['markdown', { type: 'screenshot', fullPage: true }], onlyMainContent: false, skipTlsVerification: true, maxAge: 0 },
      batch: { urls: [web.url('/a'), web.url('/b')], ignoreInvalidURLs: true, maxConcurrency: 1, formats: ['markdown'] },
      crawl: { url: web.url('/b'), limit: 2, scrapeOptions: { formats: ['markdown'], onlyMainContent: false } },
      map: { url: web.url('/b'), limit: 5 },
    };
    const page = await signedIn('/console/playground');
    for (const [name, body] of Object.entries(calls)) {
      await page.goto(`/console/playground/${name}#${encodeURIComponent(JSON.stringify(body))}`);
      await page.reload();
      for (const [tab, file, command] of [['curl', 'call.sh', 'bash'], ['Python', 'call.py', process.env.PYTHON], ['JavaScript', 'call.mjs', 'node']]) {
        await page.getByRole('tab', { name: tab }).click();
        await page.getByRole('button', { name: 'Copy the call' }).click();
        const copied = await page.evaluate(() => navigator.clipboard.readText());
        assert.ok(!copied.includes(KEY), 'no key is put into it');
        fs.writeFileSync(path.join(folder, file), copied);
        const { stdout } = await execute(command, [path.join(folder, file)], { cwd: folder, timeout: 60_000, env: { ...process.env, WEIR_KEY: KEY } });
        assert.match(stdout, /Article 1|"success":true|127\.0\.0\.1/, `${name} ${tab}: ${stdout.slice(0, 300)}`);
      }
    }
    fs.rmSync(folder, { recursive: true });
  }, 180_000);

  await test('errors of a call are shown as they are', async () => {
    const page = await signedIn(`/console/playground/scrape#${encodeURIComponent(JSON.stringify({ url: 'http://10.1.2.3/' }))}`);
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.getByText('HTTP 403').waitFor();
    await page.getByRole('alert').getByText('unsafe_domain_blocked').waitFor();
  });

  await test('failures are grouped by site and reason, and a group is replayed', async () => {
    const id = await batch(['/broken']);
    await ended(`/v2/batch/scrape/${id}`);
    const page = await signedIn('/console/failures');
    const group = page.getByRole('article').filter({ hasText: 'SCRAPE_SITE_ERROR' });
    await group.getByText('127.0.0.1').first().waitFor();
    await group.getByRole('link', { name: /broken/ }).waitFor();
    await page.getByRole('button', { name: 'Hour', exact: true }).click();
    await page.waitForURL(/since=1h/);
    await settled(page);
    await group.getByRole('button', { name: 'Replay' }).click();
    await page.getByRole('dialog').getByRole('button', { name: /^Replay \d/ }).click();
    await page.getByText(/put back/).waitFor();
    await ended(`/v2/batch/scrape/${id}`);
    await page.getByRole('link', { name: 'Jobs', exact: true }).last().click();
    await page.getByRole('heading', { name: 'Jobs' }).waitFor();
  });

  await test('usage is shown by day, kind and key, with limits', async () => {
    await scrape('/a');
    const page = await signedIn('/console/usage');
    const table = page.getByRole('table', { name: 'Credits', exact: true });
    await table.getByText('Scrape').waitFor();
    await page.getByRole('button', { name: 'By key' }).click();
    await page.waitForURL(/by=key/);
    await table.getByRole('row').nth(1).waitFor();
    await page.getByRole('meter', { name: 'Pages at once' }).waitFor();
    await page.getByRole('button', { name: '7 days' }).click();
    await page.waitForURL(/days=7/);
    await page.getByRole('button', { name: 'Show Credits by day as a table' }).click();
    await page.getByRole('table', { name: 'Credits by day' }).waitFor();
  });

  await test('keys are made, named and revoked', async () => {
    const name = `for a test ${Date.now()}`;
    const page = await signedIn('/console/keys');
    await page.getByRole('button', { name: 'New key' }).click();
    await page.getByRole('dialog').getByLabel('Name').fill(name);
    await page.keyboard.press('Enter');
    const key = await page.locator('[data-key]').textContent();
    await page.getByRole('dialog').getByRole('button', { name: 'Copy' }).click();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), key);
    await page.getByRole('button', { name: 'I have kept it' }).click();
    assert.equal((await api('GET', '/v2/team/queue-status', undefined, key)).status, 200);
    const row = page.getByRole('row', { name: new RegExp(name) });
    await row.getByRole('button', { name: 'Rename' }).click();
    await page.getByRole('dialog').getByLabel('Name').fill('renamed');
    await page.getByRole('button', { name: 'Save' }).click();
    const renamed = page.getByRole('row', { name: /renamed/ });
    await renamed.getByRole('button', { name: 'Revoke' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await page.getByText('The key is revoked.').waitFor();
    await renamed.waitFor({ state: 'detached' });
    await page.getByLabel(/Revoked too/).check();
    await renamed.getByText('revoked', { exact: true }).waitFor();
    await page.setViewportSize({ width: 360, height: 740 });
    await renamed.getByText('· revoked').waitFor();
    await until('its end', async () => (await api('GET', '/v2/team/queue-status', undefined, key)).status === 401);
  });

  await test('a team sets its webhook secret, which is never shown', async () => {
    const page = await signedIn('/console/keys');
    await page.getByLabel('New webhook secret').fill('a very secret secret');
    await page.getByRole('button', { name: 'Set', exact: true }).click();
    await page.getByText('The webhook secret is set.').waitFor();
    assert.equal(await page.getByLabel('New webhook secret').inputValue(), '');
    await page.getByRole('button', { name: "Use the installation's" }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
    await page.getByText("The team's own webhook secret is removed.").waitFor();
  });

  await test('an operator makes a team, limits it, looks at it, and makes its key', async () => {
    const page = await signedIn('/console/teams', { key: OPERATOR });
    const name = `team ${Date.now()}`;
    await page.getByRole('button', { name: 'New team' }).click();
    await page.getByRole('dialog').getByLabel('Name').fill(name);
    await page.getByRole('button', { name: 'Create team' }).click();
    const row = page.getByRole('row', { name: new RegExp(name) });
    await row.getByRole('button', { name: 'Limits' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Pages at once').fill('7');
    await dialog.getByLabel('Requests a minute').fill('scrape=5');
    await dialog.getByLabel('May ask for zero data retention').check();
    await dialog.getByRole('button', { name: 'Save' }).click();
    await row.getByText('7', { exact: true }).waitFor();
    await row.getByText('zero retention').waitFor();
    await row.getByRole('button', { name: 'Limits' }).click();
    assert.equal(await dialog.getByLabel('Requests a minute').inputValue(), 'scrape=5');
    await dialog.getByLabel('Pages at once').fill('');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await row.getByText('7', { exact: true }).waitFor({ state: 'detached' });
    await row.getByRole('button', { name: 'Look at' }).click();
    await page.getByText('There are no jobs yet').waitFor();
    await page.getByRole('link', { name: 'Keys', exact: true }).click();
    await settled(page);
    await page.getByRole('button', { name: 'New key' }).click();
    await page.getByRole('dialog').getByLabel('Name').fill('first');
    await page.getByRole('button', { name: 'Create key' }).click();
    const key = await page.locator('[data-key]').textContent();
    assert.equal((await api('GET', '/v2/team/queue-status', undefined, key)).status, 200);
  });

  await test('an operator sees all teams or one, and a team sees its own', async () => {
    await scrape('/a', {}, OTHER_KEY);
    await scrape('/b');
    const page = await signedIn('/console/jobs', { key: OPERATOR });
    const table = page.getByRole('table', { name: 'Jobs' });
    await table.getByText('· others').first().waitFor();
    await table.getByText('· tests').first().waitFor();
    await page.getByLabel('Team', { exact: true }).selectOption({ label: 'others' });
    await settled(page);
    await page.getByRole('link', { name: web.url('/a') }).first().waitFor();
    assert.equal(await page.getByRole('link', { name: web.url('/b') }).count(), 0);
    const id = (await table.getByRole('link').first().getAttribute('href')).split('/').pop();
    const mine = await signedIn(`/console/jobs/${id}`);
    await mine.getByRole('alert').waitFor();
    assert.equal(await mine.getByText(web.url('/a')).count(), 0);
    await visit(mine, '/console/teams');
    await mine.getByRole('heading', { name: 'Not found' }).waitFor();
  });

  await test('a read-only operator sees everything and is offered no change', async () => {
    const id = await batch(['/broken']);
    await ended(`/v2/batch/scrape/${id}`);
    const page = await signedIn('/console/jobs', { key: READER });
    for (const [path, words] of [['/console/jobs', 'Jobs'], [`/console/jobs/${id}`, '/broken'], ['/console/failures', 'Failures'], ['/console/keys', 'Keys'], ['/console/teams', 'Teams'], ['/console/workers', 'Workers'], ['/console/sessions', 'Sessions'], ['/console/monitors', 'Monitors']]) {
      await visit(page, path);
      await page.getByRole('heading', { level: 1, name: new RegExp(words) }).waitFor();
      for (const thing of ['New job', 'New session', 'New monitor', 'Open one']) assert.equal(await page.getByRole('link', { name: thing, exact: true }).count(), 0, `${path}: ${thing}`);
      for (const verb of ['Cancel', 'Replay', 'Replay failed', 'Delete', 'Revoke', 'Rename', 'New key', 'New team', 'Limits', 'Drain', 'End']) assert.equal(await page.getByRole('button', { name: verb, exact: true }).count(), 0, `${path}: ${verb}`);
    }
    await visit(page, '/console/playground/scrape');
    assert.ok(await page.getByRole('button', { name: 'Run', exact: true }).isDisabled());
  });

  await test('sessions are watched, taken over, run code in and ended', async () => {
    const page = await signedIn('/console/playground/browser');
    await page.getByLabel('TTL', { exact: true }).fill('120');
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.getByRole('link', { name: 'Watch it' }).click();
    await page.locator('iframe.session-frame').waitFor();
    await page.getByLabel('Code').fill(`await page.goto(${JSON.stringify(web.url('/a'))}); await page.title()`);
    await page.locator('.card', { hasText: 'Run in this browser' }).getByRole('button', { name: 'Run' }).click();
    await page.getByRole('list', { name: 'What was run' }).getByText('Article 1').first().waitFor();
    await page.getByRole('button', { name: 'Python', exact: true }).click();
    await page.getByLabel('Code').fill('print(await page.title())');
    await page.locator('.card', { hasText: 'Run in this browser' }).getByRole('button', { name: 'Run' }).click();
    await page.getByRole('list', { name: 'What was run' }).locator('li').nth(1).waitFor();
    await page.getByRole('button', { name: 'Take over' }).click();
    await page.getByText('Your pointer and keys go to this browser').waitFor();
    await page.frameLocator('iframe.session-frame').locator('canvas, img').first().waitFor();
    await visit(page, '/console/sessions');
    const tile = page.getByRole('article').first();
    await tile.locator('iframe').waitFor();
    await tile.getByRole('button', { name: 'End' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'End session' }).click();
    await page.getByText('The session is ended.').waitFor();
    await page.getByRole('button', { name: 'Ended', exact: true }).click();
    await page.getByRole('table', { name: 'Ended sessions' }).locator('tbody tr').first().waitFor();
  }, 120_000);

  await test('the theme is chosen, kept, and follows the system otherwise', async () => {
    const page = await signedIn('/console', { theme: 'dark' });
    const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const dark = await ground();
    await page.getByRole('button', { name: /^Theme: system/ }).click();
    const light = await ground();
    assert.notEqual(dark, light);
    await page.reload();
    await page.getByRole('button', { name: /^Theme: light/ }).waitFor();
    assert.equal(await ground(), light);
    await page.getByRole('button', { name: /^Theme: light/ }).click();
    assert.equal(await ground(), dark);
  });

  await test('everything is reached by keys, and a dialog holds the focus and gives it back', async () => {
    const page = await signedIn('/console');
    await page.reload();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement.textContent), 'To the content');
    await page.keyboard.press('Enter');
    assert.equal(await page.evaluate(() => document.activeElement.id), 'main');
    await visit(page, '/console/keys');
    const button = page.getByRole('button', { name: 'New key' });
    await button.focus();
    await page.keyboard.press('Enter');
    for (let i = 0; i < 8; i += 1) {
      await page.keyboard.press('Tab');
      assert.ok(await page.evaluate(() => !document.activeElement || document.activeElement === document.body || document.activeElement.closest('dialog') !== null), 'the focus stays in the dialog');
    }
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    assert.equal(await page.evaluate(() => document.activeElement.textContent), 'New key');
    const ring = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
    assert.equal(ring, 'solid');
    await visit(page, '/console/jobs');
    // Every control that can be seen is a stop of the Tab key.
    const stray = await page.evaluate(() => [...document.querySelectorAll('[onclick], .button, .tab, .segment, .chip')].filter((one) => !one.closest('button, a, label, summary') || (one.tabIndex < 0 && one.getAttribute('role') !== 'tab')).map((one) => one.outerHTML.slice(0, 120)));
    assert.deepEqual(stray, []);
    await page.setViewportSize({ width: 360, height: 740 });
    await page.getByRole('button', { name: 'Pages', exact: true }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: 'Usage' }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Usage' }).waitFor();
  });

  await test('a tab that is not seen asks for nothing', async () => {
    const page = await signedIn('/console/jobs');
    await settled(page);
    const asked = [];
    page.on('request', (request) => asked.push(request.url()));
    await page.evaluate(() => {
      Object.defineProperty(document, 'hidden', { configurable: true, get: () => true });
      document.dispatchEvent(new Event('visibilitychange'));
    });
    await page.getByText('Idle', { exact: true }).waitFor();
    asked.length = 0;
    await page.waitForTimeout(5500);
    assert.deepEqual(asked, []);
    await page.evaluate(() => {
      delete document.hidden;
      document.dispatchEvent(new Event('visibilitychange'));
    });
    await page.getByText('Live', { exact: true }).waitFor();
    assert.ok(asked.some((url) => url.includes('/stream')) && asked.some((url) => url.includes('/jobs')), asked.join());
  });

  await test('the first paint comes within 300 ms, and nothing comes from elsewhere', async () => {
    const page = await signedIn('/console');
    const elsewhere = [];
    page.on('request', (request) => {
      if (!request.url().startsWith(BASE) && !request.url().startsWith('data:')) elsewhere.push(request.url());
    });
    let best = Infinity;
    for (let round = 0; round < 5; round += 1) {
      await page.reload();
      await page.getByRole('heading', { name: 'Overview' }).waitFor();
      best = Math.min(best, await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0].startTime));
    }
    console.log(`     first contentful paint: ${Math.round(best)} ms`);
    assert.ok(best <= 300, `${best} ms`);
    assert.deepEqual(elsewhere, []);
  });

  await test('workers are shown, and one is drained', async () => {
    const page = await signedIn('/console/workers', { key: OPERATOR });
    await page.getByText('live', { exact: true }).first().waitFor();
    await page.getByRole('meter', { name: 'Pages in work' }).first().waitFor();
    if (!process.env.DRAIN) return;
    await page.getByRole('button', { name: 'Drain' }).first().click();
    await page.getByRole('dialog').getByRole('button', { name: 'Drain' }).click();
    await page.getByText('finishes what it has and stops').waitFor();
    await page.getByText(/draining|dead/).first().waitFor();
  });
  web.close();
});
