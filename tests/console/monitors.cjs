// Monitors in the console: made in the playground, run, looked at, paused, deleted; and an extract with its answer.
//
//   BASE=http://… KEY=… READER=… CHROMIUM=… node monitors.cjs      closes with "N passed, N failed"
'use strict';

const assert = require('node:assert/strict');
const { READER, signedIn, visit, settled, test, run, api, until, site } = require('./lib.cjs');

run(async () => {
  let price = 29;
  const page_ = () => `<!doctype html><title>Kettle</title><main><h1>Kettle</h1><p>The kettle costs ${price} crowns today.</p></main>`;
  const web = await site({ '/kettle': (_, response) => response.setHeader('Content-Type', 'text/html').end(page_()) });
  const scheduled = { cron: '0 6 * * *', timezone: 'Europe/Berlin' };
  let id;

  await test('a monitor is made in the playground and opened', async () => {
    const page = await signedIn('/console/playground/monitor');
    await settled(page);
    await page.getByRole('button', { name: 'Run', exact: true }).waitFor();
    const { status, body } = await api('POST', '/v2/monitor', { name: 'Kettle <b>price</b>', schedule: scheduled, judgeEnabled: false, targets: [{ type: 'scrape', urls: [web.url('/kettle')] }] });
    assert.equal(status, 200, JSON.stringify(body));
    id = body.data.id;
    await visit(page, '/console/monitors');
    await page.getByRole('link', { name: 'Kettle <b>price</b>' }).click();
    await page.getByText('It has not looked yet').waitFor();
    await page.getByText('0 6 * * *').waitFor();
  });

  await test('what a check found is shown with its difference', async () => {
    const page = await signedIn(`/console/monitors/${id}`);
    const checks = page.getByRole('table', { name: 'Checks' }).locator('tbody tr');
    const run = async (count) => {
      await page.getByRole('button', { name: 'Run now' }).click();
      await until(`check ${count}`, async () => {
        const { body } = await api('GET', `/v2/monitor/${id}/checks`);
        return body.data.length === count && body.data.every((check) => check.status === 'completed');
      });
      await until('the table', async () => (await checks.filter({ hasText: 'completed' }).count()) === count);
    };
    await run(1);
    await page.getByText('1 new').first().waitFor();
    price = 31;
    await run(2);
    await page.getByText('1 changed').first().waitFor();
    await page.getByText('The kettle costs 31 crowns today.').first().waitFor();
    await page.getByText('The kettle costs 29 crowns today.').first().waitFor();
  });

  await test('it is paused, goes on, and is deleted after a question', async () => {
    const page = await signedIn(`/console/monitors/${id}`);
    await page.getByRole('button', { name: 'Pause', exact: true }).click();
    await page.getByText('not while it is paused').waitFor();
    assert.equal((await api('GET', `/v2/monitor/${id}`)).body.data.status, 'paused');
    await page.getByRole('button', { name: 'Go on', exact: true }).click();
    await until('active', async () => (await api('GET', `/v2/monitor/${id}`)).body.data.status === 'active');
    // Who sees all teams says whose monitors are meant; who may only read changes none.
    const reader = await signedIn('/console/monitors', { key: READER });
    await reader.getByLabel('Team', { exact: true }).selectOption({ index: 1 });
    await settled(reader);
    assert.equal(await reader.getByRole('button', { name: 'Run', exact: true }).count(), 0);
    for (const [path, name] of [['/console/monitors', 'New monitor'], ['/console/jobs', 'New job'], ['/console/sessions', 'New session'], ['/console/sessions', 'Open one']]) {
      await visit(reader, path);
      assert.equal(await reader.getByRole('link', { name }).count(), 0, name);
    }
    await page.getByRole('button', { name: 'Delete', exact: true }).click();
    await page.locator('[data-confirm]').click();
    await page.getByText('Nothing is monitored').waitFor();
    assert.equal((await api('GET', `/v2/monitor/${id}`)).status, 404);
  });

  await test('an agent is started in the playground; its job shows steps and answer', async () => {
    const page = await signedIn('/console/playground/agent');
    await settled(page);
    const { status, body } = await api('POST', '/v2/agent', { prompt: 'What does the kettle cost?', urls: [web.url('/kettle')] });
    assert.equal(status, 200, JSON.stringify(body));
    await until('its end', async () => (await api('GET', `/v2/agent/${body.id}`)).body.status !== 'processing');
    await visit(page, `/console/jobs/${body.id}`);
    await page.getByText('31 crowns').first().waitFor();
    await page.getByRole('tab', { name: 'Steps' }).click();
    await page.getByText('It ended: ').waitFor();
    await page.getByRole('tab', { name: 'Request' }).click();
    await page.locator('pre').filter({ hasText: 'What does the kettle cost?' }).waitFor();
    assert.equal(await page.locator('.banner').count(), 0, 'it is the whole request');
  });
  web.close();
});
