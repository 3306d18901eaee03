// A first-time operator's walk, in one piece: the link that the start prints signs in; a page is scraped in the
// playground; its job is seen; a site breaks, the failure shows, is replayed and mended; a colleague gets a key; a
// session is watched.
//
//   BASE=http://… LINK=http://…/console/sign-in#… LINK_OF_TEAM=… KEY=… OPERATOR=… CHROMIUM=… node walk.cjs      closes with "N passed, N failed"
'use strict';

const assert = require('node:assert/strict');
const { BASE, KEY, OPERATOR, open, signIn, signedIn, visit, settled, test, run, until, api, ended, site } = require('./lib.cjs');

const shopPage = '<!doctype html><title>Kettles</title><main><h1>Kettles</h1><p>The kettle that boils in a minute is in stock again, at the price it had before.</p></main>';

run(async () => {
  let isBroken = false;
  const shop = await site({
    '/kettles': (request, response) => {
      if (isBroken) return request.socket.destroy();
      response.setHeader('Content-Type', 'text/html');
      return response.end(shopPage);
    },
  });

  await test('a first-time operator finds the way', async () => {
    const page = await open(process.env.LINK);
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    assert.doesNotMatch(page.url(), /#/, 'the link is out of the address bar');
    await page.getByText('Healthy').waitFor();
    await page.getByText('Live', { exact: true }).waitFor();

    // The welcome page, in the playground.
    await page.getByRole('link', { name: 'Playground', exact: true }).click();
    await settled(page);
    await page.getByLabel('URL', { exact: true }).fill(`${BASE}/welcome`);
    if (await page.getByLabel('As team').count()) await page.getByLabel('As team').selectOption({ label: 'tests' });
    await page.getByRole('button', { name: 'Run' }).click();
    await page.getByText('HTTP 200').waitFor();
    await page.getByRole('heading', { name: 'Welcome to Weir' }).waitFor();
    await page.getByRole('tab', { name: 'curl' }).click();
    await page.getByText(`curl -X POST ${BASE}/v2/scrape`).waitFor();
    await page.getByRole('tab', { name: 'Answer' }).click();

    // Its job.
    await page.getByRole('link', { name: 'Jobs', exact: true }).click();
    await settled(page);
    await page.getByRole('link', { name: `${BASE}/welcome` }).click();
    await page.getByRole('heading', { name: `${BASE}/welcome` }).waitFor();
    await page.getByRole('table', { name: 'Pages of the job' }).getByRole('link').first().click();
    await page.getByRole('heading', { level: 1, name: 'Welcome to Weir' }).waitFor();
    for (const step of [/^Fetched in /, /^Extracted in /, /^Committed/]) await page.getByRole('listitem').getByText(step).first().waitFor();

    // The site breaks.
    isBroken = true;
    const started = await api('POST', '/v2/batch/scrape', { urls: [shop.url('/kettles')], maxAge: 0 });
    await ended(`/v2/batch/scrape/${started.body.id}`);
    await page.getByRole('link', { name: 'Failures', exact: true }).click();
    await settled(page);
    const group = page.getByRole('article').filter({ hasText: 'SCRAPE_SITE_ERROR' });
    await group.getByText('The site refused the connection').waitFor();
    isBroken = false;
    await group.getByRole('button', { name: 'Replay' }).click();
    await page.getByRole('dialog').getByRole('button', { name: /^Replay/ }).click();
    await page.getByText('1 page put back.').waitFor();
    const mended = await until('the replayed page', async () => {
      const { body } = await api('GET', `/v2/batch/scrape/${started.body.id}`);
      return body.status === 'completed' && body.data.length === 1 ? body : null;
    });
    assert.match(mended.data[0].markdown, /in stock again/);
    await visit(page, `/console/jobs/${started.body.id}`);
    await page.getByRole('link', { name: shop.url('/kettles') }).click();
    await page.getByText('in stock again').waitFor();
    await page.getByText(/Try 1 failed/).first().waitFor();

    // A key for a colleague, who signs in with it.
    await page.getByRole('link', { name: 'Keys', exact: true }).click();
    await settled(page);
    await page.getByRole('button', { name: 'New key' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill("Ada's notebook");
    if (await dialog.getByLabel('As team').count()) await dialog.getByLabel('As team').selectOption({ label: 'tests' });
    await dialog.getByRole('button', { name: 'Create key' }).click();
    const key = await dialog.locator('[data-key]').textContent();
    await dialog.getByRole('button', { name: 'I have kept it' }).click();
    await page.getByRole('row', { name: /Ada's notebook/ }).waitFor();
    assert.ok(!(await page.content()).includes(key), 'the key is shown once');
    const colleague = await open('/console');
    await signIn(colleague, key);
    await colleague.getByRole('heading', { name: 'Overview' }).waitFor();
    assert.equal(await colleague.getByRole('link', { name: 'Workers' }).count(), 0, 'a team does not see workers');
    assert.equal(await colleague.getByLabel('Team').count(), 0);

    // A session to watch.
    const session = await api('POST', '/v2/browser', { ttl: 120 });
    assert.equal(session.status, 200, JSON.stringify(session.body));
    await api('POST', `/v2/browser/${session.body.id}/execute`, { code: `await page.goto(${JSON.stringify(shop.url('/kettles'))})` });
    await page.getByRole('link', { name: 'Sessions', exact: true }).click();
    await settled(page);
    const tile = page.getByRole('article', { name: `Session ${session.body.id.slice(-8)}` });
    await tile.getByRole('link', { name: 'Open' }).click();
    const view = page.frameLocator('iframe.session-frame');
    await view.locator('canvas, img').first().waitFor();
    await page.getByRole('button', { name: 'End', exact: true }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'End session' }).click();
    await page.getByText('The session is ended.').waitFor();

    // The link worked once.
    const again = await open(process.env.LINK);
    await again.getByRole('alert').getByText('has been used').waitFor();
    await again.getByRole('button', { name: 'Sign in' }).waitFor();
    assert.ok(KEY);
  }, 180_000);

  await test('the address alone leads to the console', async () => {
    const page = await open('/');
    await page.getByRole('heading', { name: 'Welcome to Weir' }).waitFor();
    for (const name of ['The console', "The API's documentation"]) {
      const path = await page.getByRole('link', { name }).getAttribute('href');
      assert.equal((await page.request.get(new URL(path, page.url()).href)).status(), 200, name);
    }
    await page.getByRole('link', { name: 'The console' }).click();
    await page.getByLabel('Key', { exact: true }).waitFor();
  });

  await test('a link takes the place of whoever is signed in, and nobody who is stays at the sign-in', async () => {
    const link = process.env.LINK_OF_TEAM;
    const before = await signedIn('/console', { key: OPERATOR });
    const page = await before.context().newPage();
    await page.goto(link);
    await page.locator('.who').getByText('Team key', { exact: true }).waitFor();
    assert.equal(page.url(), `${BASE}/console`);
    // The tab of before hears of it, and shows what is theirs.
    await before.getByText('You are now signed in as tests (Team key).').waitFor();
    await before.locator('.who').getByText('Team key', { exact: true }).waitFor();
    assert.equal(await before.getByRole('link', { name: 'Workers', exact: true }).count(), 0);
    // A link that was used takes nothing away.
    await page.goto(link);
    await page.getByText('You are still signed in as tests (Team key).').waitFor();
    assert.equal(page.url(), `${BASE}/console`);
    await page.goto('/console/sign-in');
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    assert.equal(page.url(), `${BASE}/console`);
    // Pasted where the form stands, it loads nothing anew.
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('button', { name: 'Sign in' }).waitFor();
    await page.evaluate((to) => { location.href = to; }, link);
    await page.getByRole('alert').getByText('has been used').waitFor();
    assert.equal(page.url(), `${BASE}/console/sign-in`);
  });
  shop.close();
});
