// Accessibility: axe finds nothing on any page, in both themes, wide and narrow; and nothing is wider than the screen.
//
//   BASE=http://… KEY=… OPERATOR=… CHROMIUM=… node axe.cjs      closes with "N passed, N failed"
//
// Both themes and both widths, each once; with WEIR_TEST_LONG=1 each theme in each width.
'use strict';

const assert = require('node:assert/strict');
const axe = require('axe-core');
const { KEY, OPERATOR, open, signedIn, visit, test, run, api, ended, site } = require('./lib.cjs');

// `parts` are the selectors of what is looked at, of a page that is long and alike.
async function judge(page, where, parts) {
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate((include) => window.axe.run(include ? { include } : document, { resultTypes: ['violations'], iframes: false }), parts);
  const said = violations.map((one) => `${one.id}: ${one.nodes.map((node) => `${node.html.slice(0, 200)} ${(node.any[0] || node.all[0] || node.none[0] || {}).message || ''}`).join(' | ')}`);
  assert.deepEqual(said, [], where);
  const beyond = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  assert.ok(beyond <= 0, `${where} is ${beyond} px too wide`);
}

run(async () => {
  const web = await site({ '/a': '<!doctype html><html lang="en"><title>Kettles</title><nav><a href="/a">Home</a></nav><main><h1>Kettles</h1><h4>Sizes</h4><p>Two sizes of kettles are there, and <code>both</code> boil.</p><ul><li>One<ul><li>small</li></ul></li></ul><table><tr><th>Size</th><th>Price</th></tr><tr><td>One</td><td>29</td></tr></table></main>' });
  const scraped = await api('POST', '/v2/scrape', { url: web.url('/a'), maxAge: 0, formats: ['markdown', 'html', 'rawHtml', 'links', 'screenshot', { type: 'changeTracking', modes: ['git-diff'] }] });
  assert.equal(scraped.status, 200, JSON.stringify(scraped.body));
  const { body: batch } = await api('POST', '/v2/batch/scrape', { urls: [web.url('/a'), 'http://127.0.0.1:2/closed'], maxAge: 0, webhook: web.url('/hook') });
  await ended(`/v2/batch/scrape/${batch.id}`);
  const { body: session } = await api('POST', '/v2/browser', { ttl: 300 });
  const target = { type: 'scrape', urls: [web.url('/a')] };
  const { body: { data: monitor } } = await api('POST', '/v2/monitor', { name: 'Kettles', schedule: { cron: '0 6 * * *' }, targets: [target] });
  await api('POST', `/v2/monitor/${monitor.id}/run`, {});

  const shapes = [['light', 1440], ['dark', 360]];
  if (process.env.WEIR_TEST_LONG === '1') shapes.push(['dark', 1440], ['light', 360]);
  for (const [theme, width] of shapes) {
    const shown = { theme, width, height: 800 };
    await test(`sign-in, ${theme}, ${width} px`, async () => {
      const page = await open('/console', shown);
      await page.getByLabel('Key', { exact: true }).waitFor();
      await judge(page, 'sign-in');
      await judge(await open('/welcome', shown), '/welcome');
      const docs = await open('/docs', shown);
      await docs.locator('.operation > summary').first().click();
      await docs.getByRole('button', { name: 'Send' }).waitFor();
      await judge(docs, '/docs', [['header'], ['.operation[open]']]);
    });
    await test(`every page, ${theme}, ${width} px`, async () => {
      const page = await signedIn('/console', { key: OPERATOR, ...shown });
      // The ids as the console links them.
      await visit(page, '/console/jobs?kind=scrape');
      const jobOf = async () => (await page.locator('td a.row-link').first().getAttribute('href')).split('/').pop();
      const scrape = await jobOf();
      await visit(page, `/console/jobs/${scrape}`);
      const pageOfJob = await page.locator('td a.row-link').first().getAttribute('href');
      const { body: failed } = { body: batch };
      const paths = [
        '/console', '/console?range=week', '/console/jobs', '/console/jobs?host=nowhere.example', `/console/jobs/${failed.id}`, `/console/jobs/${failed.id}?status=failed`, `/console/jobs/${failed.id}?tab=request`, `/console/jobs/${failed.id}?tab=webhooks`,
        ...['markdown', 'html', 'rawHtml', 'screenshot', 'links', 'left', 'changes', 'history', 'metadata', 'all'].map((tab) => `${pageOfJob}?tab=${tab}`),
        ...['scrape', 'batch', 'crawl', 'map', 'search', 'parse', 'extract', 'agent', 'monitor', 'browser'].map((name) => `/console/playground/${name}`),
        '/console/sessions', '/console/sessions?status=destroyed', `/console/sessions/${session.id}`, '/console/monitors', `/console/monitors/${monitor.id}`, '/console/failures', '/console/usage', '/console/keys', '/console/teams', '/console/workers', '/console/nothing', '/console/jobs/not-a-job',
      ];
      for (const path of paths) {
        await visit(page, path);
        if (path.includes('playground')) await page.getByText('All options').click();
        await judge(page, path);
      }
    }, 240_000);
    await test(`dialogs, notices and charts as tables, ${theme}, ${width} px`, async () => {
      const page = await signedIn('/console/keys', { key: KEY, ...shown });
      await page.getByRole('button', { name: 'New key' }).click();
      await judge(page, 'the form of a new key');
      await page.getByRole('button', { name: 'Create key' }).click();
      await page.locator('[data-key]').waitFor();
      await judge(page, 'the new key');
      await page.getByRole('button', { name: 'I have kept it' }).click();
      await page.getByRole('button', { name: 'Revoke' }).first().click();
      await judge(page, 'a question');
      await page.getByRole('button', { name: 'Back' }).click();
      await page.getByLabel('New webhook secret').fill('anything');
      await page.getByRole('button', { name: 'Set', exact: true }).click();
      await page.getByText('The webhook secret is set.').waitFor();
      await judge(page, 'a notice');
      await visit(page, '/console');
      await page.getByRole('button', { name: 'Show Pages as a table' }).click();
      await judge(page, 'a chart as a table');
      await visit(page, '/console/jobs');
      await page.getByRole('button', { name: 'Delete', exact: true }).click();
      await page.getByRole('dialog').getByRole('button', { name: /^Delete/ }).waitFor();
      await judge(page, 'a question about many');
      await page.keyboard.press('Escape');
      if (width < 800) {
        await page.getByRole('button', { name: 'Pages', exact: true }).click();
        await judge(page, 'the menu');
      }
    });
  }
  if (session.id) await api('DELETE', `/v2/browser/${session.id}`);
  web.close();
});
