// One tab that somebody leaves open: says "open" when the overview is live, and ends when its standard input does.
//
//   BASE=http://… KEY=… CHROMIUM=… node open.cjs
'use strict';

const { signedIn, settled, test, run } = require('./lib.cjs');

run(async () => {
  await test('a tab stays open', async () => {
    const page = await signedIn('/console');
    await page.getByText('Live', { exact: true }).waitFor();
    await settled(page);
    console.log('open');
    await new Promise((over) => process.stdin.resume().on('end', over));
  }, 300_000);
});
