// The console's readers and writers of text, without a browser: markdown of strangers, calls as code, numbers in words.
//
//   ROOT=checkout PYTHON=… node reading.cjs      closes with "N passed, N failed"
'use strict';

const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { pathToFileURL } = require('node:url');

let passed = 0, failed = 0;
async function test(name, body) {
  try {
    await body();
    passed += 1;
    console.log(`ok   ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAIL ${name}: ${error.stack}`);
  }
}

/// Elements and texts of what a reader made, flat, in order.
function flat(node, out = []) {
  if (Array.isArray(node)) node.forEach((one) => flat(one, out));
  else if (typeof node === 'string' || typeof node === 'number') out.push(String(node));
  else if (node) {
    out.push(`<${typeof node.type === 'function' ? node.type.name : node.type}${node.props.href ? ` ${node.props.href}` : ''}>`);
    flat(node.props.children, out);
  }
  return out;
}

async function main() {
  // Modules for browsers are modules for Node where a package says so.
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'weir-console-'));
  for (const part of ['lib', 'vendor']) fs.cpSync(path.join(process.env.ROOT, 'api/console', part), path.join(folder, part), { recursive: true });
  fs.writeFileSync(path.join(folder, 'package.json'), '{"type": "module"}');
  const load = (name) => import(pathToFileURL(path.join(folder, 'lib', name)).href);
  const { Markdown } = await load('markdown.js');
  const format = await load('format.js');
  const { snippets } = await load('snippets.js');
  const { merged } = await load('pager.js');
  const { readRates } = await load('rates.js');
  const { csv } = await load('download.js');
  const read = (text) => flat(Markdown({ text }));

  await test('markdown becomes the elements that it means', () => {
    assert.deepEqual(read('# One *two*\n\nthree **four** ~~five~~ `six`  \nseven'), ['<div>', '<h2>', 'One ', '<em>', 'two', '<p>', 'three ', '<strong>', 'four', ' ', '<del>', 'five', ' ', '<code>', 'six', '  ', '<br>', 'seven']);
    assert.deepEqual(read('- a\n  - b\n- c\n\n1. d\n2. e'), ['<div>', '<ul>', '<li>', '<p>', 'a', '<ul>', '<li>', 'b', '<li>', 'c', '<ol>', '<li>', 'd', '<li>', 'e']);
    assert.deepEqual(read('| a | b |\n|---|---|\n| c \\| d | e |').filter((one) => !one.startsWith('<')), ['a', 'b', 'c | d', 'e']);
    assert.deepEqual(read('> a\n> b\n\n```js\n<b>\n```\n\n---'), ['<div>', '<blockquote>', '<p>', 'a', ' ', 'b', '<pre>', '<code>', '<b>', '<hr>']);
    assert.deepEqual(read('snake_case_word and 2 * 3 * 4'), ['<div>', '<p>', 'snake_case_word and 2 * 3 * 4']);
  });

  await test('each block runs as its first letters do, and code from the left', () => {
    const blocks = Markdown({ text: '# أعلنت\n\n- أ\n\n  ب\n\n> ج\n\nLatin\n\n| أ | b |\n|---|---|\n| c | d |\n\n```\nx\n```' }).props.children;
    assert.deepEqual(blocks.map((one) => [one.type, one.props.dir]), [['h2', 'auto'], ['ul', 'auto'], ['blockquote', 'auto'], ['p', 'auto'], ['div', 'auto'], ['pre', undefined]]);
    // Nothing within them has a direction of its own: it would not count for that of the whole.
    const inner = (node) => (Array.isArray(node) ? node.flatMap(inner) : node && node.props ? [node.props.dir, ...inner(node.props.children)] : []);
    assert.deepEqual(blocks.flatMap((one) => inner(one.props.children)).filter(Boolean), []);
  });

  await test('an address gives way in its middle', () => {
    const address = 'https://site.test/articles/of/the/year/2026';
    assert.deepEqual(format.halves(address), ['site.test/articles/', 'of/the/year/2026']);
    assert.deepEqual(['http://site.test/1', 'kettles', ''].map(format.halves), [['site.test/1', ''], ['kettles', ''], ['', '']]);
    const [head, tail] = format.halves(`site.test/${'\u{1F4A7}'.repeat(12)}x`);
    assert.ok(!/[\uD800-\uDBFF]$/.test(head) && !/^[\uDC00-\uDFFF]/.test(tail));
  });

  await test('links lead to http and https only, images are named, HTML is text', () => {
    const known = /^<(div|p|a https?:\/\/.*|span|br|h\d|em|strong)>$/;
    for (const text of ['[x](javascript:alert(1))', '[x](JaVaScRiPt:alert(1))', '[x](java\nscript:alert(1))', '[x]( &#106;avascript:alert(1))', '[x](data:text/html,<script>)', '[x](vbscript:x)', '[x](//evil.example)', '[x](\\\\evil)', '<javascript:alert(1)>', '![x](https://evil.example/a.png)', '![x](javascript:x)', '<script>alert(1)</script>', '<img src=x onerror=alert(1)>', '[<img src=x onerror=1>](https://fine.example/)', '[x](https://fine.example/"onclick="x)', '[![i](https://evil.example/i.png)](https://fine.example/)']) {
      const made = read(text).filter((one) => /^<[a-z]/.test(one) && !text.includes(one));
      for (const one of made) assert.match(one, known, text);
      assert.ok(!made.some((one) => /script:|data:/i.test(one)), `${text}: ${made}`);
    }
    assert.ok(read('[x](https://fine.example/a(b)c)').includes('<a https://fine.example/a(b)c>'));
  });

  await test('hostile markdown takes bounded time and depth', () => {
    const most = 100_000;
    const fill = (part) => part.repeat(Math.ceil(most / part.length)).slice(0, most);
    const texts = ['*', '*a ', '**a', '[', '[a](', '![', '`a', '> ', '>', '- ', '_a_b', '~~a', '<http://a', '|a|\n', 'a|b\n-|-\n', '```\n', '(', '[a](b', '\\', '\n\n', '# ', '- - ', '|-', '* a\n\n', '- -\n', '1. ', '   - a\n'].map(fill);
    texts.push(`# ${' '.repeat(most)}x`, `#${' '.repeat(most)}`, `| a |\n${'-'.repeat(most)}x`, Array.from({ length: 400 }, (_, i) => `${' '.repeat(i)}- a`).join('\n'), Array.from({ length: 300 }, (_, i) => `${'`'.repeat(i + 1)}a`).join(' '));
    for (const text of texts) {
      // Of this process, whatever else the machine has to do.
      const began = process.cpuUsage();
      const parts = read(text);
      const used = process.cpuUsage(began);
      const took = (used.user + used.system) / 1000;
      assert.ok(took < 3000, `${JSON.stringify(text.slice(0, 20))} took ${Math.round(took)} ms`);
      assert.ok(parts.length > 0);
    }
  });

  await test('a call as code is code whatever its values say', () => {
    const evil = `x'"\`\\ $(touch ${folder}/hurt) \`touch ${folder}/hurt\` \${process.exit(3)} \n#{}; """ ''' </script>`;
    const bodies = { scrape: { url: evil, headers: { [evil]: evil }, formats: [{ type: 'json', prompt: evil }] }, batch: { urls: [evil], ignoreInvalidURLs: true }, crawl: { url: evil, scrapeOptions: { includeTags: [evil] } }, map: { url: evil }, search: { query: evil }, preview: { url: evil, prompt: evil }, parse: { formats: [evil] }, browser: { ttl: 60, profile: { name: evil } } };
    for (const [name, body] of Object.entries(bodies)) {
      const made = snippets(name, body, { base: 'http://127.0.0.1:1', file: `a'$(touch ${folder}/hurt)".pdf` });
      fs.writeFileSync(path.join(folder, 'call.mjs'), made.javascript);
      const js = spawnSync('node', ['--check', path.join(folder, 'call.mjs')], { encoding: 'utf8' });
      assert.equal(js.status, 0, `${name}: ${js.stderr}\n${made.javascript}`);
      if (process.env.PYTHON) {
        const python = spawnSync(process.env.PYTHON, ['-c', 'import ast, sys; ast.parse(sys.stdin.read())'], { input: made.python, encoding: 'utf8' });
        assert.equal(python.status, 0, `${name}: ${python.stderr}\n${made.python}`);
      }
      // A curl that only says what it was given.
      const shell = spawnSync('bash', ['-c', `curl() { printf '%s\\0' "$@"; }\n${made.curl}`], { encoding: 'utf8', env: { ...process.env, WEIR_KEY: 'k' } });
      assert.equal(shell.status, 0, `${name}: ${shell.stderr}`);
      const given = shell.stdout.split('\0');
      const sent = given.find((part) => part.startsWith('{')) ?? given.find((part) => part.startsWith('options=')).slice('options='.length);
      assert.deepEqual(JSON.parse(sent), body, name);
    }
    assert.ok(!fs.existsSync(path.join(folder, 'hurt')));
  });

  await test('a first piece that is read anew takes the place of what stood in it, and of nothing after it', () => {
    const id = (row) => row;
    assert.deepEqual(merged([6, 5, 4], [5, 4, 3, 2], id), [6, 5, 4, 3, 2], 'a newer one');
    assert.deepEqual(merged([5, 3, 2], [5, 4, 3, 2, 1], id), [5, 3, 2, 1], 'one that is gone');
    assert.deepEqual(merged([3, 5, 4], [5, 4, 3, 2], id), [3, 5, 4, 2], 'another order');
    assert.equal(merged([9, 8, 7], [5, 4, 3], id), null, 'more have come than a piece holds');
    assert.equal(merged([], [5, 4, 3], id), null);
  });

  await test('rates are read by the line, and the first that is none is named', () => {
    assert.deepEqual(readRates(' scrape = 60\n\ncrawl=5\n'), { rates: { scrape: 60, crawl: 5 }, wrong: null });
    assert.deepEqual(readRates(''), { rates: {}, wrong: null });
    for (const line of ['scrape 60', 'scrape: 70', 'scrape=10=20', 'scrape=abc', 'scrape=0', 'scrape=1.5', '=5', 'scrape=']) assert.match(readRates(`crawl=5\n${line}`).wrong, /^Line 2, "/, line);
    assert.match(readRates('crawl=5\ncrawl=6').wrong, /twice/);
  });

  await test('a table for spreadsheets keeps its cells apart, and no cell is a formula', () => {
    assert.equal(csv([[1, 'a', null, undefined], ['a,b', 'say "hi"', 'two\nlines', '']]), '1,a,,\r\n"a,b","say ""hi""","two\nlines",\r\n');
    for (const text of ['=1+1', '+1', '-1', '@a', '\t=1']) assert.equal(csv([[text]]), `'${text}\r\n`);
    assert.equal(csv([['\r=1', -1]]), '"\'\r=1",-1\r\n');
  });

  await test('numbers have their units, and times their words', () => {
    assert.deepEqual([0, 340, 999, 4210, 59_000, 190_000, 7_500_000, 273_600_000, null].map(format.duration), ['0 ms', '340 ms', '999 ms', '4.2 s', '59 s', '3 min 10 s', '2 h 5 min', '3 d 4 h', '–']);
    assert.deepEqual([0, 1023, 1536, 83_886_080, undefined].map(format.bytes), ['0 B', '1,023 B', '1.5 KB', '80 MB', '–']);
    assert.deepEqual([0.004, 0.5, 0.0002, 0, null].map((part) => format.percent(part)), ['0.4 %', '50 %', '< 0.1 %', '0 %', '–']);
    const now = Date.parse('2026-11-24T12:00:00Z');
    assert.deepEqual(['2026-11-24T11:59:59.500Z', '2026-11-24T11:59:30Z', '2026-11-24T11:56:00Z', '2026-11-24T09:00:00Z', '2026-11-22T12:00:00Z', '2026-11-24T14:00:00Z', 'nonsense'].map((time) => format.relative(time, now)), ['just now', '30 s ago', '4 min ago', '3 h ago', '2 d ago', 'in 2 h', 'nonsense']);
    assert.deepEqual(['http://a.example/b', 'javascript:alert(1)', 'ftp://a', '//a', null].map(format.safeUrl), ['http://a.example/b', null, null, null, null]);
  });

  fs.rmSync(folder, { recursive: true });
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed ? 1 : 0);
}

main();
