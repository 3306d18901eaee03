// Runs the steps of a suite one after the other, and closes with the line "N passed, N failed".
"use strict";

module.exports = async function run(steps, close = () => {}) {
  let passed = 0;
  let failed = 0;
  for (const [name, step] of Object.entries(steps)) {
    try {
      await step();
      passed++;
      console.log(`ok   ${name}`);
    } catch (error) {
      failed++;
      console.log(`FAIL ${name}\n${error.stack}`);
    }
  }
  await close();
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed ? 1 : 0);
};
