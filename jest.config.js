const { readdirSync, readFileSync } = require('node:fs');
const { join } = require('node:path');

/** Node can require an ES module; Jest's own loader cannot, so these are transformed like our own files. */
function modulesOnlyForImport() {
  const root = join(__dirname, 'node_modules');
  const names = readdirSync(root).flatMap((name) =>
    name.startsWith('@') ? readdirSync(join(root, name)).map((inner) => `${name}/${inner}`) : [name],
  );
  return names.filter((name) => {
    try {
      return JSON.parse(readFileSync(join(root, name, 'package.json'), 'utf8')).type === 'module';
    } catch {
      return false;
    }
  });
}

/** @type {import('jest').Config} */
module.exports = {
  testEnvironment: 'node',
  roots: ['<rootDir>/test'],
  testMatch: ['**/*.test.ts'],
  transform: {
    '^.+\\.(ts|js|mjs)$': [
      '@swc/jest',
      {
        jsc: { target: 'es2022', parser: { syntax: 'typescript' } },
        module: { type: 'commonjs' },
        sourceMaps: 'inline',
      },
    ],
  },
  transformIgnorePatterns: [`/node_modules/(?!(${modulesOnlyForImport().join('|')})/).+\\.(js|cjs)$`],
  globalSetup: '<rootDir>/test/support/global-setup.ts',
  globalTeardown: '<rootDir>/test/support/global-teardown.ts',
  testTimeout: 30_000,
  maxWorkers: 2,
};
