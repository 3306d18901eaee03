// What the console sends, holds back, asks before and keeps: calls made of jobs, keys that are shown once, lists that grow,
// charts to their edges.
//
//   BASE=http://… KEY=… OTHER_KEY=… OPERATOR=… CHROMIUM=… node details.cjs      closes with "N passed, N failed"
'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const { BASE, KEY, OPERATOR, open, signedIn, visit, settled, test, run, api, until, ended, site } = require('./lib.cjs');

const OTHER_KEY = process.env.OTHER_KEY;
const article = '<!doctype html><title>Kettles</title><main><h1>Kettles</h1><p>The kettle that boils in a minute is in stock again, at the price it had before.</p></main>';
const dialogOf = (page) => page.getByRole('dialog');
const bodyOf = (page) => page.evaluate(() => JSON.parse(decodeURIComponent(location.hash.slice(1))));

/// Answers of the console's API, changed before the page has them.
async function changed(page, address, change) {
  await page.route(address, async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: change(await response.json()) });
  });
}

run(async () => {
  const seen = [];
  const web = await site({
    '/a': (request, response) => {
      seen.push(request.headers);
      response.setHeader('Content-Type', 'text/html');
      response.end(article);
    },
    '/hook': (_, response) => response.end('thanks'),
  });
  const batch = async (urls, more = {}) => {
    const { status, body } = await api('POST', '/v2/batch/scrape', { urls, maxAge: 0, ...more });
    assert.equal(status, 200, JSON.stringify(body));
    await ended(`/v2/batch/scrape/${body.id}`);
    return body.id;
  };
  const pageOf = async (page, job) => {
    await visit(page, `/console/jobs/${job}`);
    await page.getByRole('table', { name: 'Pages of the job' }).getByRole('link').first().click();
    await settled(page);
  };

  await test('values of headers are sent to nobody: calls made of a job lack them, and say so', async () => {
    const job = await batch([web.url('/a')], { headers: { 'X-Token': 'secret123' }, webhook: { url: web.url('/hook'), headers: { 'X-Hook': 'secret456' } } });
    assert.equal(seen.at(-1)['x-token'], 'secret123');
    const before = seen.length;
    const page = await signedIn(`/console/jobs/${job}?tab=request`);
    const note = page.locator('.banner').filter({ hasText: 'fill them in' });
    await note.getByText('headers.X-Token', { exact: true }).waitFor();
    await note.getByText('webhook.headers.X-Hook', { exact: true }).waitFor();
    assert.equal(await page.getByText('•••').count(), 0);
    await page.getByRole('link', { name: 'Open in the playground' }).click();
    await page.getByLabel('URLs').waitFor();
    await note.getByText('headers.X-Token', { exact: true }).waitFor();
    assert.equal(await note.getByText('webhook').count(), 0);
    const body = await bodyOf(page);
    assert.deepEqual([body.headers, body.webhook, body.urls], [undefined, undefined, [web.url('/a')]]);
    await page.getByRole('button', { name: 'Clear' }).click();
    await note.waitFor({ state: 'detached' });

    await pageOf(page, job);
    await page.getByRole('tab', { name: 'Left out' }).click();
    await page.getByText('It cannot be scraped once more here').waitFor();
    assert.equal(await page.getByRole('button', { name: 'Scrape it and compare' }).count(), 0);
    await page.getByRole('link', { name: 'Open in the playground' }).click();
    await note.waitFor();
    const alone = await bodyOf(page);
    assert.deepEqual([alone.headers, alone.webhook, alone.url], [undefined, undefined, web.url('/a')]);
    assert.equal(seen.length, before, 'nothing was scraped meanwhile');
  });

  await test('a new key stays until somebody says that it is kept, and is copied without a clipboard', async () => {
    const page = await signedIn('/console/keys');
    await page.evaluate(() => {
      window.clip = navigator.clipboard;
      Object.defineProperty(navigator, 'clipboard', { configurable: true, value: undefined });
    });
    const names = `for a test ${Date.now()}`;
    await page.getByRole('button', { name: 'New key' }).click();
    // A selection that ends beside the dialog is none of its ends; a press beside it is.
    const field = await dialogOf(page).getByLabel('Name').boundingBox();
    await dialogOf(page).getByLabel('Name').fill(names);
    const drag = async (box) => {
      await page.mouse.move(box.x + box.width - 4, box.y + box.height / 2);
      await page.mouse.down();
      await page.mouse.move(8, box.y + box.height / 2, { steps: 3 });
      await page.mouse.up();
    };
    await drag(field);
    assert.equal(await dialogOf(page).getByLabel('Name').inputValue(), names);
    await page.mouse.click(8, 400);
    await dialogOf(page).waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'New key' }).click();
    await dialogOf(page).getByLabel('Name').fill(names);
    await page.keyboard.press('Enter');
    const shown = page.locator('[data-key]');
    const key = await shown.textContent();
    await drag(await shown.boundingBox());
    await page.mouse.click(8, 400);
    await page.keyboard.press('Escape');
    await page.keyboard.press('Escape');
    await page.keyboard.press('Escape');
    assert.equal(await shown.textContent(), key);
    assert.equal(await dialogOf(page).getByRole('button', { name: 'Close' }).count(), 0);
    // It stands there for a moment: who looks for it after the click may be too late.
    const copied = dialogOf(page).getByText('Copied').waitFor();
    await Promise.all([copied, dialogOf(page).getByRole('button', { name: 'Copy' }).click()]);
    assert.equal(await page.evaluate(() => window.clip.readText()), key);
    await dialogOf(page).getByText('Copied').waitFor({ state: 'detached' });
    await page.evaluate(() => { document.execCommand = () => false; });
    await dialogOf(page).getByRole('button', { name: 'Copy' }).click();
    await dialogOf(page).getByText('Select it and copy').waitFor();
    await page.getByRole('button', { name: 'I have kept it' }).click();
    await dialogOf(page).waitFor({ state: 'detached' });
    await page.getByRole('row', { name: new RegExp(names) }).waitFor();
  });

  /// Signs in in another tab of the browser.
  const elsewhere = async (page, key) => {
    const { status } = await page.evaluate((key) => fetch('/console/api/sign-in', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ key }) }).then(({ status }) => ({ status })), key);
    assert.equal(status, 200);
  };

  await test('who has signed in in another tab is told, and nothing of theirs is shown as somebody else\'s', async () => {
    await batch([web.url('/a')]);
    const page = await signedIn('/console/jobs');
    await page.getByRole('table', { name: 'Jobs' }).waitFor();
    await page.evaluate(() => {
      window.shown = new Set();
      const look = () => window.shown.add(`${document.querySelector('.who-name')?.firstChild?.textContent.trim()}: ${document.querySelector('tbody tr') ? 'jobs' : document.querySelector('.empty') ? 'none' : 'nothing yet'}`);
      new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true });
    });
    await elsewhere(page, OTHER_KEY);
    await page.getByText('You are now signed in as others (Team key).').waitFor();
    await page.getByText('There are no jobs yet').waitFor();
    const shown = await page.evaluate(() => [...window.shown]);
    assert.ok(shown.includes('others: none') && !shown.includes('tests: none') && !shown.includes('others: jobs'), shown.join());

    // What is done in a tab of before is not done as somebody else. Nothing is read meanwhile that would tell it before.
    const pause = () => page.getByRole('button', { name: 'Pause live figures' }).click();
    const names = `never made ${Date.now()}`;
    await visit(page, '/console/keys');
    await pause();
    await page.getByRole('button', { name: 'New key' }).click();
    await dialogOf(page).getByLabel('Name').fill(names);
    await elsewhere(page, OPERATOR);
    await dialogOf(page).getByRole('button', { name: 'Create key' }).click();
    await page.getByText('You are now signed in as Operator.').waitFor();
    await dialogOf(page).waitFor({ state: 'detached' });
    await settled(page);
    assert.equal(await page.getByRole('row', { name: new RegExp(names) }).count(), 0);
    // The same one who has signed in anew goes on with what was begun.
    await page.getByRole('button', { name: 'New key' }).click();
    await dialogOf(page).getByLabel('Name').fill(`begun ${names}`);
    await dialogOf(page).getByLabel('As team').selectOption({ label: 'others' });
    await elsewhere(page, OPERATOR);
    await dialogOf(page).getByRole('button', { name: 'Create key' }).click();
    await page.locator('[data-key]').waitFor();
  });

  await test('rows of one site are told apart, and all tabs are in view, however narrow', async () => {
    const formats = ['markdown', 'html', 'rawHtml', 'links', 'images', { type: 'changeTracking' }];
    const { status, body } = await api('POST', '/v2/scrape', { url: web.url('/a?of=the-articles-of-the-year-2026'), formats, maxAge: 0 });
    assert.equal(status, 200, JSON.stringify(body));
    for (const width of [1280, 360]) {
      const page = await signedIn('/console/jobs', { width });
      const row = page.getByRole('link', { name: web.url('/a?of=the-articles-of-the-year-2026') }).first();
      assert.equal((await row.textContent()).trim(), web.url('/a?of=the-articles-of-the-year-2026').slice('http://'.length));
      const end = await row.evaluate((link) => {
        const text = document.createTreeWalker(link.querySelector('.cut-tail'), NodeFilter.SHOW_TEXT).nextNode();
        const range = new Range();
        range.setStart(text, text.length - 6);
        range.setEnd(text, text.length);
        const [mine, around] = [range.getBoundingClientRect(), link.closest('td').getBoundingClientRect()];
        return { seen: mine.left >= around.left && mine.right <= around.right + 1, words: String(range) };
      });
      assert.deepEqual(end, { seen: true, words: 'r-2026' }, `${width} px`);
      await visit(page, `/console/jobs/${body.data.metadata.scrapeId}`);
      await page.waitForURL(/\/pages\//);
      await settled(page);
      const list = page.getByRole('tablist', { name: 'Formats' });
      assert.ok((await list.getByRole('tab').count()) >= 10);
      const hidden = () => list.evaluate((line) => {
        const around = line.getBoundingClientRect();
        const isOut = (box) => box.left < around.left - 1 || box.right > around.right + 1;
        return [...line.children].filter((tab) => isOut(tab.getBoundingClientRect())).map((tab) => [tab.textContent.trim(), tab.getAttribute('aria-selected')]);
      });
      if (width > 700) assert.deepEqual(await hidden(), []);
      else {
        assert.match(await list.evaluate((line) => getComputedStyle(line).backgroundImage), /gradient/, 'a sign that there are more');
        await list.getByRole('tab', { name: 'Metadata' }).click();
        await page.waitForURL(/tab=metadata/);
        await page.reload();
        await list.getByRole('tab', { name: 'Metadata', selected: true }).waitFor();
        const out = await hidden();
        assert.ok(out.length > 0 && !out.some(([, selected]) => selected === 'true'), JSON.stringify(out));
      }
    }
  });

  await test('whose key it is stands in its row on a phone, and in the question before it is revoked', async () => {
    const page = await signedIn('/console/keys', { key: OPERATOR, width: 360 });
    const row = page.getByRole('row').filter({ has: page.locator('.row-sub', { hasText: /· others/ }) }).first();
    await row.locator('.row-sub').getByText('others').waitFor();
    await row.getByRole('button', { name: 'Revoke' }).click();
    await page.getByRole('heading', { name: /^Revoke .* of others\?$/ }).waitFor();
    await dialogOf(page).getByRole('button', { name: 'Back' }).click();
  });

  await test('a badly written rate is refused by its line, and takes no limit away', async () => {
    const page = await signedIn('/console/teams', { key: OPERATOR });
    await page.getByRole('row', { name: /others/ }).getByRole('button', { name: 'Limits' }).click();
    const rates = dialogOf(page).getByLabel('Requests a minute');
    const save = dialogOf(page).getByRole('button', { name: 'Save' });
    for (const wrong of ['scrape 60', 'scrape: 70', 'scrape=10=20', 'scrape=abc', 'scrape=0']) {
      await rates.fill(`crawl=5\n${wrong}`);
      await save.click();
      await dialogOf(page).getByRole('alert').filter({ hasText: `Line 2, "${wrong}"` }).waitFor();
    }
    await rates.fill('crawl=5\n\n scrape = 60 ');
    await save.click();
    await dialogOf(page).waitFor({ state: 'detached' });
    await page.getByRole('row', { name: /others/ }).getByRole('button', { name: 'Limits' }).click();
    assert.deepEqual((await rates.inputValue()).split('\n').sort(), ['crawl=5', 'scrape=60']);
    await rates.fill('');
    await save.click();
    await dialogOf(page).waitFor({ state: 'detached' });
  });

  await test('a list that was lengthened keeps its rows, and what is deleted goes from all of it', async () => {
    const page = await signedIn('/console/keys');
    await page.clock.install();
    const made = (n) => ({ id: `0197f2a0-0000-7000-8000-${String(n).padStart(12, '0')}`, team: { id: 't', name: 'tests' }, kind: 'scrape', status: 'completed', target: `http://site.test/${n}`, total: 1, queued: 0, running: 0, completed: 1, failed: 0, creditsUsed: 1, createdAt: '2026-01-01T00:00:00Z', finishedAt: '2026-01-01T00:00:01Z', expiresAt: '2027-01-01T00:00:00Z', rate: null, leftMs: null });
    let jobs = Array.from({ length: 120 }, (_, at) => made(120 - at));
    let asked = 0;
    await page.route('**/console/api/jobs?*', (route) => {
      const after = new URL(route.request().url()).searchParams.get('cursor');
      const from = after ? jobs.findIndex((job) => job.id < after) : 0;
      const rows = from < 0 ? [] : jobs.slice(from, from + 50);
      asked += 1;
      return route.fulfill({ json: { jobs: rows, next: from >= 0 && from + 50 < jobs.length ? rows.at(-1).id : null } });
    });
    await page.route('**/console/api/jobs/delete', (route) => {
      const { ids } = route.request().postDataJSON();
      jobs = jobs.filter((job) => !ids.includes(job.id));
      return route.fulfill({ json: { done: ids.length, skipped: 0, pages: 0, next: null } });
    });
    await visit(page, '/console/jobs');
    const rows = page.getByRole('table', { name: 'Jobs' }).locator('tbody a.row-link');
    const shown = async () => (await rows.allTextContents()).map((text) => Number(/(\d+)\s*$/.exec(text.trim())[1]));
    const all = (from, to) => Array.from({ length: from - to + 1 }, (_, at) => from - at);
    await page.getByRole('button', { name: 'Show more' }).click();
    await until('two pieces', async () => (await rows.count()) === 100);
    assert.deepEqual(await shown(), all(120, 21));
    // Newer ones push three rows out of the first piece.
    jobs = [made(123), made(122), made(121), ...jobs];
    await page.clock.runFor(4_000);
    await page.getByRole('link', { name: 'site.test/123' }).waitFor();
    assert.deepEqual(await shown(), all(123, 21));
    // One that ended elsewhere in the second piece is seen to have ended before long.
    jobs.find((job) => job.id === made(40).id).status = 'failed';
    const row = page.getByRole('row').filter({ hasText: 'site.test/40' });
    for (let tick = 0; tick < 5; tick += 1) {
      const before = asked;
      await page.clock.runFor(4_000);
      await until('the reading', async () => asked > before);
      await settled(page);
    }
    await row.getByText('failed', { exact: true }).waitFor();
    // Deleted ones go, wherever they stand.
    await page.getByRole('checkbox', { name: `Select ${made(110).id}` }).check();
    await page.getByRole('checkbox', { name: `Select ${made(40).id}` }).check();
    await page.getByRole('button', { name: 'Delete', exact: true }).click();
    await dialogOf(page).getByRole('button', { name: 'Delete 2 jobs' }).click();
    await row.waitFor({ state: 'detached' });
    await until('as many pieces as before', async () => (await rows.count()) === 100);
    assert.deepEqual(await shown(), jobs.slice(0, 100).map((job) => Number(job.target.split('/').pop())));
    await page.getByRole('button', { name: 'Show more' }).click();
    await until('all', async () => (await rows.count()) === jobs.length);
  });

  await test('a page is found by its address, and the list and the results of a job are kept as files', async () => {
    const others = Array.from({ length: 11 }, (_, n) => `http://127.0.0.2:2/closed/${n}`);
    const job = await batch([...others, web.url('/a')]);
    const page = await signedIn(`/console/jobs/${job}`);
    const rows = page.getByRole('table', { name: 'Pages of the job' }).locator('tbody tr');
    await until('all pages', async () => await rows.count() === 12);
    const kept = async (name) => {
      const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name, exact: true }).click()]);
      return { name: download.suggestedFilename(), text: fs.readFileSync(await download.path(), 'utf8') };
    };
    const results = await kept('Results');
    assert.equal(results.name, `results-${job.slice(-8)}.jsonl`);
    const documents = results.text.trimEnd().split('\n').map((line) => JSON.parse(line));
    assert.deepEqual(documents.map((document) => document.metadata.sourceURL), [web.url('/a')]);
    assert.match(documents[0].markdown, /in stock again/);
    await page.getByLabel('Part of the address').fill('CLOSED/1');
    await page.waitForURL(/url=CLOSED/);
    await until('those with this address', async () => await rows.count() === 2);
    const list = await kept('List');
    assert.equal(list.name, `pages-${job.slice(-8)}.csv`);
    const lines = list.text.trimEnd().split('\r\n');
    assert.equal(lines[0], 'number,url,state,code,error,tries,queuedAt,startedAt,finishedAt,id');
    assert.deepEqual(lines.slice(1).map((line) => line.split(',').slice(0, 3)), [1, 10].map((n) => [String(n + 1), others[n], 'failed']));
    // It is in the address, and goes with a look at something else.
    await page.reload();
    await until('the same after a reload', async () => await rows.count() === 2);
    await page.getByLabel('Part of the address').fill('nowhere');
    await page.getByText('No page has this in its address').waitFor();
    await page.getByRole('tab', { name: 'Request' }).click();
    await page.getByRole('tab', { name: 'Pages' }).click();
    await until('all pages again', async () => await rows.count() === 12);
    // An operator who looks at all teams gets the same.
    const operator = await signedIn(`/console/jobs/${job}`, { key: OPERATOR });
    const [download] = await Promise.all([operator.waitForEvent('download'), operator.getByRole('button', { name: 'Results', exact: true }).click()]);
    assert.equal(fs.readFileSync(await download.path(), 'utf8'), results.text);
  });

  await test('operators see what each team used, and go on to one of them', async () => {
    await batch([web.url('/a')]);
    const page = await signedIn('/console/usage', { key: OPERATOR });
    const table = page.getByRole('table', { name: 'Credits by team' });
    await table.getByRole('row').filter({ hasText: 'tests' }).waitFor();
    const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'CSV' }).click()]);
    assert.match(fs.readFileSync(await download.path(), 'utf8'), /^day,team,credits\r\n\d{4}-\d\d-\d\d,tests,\d+\r\n/);
    await page.getByRole('button', { name: '7 days' }).click();
    await page.waitForURL(/days=7/);
    await settled(page);
    await table.getByRole('link', { name: 'tests' }).click();
    await page.waitForURL(/team=/);
    await page.getByRole('table', { name: 'Credits', exact: true }).getByText('Batch').waitFor();
    assert.match(page.url(), /days=7/);
  });

  await test('the lines of the tiles are there with the first reading', async () => {
    const page = await signedIn('/console/keys', { key: OPERATOR, allow: [/ERR_FAILED/] });
    // No live figure comes.
    await page.route('**/console/api/stream*', (route) => route.abort());
    await changed(page, '**/console/api/overview*', (overview) => {
      for (const point of overview.points) Object.assign(point, { queued: 2, running: 1, sessions: 1, memoryBytes: 1000 });
      return overview;
    });
    await visit(page, '/console');
    await until('a line in each tile', async () => {
      const lines = await page.locator('.tile').evaluateAll((tiles) => tiles.map((tile) => tile.querySelector('.spark .line').getAttribute('d')));
      return lines.length === 7 && lines.every((line) => /^M\d/.test(line)) && lines.some((line) => line.split('L').length > 50);
    });
  });

  await test('the jobs of a failure are found, whatever their first address is', async () => {
    const job = await batch([web.url('/a'), 'http://127.0.0.2:2/closed']);
    const page = await signedIn('/console/failures');
    await page.getByRole('article').filter({ hasText: '127.0.0.2:2' }).getByRole('link', { name: 'Jobs' }).click();
    await page.getByRole('table', { name: 'Jobs' }).getByText(job.slice(-8)).waitFor();
  });

  await test('charts count pages of every engine, and their levels are round and whole', async () => {
    const page = await signedIn('/console/keys');
    await changed(page, '**/console/api/overview*', (overview) => {
      const point = overview.points.at(-1);
      point.pages = { http: { done: 1, failed: 0 }, cache: { done: 20, failed: 0 }, map: { done: 300, failed: 4000 }, upload: { done: 50_000, failed: 0 } };
      Object.assign(point, { p50Ms: 100_000, p95Ms: 370_000 });
      return overview;
    });
    await visit(page, '/console');
    const pages = page.getByRole('region', { name: 'Pages', exact: true });
    await pages.locator('.legend-item').filter({ hasText: 'Cache and others' }).getByText('50,320').waitFor();
    await pages.locator('.legend-item').filter({ hasText: 'Failed' }).getByText('4,000').waitFor();
    await pages.locator('.legend-item').filter({ hasText: 'HTTP' }).getByText('1', { exact: true }).waitFor();
    const levels = page.getByRole('region', { name: 'Time a page takes' }).locator('text.axis[text-anchor=end]');
    assert.deepEqual(await levels.allTextContents(), ['0 ms', '2 min', '4 min', '6 min', '8 min']);
    await page.unroute('**/console/api/overview*');
    await changed(page, '**/console/api/overview*', (overview) => {
      Object.assign(overview.points.at(-1), { p50Ms: 50_000, p95Ms: 100_000 });
      return overview;
    });
    await page.getByRole('button', { name: 'Day', exact: true }).click();
    await until('other levels', async () => (await levels.allTextContents()).join() === '0 ms,30 s,1 min,1 min 30 s,2 min');
    const cut = await page.evaluate(() => [...document.querySelectorAll('text.axis')].filter((text) => text.getBoundingClientRect().left < text.ownerSVGElement.getBoundingClientRect().left).map((text) => text.textContent));
    assert.deepEqual(cut, []);
  });

  await test('usage is of the days of UTC, from wherever it is looked at', async () => {
    const page = await signedIn('/console/usage?days=7', { timezoneId: 'Pacific/Auckland' });
    const days = await page.evaluate(() => [0, 1].map((back) => new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' }).format(new Date(Date.now() - back * 86_400_000))));
    const chart = page.getByRole('region', { name: 'Credits by day' });
    await chart.locator('text.axis', { hasText: days[0] }).waitFor();
    await page.getByRole('button', { name: 'Show Credits by day as a table' }).click();
    const rows = page.getByRole('table', { name: 'Credits by day' }).locator('tbody tr');
    for (const [at, day] of days.entries()) assert.match(await rows.nth(at).locator('td').first().textContent(), new RegExp(`^\\s*${day} \\d{4}\\s*$`));
    assert.equal(await rows.count(), 7);
  });

  await test('the playground runs what is on the screen, or nothing', async () => {
    const page = await signedIn(`/console/playground/scrape#${encodeURIComponent(JSON.stringify({ url: web.url('/a') }))}`);
    const runs = page.getByRole('button', { name: 'Run', exact: true });
    await page.getByRole('button', { name: 'JSON', exact: true }).click();
    for (const wrong of ['[1,2]', '{"url": "http://x.test"', '7', 'null']) {
      await page.getByLabel('Body').fill(wrong);
      await page.locator('.banner').filter({ hasText: 'cannot be sent' }).waitFor();
      assert.ok(await runs.isDisabled(), wrong);
    }
    await page.getByRole('tab', { name: 'curl' }).click();
    await page.locator('.empty').getByText('cannot be sent').waitFor();
    await page.getByRole('button', { name: 'Clear' }).click();
    assert.equal(await page.getByLabel('Body').inputValue(), '{}');
    assert.ok(await runs.isEnabled());
    await page.getByLabel('Body').fill(JSON.stringify({ url: web.url('/a'), maxAge: 0 }));
    await page.getByRole('button', { name: 'Form', exact: true }).click();
    await page.getByText('All options').click();
    await page.getByLabel('Headers').fill('X-One: 1\nX-Two 2');
    await page.getByText('is not written as "Name: value"').first().waitFor();
    assert.ok(await runs.isDisabled());
    await page.getByLabel('Headers').fill('X-One: 1\nX-Two: 2');
    const before = seen.length;
    await runs.click();
    await page.getByText('HTTP 200').waitFor();
    assert.deepEqual([seen.length, seen.at(-1)['x-one'], seen.at(-1)['x-two']], [before + 1, '1', '2']);
    // The page of the answer is found by its id.
    await page.getByRole('link', { name: 'Open the page' }).click();
    await page.getByRole('heading', { level: 1, name: 'Kettles' }).waitFor();
  });

  await test('a call of a long batch says that it is a part', async () => {
    const job = await batch([web.url('/a')]);
    const page = await signedIn('/console/keys');
    // Nor does an API before this one say what is hidden.
    await changed(page, `**/console/api/jobs/${job}`, (detail) => ({ ...detail, total: 300, request: { ...detail.request, isWhole: false, hidden: undefined } }));
    await visit(page, `/console/jobs/${job}?tab=request`);
    await page.locator('.banner').filter({ hasText: /The first 1 of\s+300 addresses/ }).waitFor();
    await page.getByRole('link', { name: 'Open in the playground' }).click();
    await page.locator('.banner').filter({ hasText: /the first 1 of\s+300 addresses/ }).waitFor();
    await pageOf(page, job);
    await page.getByRole('link', { name: 'Open in the playground' }).waitFor();
  });

  await test('a file that was sent is shown as one, and not as a scrape', async () => {
    const form = new FormData();
    form.append('file', new Blob([article], { type: 'text/html' }), 'kettles.html');
    form.append('options', JSON.stringify({ formats: ['markdown'] }));
    const answer = await fetch(`${BASE}/v2/parse`, { method: 'POST', headers: { Authorization: `Bearer ${KEY}` }, body: form });
    assert.equal(answer.status, 200, await answer.clone().text());
    const page = await signedIn('/console/jobs');
    await page.getByRole('link', { name: 'kettles.html' }).first().click();
    await page.getByRole('tab', { name: 'Request' }).click();
    await page.locator('.pane-tools').getByText('/v2/parse').waitFor();
    await page.locator('.banner').getByText('kettles.html').waitFor();
    assert.equal(await page.getByRole('button', { name: 'curl' }).count(), 0);
    assert.doesNotMatch(await page.locator('pre').first().textContent(), /blob|"url"/);
    await page.getByRole('tab', { name: /^Pages/ }).click();
    await page.getByRole('table', { name: 'Pages of the job' }).getByRole('link').first().click();
    await page.getByRole('heading', { level: 1, name: 'Kettles' }).waitFor();
    assert.equal(await page.getByRole('link', { name: 'Open in the playground' }).count(), 0);
    assert.equal(await page.getByRole('tab', { name: 'Left out' }).count(), 0);
  });

  await test('a secret is removed, and failed pages are replayed from one of them, once that was confirmed', async () => {
    const page = await signedIn('/console/keys', { key: OTHER_KEY });
    const sent = [];
    page.on('request', (request) => request.method() !== 'GET' && sent.push(request.url()));
    await page.getByRole('button', { name: "Use the installation's" }).click();
    await dialogOf(page).getByRole('button', { name: 'Back' }).click();
    assert.deepEqual(sent, []);
    await page.getByRole('button', { name: "Use the installation's" }).click();
    await page.locator('[data-confirm]').click();
    await page.getByText("The team's own webhook secret is removed.").waitFor();

    const job = await batch(['http://127.0.0.2:2/closed', 'http://127.0.0.2:2/closed/too']);
    const mine = await signedIn('/console/keys');
    await pageOf(mine, job);
    await mine.getByRole('button', { name: 'Replay failed' }).click();
    await mine.getByRole('heading', { name: 'Replay 2 failed pages?' }).waitFor();
    await mine.locator('[data-confirm]').click();
    await mine.getByText('2 pages put back.').waitFor();
    // One alone, once both have failed again.
    const failed = async () => (await api('GET', `/v2/batch/scrape/${job}/errors`)).body.errors.length === 2 && (await api('GET', `/v2/batch/scrape/${job}`)).body.status === 'completed';
    await until('both to fail again', failed);
    await pageOf(mine, job);
    await mine.getByRole('button', { name: 'Replay this page' }).click();
    await mine.getByText('1 page put back.').waitFor();
  });

  await test('whoever sees all teams keeps the team of a monitor on the way to it', async () => {
    const target = { type: 'scrape', urls: [web.url('/a')] };
    const { body: { data: monitor } } = await api('POST', '/v2/monitor', { name: 'Kettles', schedule: { cron: '0 6 * * *' }, targets: [target] });
    const page = await signedIn('/console/monitors', { key: OPERATOR });
    await page.getByLabel('As team').selectOption({ label: 'tests' });
    await page.getByRole('link', { name: 'Kettles' }).click();
    await page.getByText('It has not looked yet').waitFor();
    await page.reload();
    await page.getByText('It has not looked yet').waitFor();
    await page.getByRole('link', { name: 'Monitors', exact: true }).last().click();
    await page.getByRole('link', { name: 'Kettles' }).waitFor();
    assert.equal((await api('DELETE', `/v2/monitor/${monitor.id}`)).status, 200);
  });

  await test('a job is found by its id and by that of its page', async () => {
    const { body } = await api('POST', '/v2/scrape', { url: web.url('/a'), maxAge: 0 });
    const id = body.data.metadata.scrapeId;
    const page = await signedIn(`/console/jobs/${id}`);
    await page.waitForURL(new RegExp(`/jobs/[^/]+/pages/${id}$`));
    await page.getByRole('heading', { level: 1, name: 'Kettles' }).waitFor();
    const job = page.url().split('/').at(-3);
    assert.notEqual(job, id);
    await visit(page, '/console/jobs');
    const rows = page.getByRole('table', { name: 'Jobs' }).locator('tbody tr');
    for (const known of [id, job]) {
      await page.getByLabel('Id', { exact: true }).fill(known);
      await page.waitForURL(new RegExp(`id=${known}`));
      await settled(page);
      await until('one row', async () => (await rows.count()) === 1);
      await rows.getByText(job.slice(-8)).waitFor();
    }
    await page.getByLabel('Id', { exact: true }).fill(job.slice(-8));
    await page.getByText('This is no whole id').waitFor();
    const other = await signedIn(`/console/jobs/${id}`, { key: OTHER_KEY });
    await other.getByRole('alert').getByText('Job not found').waitFor();
  });

  await test('credits of an open session are told as reserved', async () => {
    const page = await signedIn('/console/keys');
    const id = '0197f2a0-0000-7000-8000-00000000abcd';
    const session = { id, kind: 'browser', team: { id: 't', name: 'tests' }, status: 'active', createdAt: new Date().toISOString(), lastActivity: new Date().toISOString(), expiresAt: new Date().toISOString(), endedAt: null, credits: 7, profile: null, worker: null, pageId: null, liveViewUrl: null, interactiveLiveViewUrl: null };
    await page.route('**/console/api/sessions?*', (route) => route.fulfill({ json: { sessions: [session], next: null } }));
    const fact = (name) => page.locator('.facts > div').filter({ has: page.locator('dt', { hasText: name }) });
    await visit(page, `/console/sessions/${id}`);
    await fact('Reserved').getByText('7 credits').waitFor();
    assert.equal(await fact('Credits').count(), 0);
    Object.assign(session, { status: 'destroyed', endedAt: new Date().toISOString(), credits: 2 });
    await page.reload();
    await fact('Credits').getByText('2 credits').waitFor();
  });

  await test('a long address is no long title', async () => {
    const address = web.url(`/a?${'long-'.repeat(300)}`);
    const job = await batch([address]);
    const page = await signedIn(`/console/jobs/${job}`, { width: 360 });
    const title = page.getByRole('heading', { level: 1 });
    await title.getByText('long-').waitFor();
    assert.equal(await title.getAttribute('title'), address);
    const { height } = await title.boundingBox();
    assert.ok(height < 100, `${height} px`);
  });

  await test('the documentation is searched, and its calls are copied without a clipboard', async () => {
    // An address that cannot be decoded hides nothing.
    const page = await open('/docs#%E0%A4%A');
    await page.evaluate(() => {
      window.clip = navigator.clipboard;
      Object.defineProperty(navigator, 'clipboard', { configurable: true, value: undefined });
    });
    const links = page.locator('#list a');
    await links.first().waitFor();
    await page.getByLabel('Find an operation').fill('nothing of this kind');
    await page.getByText('No operation has these words.').waitFor();
    await page.getByLabel('Find an operation').fill('post /v2/batch/scrape');
    await page.getByText('No operation has these words.').waitFor({ state: 'hidden' });
    await links.filter({ visible: true }).first().click();
    const one = page.locator('.operation[open]');
    await one.getByRole('button', { name: 'Copy', exact: true }).click();
    await one.getByRole('button', { name: 'Copied' }).waitFor();
    const call = await page.evaluate(() => window.clip.readText());
    assert.match(call, /^curl -s -X POST .*\/v2\/batch\/scrape/);
    assert.equal(call, await one.locator('.curl pre').textContent());
    const narrow = await open('/docs', { width: 390 });
    await narrow.getByRole('button', { name: 'Operations' }).click();
    await narrow.locator('#side.open').waitFor();
    await narrow.keyboard.press('Escape');
    await narrow.locator('#side.open').waitFor({ state: 'detached' });
  });

  await test('a page that could not be loaded comes when the service is back', async () => {
    const page = await signedIn('/console/keys', { allow: [/ERR_/, /Failed to fetch/] });
    await page.route('**/console/**', (route) => route.abort());
    await page.getByRole('link', { name: 'Usage', exact: true }).click();
    await page.getByRole('alert').getByText('The service does not answer.').first().waitFor();
    await page.unroute('**/console/**');
    await page.getByRole('heading', { name: 'Usage' }).waitFor();
    await page.getByRole('meter', { name: 'Pages at once' }).waitFor();
  });
  web.close();
});
