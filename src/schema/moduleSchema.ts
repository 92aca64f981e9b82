import { manifestJsonSchema } from './manifestIssues';

/** The text of `schema/module.schema.json`, by which editors complete and check a `module.yaml`. `npm run schema` writes it. */
export function moduleSchemaText(): string {
  const schema = { title: 'A module of Tally (module.yaml)', ...manifestJsonSchema() };
  return `${JSON.stringify(schema, null, 2)}\n`;
}

if (require.main === module) process.stdout.write(moduleSchemaText());
