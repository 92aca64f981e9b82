import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { removeScratch } from './scratch';
import type { Control, TestBuilder } from './world';
import { newRepository, startControl, startTestBuilder } from './world';

const examples = join(__dirname, '..', '..', 'examples');

let control: Control;
let builder: TestBuilder;

beforeAll(async () => {
  control = await startControl();
  builder = await startTestBuilder(control);
});

afterAll(async () => {
  await builder.stop();
  await control.close();
  removeScratch();
});

function filesOf(directory: string): Record<string, string> {
  const entries = readdirSync(directory, { recursive: true, encoding: 'utf8' }).filter((path) => statSync(join(directory, path)).isFile());
  return Object.fromEntries(entries.map((path) => [path, readFileSync(join(directory, path), 'utf8')]));
}

test.each(readdirSync(examples))(
  'the example %s is fit, and the same from an empty home as from a used one',
  async (module) => {
    const repository = { ...newRepository(), module };
    const files = filesOf(join(examples, module));
    const commit = repository.commit(files);
    const first = await control.answerTo(await control.build(repository, commit), 180_000);
    const second = await control.answerTo(await control.build(repository, commit), 180_000);
    if (first.kind !== 'build' || first.outcome !== 'fit') throw new Error(JSON.stringify(first));
    expect(second).toMatchObject({ outcome: 'fit', artifacts: first.artifacts });
    expect(first.artifacts).not.toHaveLength(0);
  },
  400_000,
);
