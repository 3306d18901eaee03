// What goes on while somebody looks: the steps of a task in a session, and what the filter left out of a page that kept no
// raw HTML. The service's language model scrolls once and then finishes.
//
//   BASE=http://… KEY=… CHROMIUM=… node live.cjs      closes with "N passed, N failed"
'use strict';

const assert = require('node:assert/strict');
const { signedIn, visit, settled, test, run, api, site } = require('./lib.cjs');

const article = '<!doctype html><title>Kettles</title><nav><a href="/">Home</a> <a href="/all">All the kettles</a></nav><main><h1>Kettles</h1>'
  + '<p>The kettle that boils in a minute is in stock again, at the price it had before.</p></main><footer>Imprint and nothing else</footer>';

run(async () => {
  const shop = await site({ '/kettles': article });
  const { body: scraped } = await api('POST', '/v2/scrape', { url: shop.url('/kettles'), formats: ['markdown'], maxAge: 0 });
  const id = scraped.data.metadata.scrapeId;

  await test('what was left out of a page is shown, for a scrape, where its job kept no raw HTML', async () => {
    const page = await signedIn('/console/jobs');
    await page.getByRole('link', { name: shop.url('/kettles') }).first().click();
    await page.getByRole('table', { name: 'Pages of the job' }).getByRole('link').first().click();
    await page.getByRole('tab', { name: 'Left out' }).click();
    await page.getByText('That costs what a scrape costs').waitFor();
    await page.getByRole('button', { name: 'Scrape it and compare' }).click();
    const left = page.locator('.block.left');
    await left.filter({ hasText: 'Imprint and nothing else' }).getByText('footer').waitFor();
    assert.equal(await left.filter({ hasText: 'in stock again' }).count(), 0);
  });

  await test('the steps of a task are listed while it is carried out', async () => {
    const opened = await api('POST', `/v2/scrape/${id}/interact`, { code: '1', language: 'node' });
    assert.equal(opened.status, 200, JSON.stringify(opened.body));
    const page = await signedIn('/console/sessions');
    await page.getByRole('article').first().getByRole('link', { name: 'Open' }).click();
    await settled(page);
    await page.frameLocator('iframe.session-frame').locator('canvas, img').first().waitFor();
    // Somebody else, who has the frame's words and not its window, is not heard.
    await page.evaluate(() => postMessage({ liveView: 'notice', text: 'Step 9: not from the frame' }, location.origin));
    await page.getByRole('button', { name: 'Words', exact: true }).click();
    await page.getByLabel('What to do').fill('Tell me whether kettles are in stock.');
    await page.locator('.card', { hasText: 'Run in this browser' }).getByRole('button', { name: 'Run' }).click();
    const told = page.getByRole('list', { name: 'What happens in this browser' });
    await told.getByText(/^Step 1: scroll/).waitFor();
    const steps = page.getByRole('list', { name: 'Steps of the task' });
    await steps.getByText('finish', { exact: true }).waitFor();
    await told.getByText(/^Step 2: finish/).waitFor();
    assert.equal(await steps.getByRole('listitem').count(), 2);
    assert.equal(await page.getByText('not from the frame').count(), 0);
    await visit(page, '/console/sessions');
  }, 120_000);
  shop.close();
});
