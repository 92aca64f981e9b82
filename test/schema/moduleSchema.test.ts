import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { moduleSchemaText } from '../../src/schema/moduleSchema';

test('the schema for editors is the one that is enforced (npm run schema writes it)', () => {
  expect(readFileSync(join(__dirname, '../../schema/module.schema.json'), 'utf8')).toBe(moduleSchemaText());
});
