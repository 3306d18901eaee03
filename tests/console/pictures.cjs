// Takes the pictures of docs/console.md: a service works on three small sites for a while, and its pages are taken light
// and dark. Only the overview's figures are laid over: an hour's worth of them is not to be waited for.
//
//   BASE=http://… KEY=… OPERATOR=… CHROMIUM=… OUT=folder SITES=address:port node pictures.cjs
'use strict';

const http = require('node:http');
const { OPERATOR, signedIn, visit, settled, test, run, api, ended } = require('./lib.cjs');

const OUT = process.env.OUT;
const [ADDRESS, PORT] = process.env.SITES.split(':');
const at = (host, path) => `http://${host}${PORT === '80' ? '' : `:${PORT}`}${path}`;

const page = (title, body) => `<!doctype html><html lang="en"><head><title>${title}</title><meta name="description" content="${title}"></head><body>`
  + '<header><nav><a href="/">Home</a> <a href="/all">Everything</a> <a href="/contact">Contact</a></nav></header>'
  + `<main><h1>${title}</h1>${body}</main><aside><h2>Newsletter</h2><p>One letter a month, and no more than that.</p></aside>`
  + '<footer><p>Imprint and terms of delivery</p></footer></body></html>';
const goods = ['Enamel kettle', 'Copper kettle', 'Tea strainer', 'Cast-iron trivet', 'Glass teapot', 'Porcelain cups'];
const shop = (n) => page(`${goods[n % goods.length]} No. ${n}`, `<p>Boils a litre in four minutes, and keeps it warm for an hour on its own plate.</p>
  <h2>What is in the box</h2><ul><li>the ${goods[n % goods.length].toLowerCase()}</li><li>a cloth of linen</li><li>a card on how to descale it</li></ul>
  <table><thead><tr><th>Size</th><th>Price</th><th>In stock</th></tr></thead><tbody><tr><td>1.0 l</td><td>€ ${39 + (n % 30)}</td><td>yes</td></tr>
  <tr><td>1.7 l</td><td>€ ${59 + (n % 30)}</td><td>from Monday</td></tr></tbody></table>`);
const docs = (n) => page(`Chapter ${n}: Mooring and tides`, `<p>How lines are set at a quay with four metres of tide, and when they are looked after.</p>
  <p>See also ${[1, 2, 3].map((m) => `<a href="/guide/${(n * 3 + m) % 40}">chapter ${(n * 3 + m) % 40}</a>`).join(', ')}.</p>`);

const sites = {
  'kettles.example': (request, response, path) => {
    if (/\/slow/.test(path)) return undefined;
    const n = Number(/\d+/.exec(path)?.[0] ?? 0);
    if (n % 17 === 5) return request.socket.destroy();
    return response.end(shop(n));
  },
  'docs.harbour.example': (request, response, path) => response.end(docs(Number(/\d+/.exec(path)?.[0] ?? 0))),
  'news.lighthouse.example': (request, response, path) => response.end(page(`The lamp is lit again (${path.slice(1)})`, '<p>After nine weeks of repairs the light on the north pier can be seen from twenty miles again.</p>')),
};

/// An hour that a service of this size may have had: more in the middle of it, a site that failed towards its end.
function anHour(overview) {
  const minutes = overview.points.length;
  overview.points.forEach((point, n) => {
    const much = 900 + Math.round(500 * Math.sin((n / minutes) * Math.PI) + 90 * Math.sin(n * 1.7));
    const failed = n > minutes - 14 && n < minutes - 5 ? 38 + (n % 5) * 6 : 3 + (n % 4);
    point.pages = { http: { done: much, failed: 0 }, browser: { done: Math.round(much / 6), failed: 0 },
      cache: { done: Math.round(much / 11), failed: 0 }, none: { done: 0, failed } };
    point.errors = { SCRAPE_SITE_ERROR: failed - 2, SCRAPE_TIMEOUT: 1 + (n % 2), SCRAPE_DNS_RESOLUTION_ERROR: n % 3 === 0 ? 1 : 0 };
    point.p50Ms = 180 + Math.round(60 * Math.sin(n / 7));
    point.p95Ms = 1500 + Math.round(500 * Math.sin(n / 6) + 150 * Math.sin(n * 2.1));
    point.queued = Math.round(much * 1.3);
    point.oldestMs = much * 3;
    Object.assign(point, { running: 14 + (n % 3), browsers: 3, sessions: 2 + (n % 2), processes: 3, memoryBytes: 1.1e9 + much * 4e5 });
  });
  const sum = (pick) => overview.points.reduce((all, point) => all + pick(point), 0);
  const errors = {};
  for (const point of overview.points) for (const [code, count] of Object.entries(point.errors)) errors[code] = (errors[code] || 0) + count;
  const ended = sum((point) => Object.values(point.pages).reduce((all, { done, failed }) => all + done + failed, 0));
  Object.assign(overview.totals, { pages: ended, failed: sum((point) => point.pages.none.failed), p50Ms: 204, p95Ms: 1720, errors });
  return overview;
}

