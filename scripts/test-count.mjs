// Reads Jest's own JSON result. `skipped FILE` fails when a test was not run; `count FILE` prints the closing line.
import { readFileSync } from 'node:fs';

const [what, file] = process.argv.slice(2);
const result = read();
const tests = result.testResults.flatMap(({ name, assertionResults }) => assertionResults.map((test) => ({ ...test, file: name })));

if (what === 'skipped') {
  const skipped = tests.filter(({ status }) => status !== 'passed' && status !== 'failed');
  for (const { file: name, fullName, status } of skipped) console.log(`${status}: ${fullName} (${name})`);
  if (tests.length === 0) console.log('no test was run');
  if (skipped.length > 0 || tests.length === 0) process.exitCode = 1;
} else {
  // A test file that could not be loaded has no tests that could fail.
  console.log(`${result.numPassedTests} passed, ${result.numFailedTests + result.numRuntimeErrorTestSuites} failed`);
}

function read() {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    // Jest wrote none: it did not come to run the tests, which is one failure.
    return { testResults: [], numPassedTests: 0, numFailedTests: 1, numRuntimeErrorTestSuites: 0 };
  }
}
