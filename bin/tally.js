#!/usr/bin/env node
const { existsSync } = require('node:fs');
const { join } = require('node:path');

const main = join(__dirname, '..', 'dist', 'src', 'cli', 'main.js');
if (existsSync(main)) {
  require(main);
} else {
  process.stderr.write('tally is not built here: run "npm run setup"\n');
  process.exitCode = 2;
}