async function work() {
  const server = http.createServer((request, response) => {
    const site = sites[(request.headers.host || '').split(':')[0]];
    response.setHeader('Content-Type', 'text/html; charset=utf-8');
    if (!site) return response.writeHead(404).end('<title>none</title>');
    return site(request, response, new URL(request.url, 'http://x').pathname);
  });
  await new Promise((ready) => server.listen(Number(PORT), ADDRESS, ready));
  const urls = Array.from({ length: 120 }, (_, n) => at('kettles.example', `/goods/${n}`));
  const started = [];
  const start = async (path, body) => started.push([path, (await api('POST', path, body)).body.id]);
  await start('/v2/batch/scrape', { urls: [...urls, at('kettles.example', '/slow/1'), at('old-catalogue.example', '/index')], timeout: 4000, formats: ['markdown', 'html', 'links'] });
  await start('/v2/crawl', { url: at('docs.harbour.example', '/guide/1'), limit: 60, sitemap: 'skip', crawlEntireDomain: true });
  await start('/v2/batch/scrape', { urls: Array.from({ length: 40 }, (_, n) => at('news.lighthouse.example', `/2026/${n}`)) });
  await api('POST', '/v2/map', { url: at('docs.harbour.example', '/guide/1') });
  for (let n = 0; n < 6; n += 1) await api('POST', '/v2/scrape', { url: at('news.lighthouse.example', `/today/${n}`), formats: ['markdown', 'html', 'rawHtml', 'links', { type: 'screenshot' }] });
  for (const [path, id] of started) await ended(`${path}/${id}`);
  return { server, batch: started[0][1] };
}

run(async () => {
  await test('the pictures are taken', async () => {
    const { server, batch } = await work();
    for (const theme of ['light', 'dark']) {
      const tab = await signedIn('/console', { theme, key: OPERATOR, width: 1360, height: 900 });
      await tab.route(/\/console\/api\/overview/, async (route) => {
        const response = await route.fetch();
        await route.fulfill({ response, json: anHour(await response.json()) });
      });
      await tab.reload();
      const take = async (name, path, ready) => {
        await visit(tab, path);
        if (ready) await ready();
        await settled(tab);
        await tab.screenshot({ path: `${OUT}/${name}-${theme}.png` });
      };
      await settled(tab);
      await tab.waitForTimeout(3000);
      await tab.screenshot({ path: `${OUT}/overview-${theme}.png` });
      await take('jobs', '/console/jobs');
      await take('job', `/console/jobs/${batch}`);
      await take('page', '/console/jobs?kind=scrape', async () => {
        await tab.getByRole('link', { name: at('news.lighthouse.example', '/today/') }).first().click();
        await tab.getByRole('table', { name: 'Pages of the job' }).getByRole('link').first().click();
        await tab.getByRole('heading', { level: 1, name: /lamp is lit/ }).waitFor();
      });
      await take('playground', `/console/playground/scrape`, async () => {
        await tab.getByLabel('URL', { exact: true }).fill(at('kettles.example', '/goods/7'));
        if (await tab.getByLabel('As team').count()) await tab.getByLabel('As team').selectOption({ label: 'tests' });
        await tab.getByRole('button', { name: 'Run' }).click();
        await tab.getByText('HTTP 200').waitFor();
      });
      await take('failures', '/console/failures');
      await take('usage', '/console/usage', async () => {
        await tab.getByLabel('As team').selectOption({ label: 'tests' });
        await tab.getByText('Credits', { exact: false }).first().waitFor();
      });
    }
    server.closeAllConnections();
    server.close();
  }, 280_000);
});
