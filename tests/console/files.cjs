// What can be said of the console's files without running them: copies of libraries are those of the packages, nothing
// makes markup or code out of text, imports lead somewhere, codes are explained, and the whole is small.
//
//   ROOT=checkout NODE_PATH=modules node files.cjs      closes with "N passed, N failed"
'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const zlib = require('node:zlib');

const ROOT = process.env.ROOT;
const CONSOLE = path.join(ROOT, 'api/console');
let passed = 0, failed = 0;

function test(name, body) {
  try {
    body();
    passed += 1;
    console.log(`ok   ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAIL ${name}: ${error.stack}`);
  }
}

const files = fs.readdirSync(CONSOLE, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()).map((entry) => path.join(entry.parentPath || entry.path, entry.name));
const scripts = files.filter((file) => file.endsWith('.js'));
const own = scripts.filter((file) => !file.includes('/vendor/'));
const read = (file) => fs.readFileSync(file, 'utf8');
const inPackage = (name) => path.join(process.env.NODE_PATH, name);

/// The only changes to a copy: where it finds Preact without a bundler, and no address of a map that is not there.
const fitted = (text) => text.replace('from"preact"', 'from"./preact.js"').replace(/^\/\/# sourceMappingURL=.*\n?/m, '');

test('copies of libraries are the files of the pinned packages', () => {
  for (const [copy, origin] of [['preact.js', 'preact/dist/preact.mjs'], ['hooks.js', 'preact/hooks/dist/hooks.mjs'], ['htm.js', 'htm/dist/htm.module.js']]) {
    assert.equal(read(path.join(CONSOLE, 'vendor', copy)).trimEnd(), fitted(read(inPackage(origin))).trimEnd(), copy);
  }
  assert.deepEqual(fs.readdirSync(path.join(CONSOLE, 'vendor')).filter((name) => name.endsWith('.js')).sort(), ['hooks.js', 'htm.js', 'preact.js']);
});

test('nothing of the console turns text into markup or code', () => {
  const never = /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\s*\(|new Function|createContextualFragment|dangerouslySetInnerHTML|setHTMLUnsafe|href="javascript:|\.srcdoc\s*=/;
  for (const file of own) {
    const found = never.exec(read(file).replace(/^\s*\/\/.*$/gm, ''));
    assert.equal(found, null, `${file}: ${found && found[0]}`);
  }
});

test('frames of strangers\' HTML have no permissions', () => {
  const frames = own.flatMap((file) => [...read(file).matchAll(/<iframe[^>]*>/g)].map((match) => match[0]));
  assert.ok(frames.length >= 3);
  for (const frame of frames) assert.ok(frame.includes('sandbox=""') || /src=\$\{view\}/.test(frame), frame);
});

test('index.html has no script or style of its own', () => {
  const page = read(path.join(CONSOLE, 'index.html'));
  assert.doesNotMatch(page, /<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=/);
  for (const [, address] of page.matchAll(/(?:src|href)="([^"]+)"/g)) {
    assert.ok(address.startsWith('{{assets}}/'), address);
    assert.ok(fs.existsSync(path.join(CONSOLE, address.slice('{{assets}}/'.length))), address);
  }
});

test('every import leads to a file and to something that it exports', () => {
  for (const file of own) {
    for (const [, names, from] of read(file).matchAll(/^(?:import|export)\s+([^;]*?)\s+from\s+"([^"]+)"/gm)) {
      assert.ok(from.startsWith('.'), `${file}: ${from}`);
      const target = path.join(path.dirname(file), from);
      assert.ok(fs.existsSync(target), `${file}: ${from}`);
      const list = /\{([^}]*)\}/.exec(names);
      if (!list || target.includes('/vendor/')) continue;
      const text = read(target);
      for (const name of list[1].split(',').map((one) => one.trim().split(/\s+as\s+/)[0]).filter(Boolean)) {
        assert.match(text, new RegExp(`export (?:default )?(?:async )?(?:function|const|class|let)\\s+${name}\\b|export\\s*\\{[^}]*\\b${name}\\b`), `${file}: ${name} of ${from}`);
        if (names.startsWith('{') && read(file).includes(`export {`)) continue;
        assert.ok((read(file).match(new RegExp(`\\b${name}\\b`, 'g')) || []).length > 1, `${file} does not use ${name}`);
      }
    }
  }
});

test('every class that scripts name has a style, and every icon a drawing', () => {
  const styles = files.filter((file) => file.endsWith('.css')).map(read).join('\n');
  const missing = [];
  const drawn = new Set([...read(path.join(CONSOLE, 'parts/icon.js')).matchAll(/^ {2}(\w+): "M/gm)].map((match) => match[1]));
  for (const file of own) {
    for (const [, names] of read(file).matchAll(/\sclass="([^"$]+)"/g)) for (const name of names.split(/\s+/)) if (!styles.includes(`.${name}`)) missing.push(`${file}: class ${name}`);
    for (const [, one, other] of read(file).matchAll(/\bicon="(\w+)"|<\$\{Icon\} name="(\w+)"/g)) if (!drawn.has(one || other)) missing.push(`${file}: icon ${one || other}`);
  }
  assert.deepEqual(missing, []);
});

test('every code that a page can fail with is explained', () => {
  const table = read(path.join(ROOT, 'shared/src/error_code.rs'));
  const codes = [...table.matchAll(/^ {4}\w+ = \d+, "(\w+)";/gm)].map((match) => match[1]).filter((code) => /^(SCRAPE|MAP|CONCURRENCY)_|^unsafe_|^UNKNOWN|^BROWSER_FAILED/.test(code));
  const words = read(path.join(CONSOLE, 'lib/words.js'));
  assert.ok(codes.length > 25, codes.join());
  for (const code of codes) assert.ok(words.includes(`  ${code}: [`), code);
  for (const [, code] of words.matchAll(/^ {2}(\w+): \["/gm)) assert.ok(table.includes(`"${code}"`), `${code} is no code of the API`);
});

test('the whole console is at most 250 KB compressed', () => {
  const size = files.reduce((sum, file) => sum + zlib.gzipSync(fs.readFileSync(file), { level: 9 }).length, 0);
  console.log(`     ${files.length} files, ${(size / 1024).toFixed(1)} KB with gzip`);
  assert.ok(size <= 250 * 1024, `${size} bytes`);
});

console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
