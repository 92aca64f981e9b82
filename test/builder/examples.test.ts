import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import type { Input, InspectAnswer } from '../../src/schema/messages';
import { removeScratch } from './scratch';
import type { Control, FitAnswer, Repository, TestBuilder } from './world';
import { answerOf, fitOf, inputFrom, newRepository, startControl, startTestBuilder, warmGo } from './world';

const examples = join(__dirname, '..', '..', 'examples');
const modules = readdirSync(examples).filter((module) => existsSync(join(examples, module, 'module.yaml')));

type Valid = Extract<InspectAnswer, { outcome: 'valid' }>;

/** A mesh of one builder with a path of its own, in which each example is a repository. */
interface Mesh {
  control: Control;
  builder: TestBuilder;
  repositories: Map<string, Repository>;
  heads: Map<string, { commit: string; inspected: Valid }>;
  built: Map<string, FitAnswer>;
}

const meshes: Mesh[] = [];

afterAll(async () => {
  for (const { control, builder } of meshes) {
    await builder.stop();
    await control.close();
  }
  removeScratch();
});

async function startMesh(name: string): Promise<Mesh> {
  const control = await startControl();
  const builder = await startTestBuilder(control, { name });
  const repositories = new Map(modules.map((module) => [module, { ...newRepository(), module }]));
  const mesh: Mesh = { control, builder, repositories, heads: new Map(), built: new Map() };
  meshes.push(mesh);
  return mesh;
}

/** Commits each and asks what it imports and exports. All but `emptyCache` compile with what this machine has compiled before. */
async function commitAll(mesh: Mesh, emptyCache: string[]): Promise<void> {
  for (const [module, repository] of mesh.repositories) {
    const files = filesOf(join(examples, module));
    const commit = repository.commit(emptyCache.includes(module) ? files : withWarmCache(files));
    const inspected = await mesh.control.answerTo(await mesh.control.inspect(repository, commit), 60_000);
    if (inspected.kind !== 'inspect' || inspected.outcome !== 'valid') throw new Error(JSON.stringify(inspected));
    mesh.heads.set(module, { commit, inspected });
  }
  mesh.built.clear();
}

/** After what it builds on, which is what its imports say. */
async function build(mesh: Mesh, module: string): Promise<FitAnswer> {
  const before = mesh.built.get(module);
  if (before !== undefined) return before;
  const { commit, inspected } = headOf(mesh, module);
  const inputs = new Map<string, Input>();
  for (const { candidates, language, test } of inspected.imports ?? []) {
    for (const [other, { inspected: theirs, commit: at }] of mesh.heads) {
      const exported = theirs.exports?.find((one) => one.language === language && candidates.includes(one.name));
      if (exported === undefined || other === module) continue;
      const below = await build(mesh, other);
      const made = below.artifacts.find(({ name }) => name === exported.artifact);
      if (made === undefined) throw new Error(`${other} made no ${exported.artifact}`);
      for (const input of below.inputs) inputs.set(`${input.module}/${input.artifact}`, input);
      inputs.set(`${other}/${made.name}`, inputFrom(made, { module: other, commit: at, names: [{ language, name: exported.name }], test }));
    }
  }
  const repository = mesh.repositories.get(module);
  if (repository === undefined) throw new Error(`no ${module}`);
  const answer = fitOf(await answerOf(mesh.control, repository, commit, { inputs: [...inputs.values()], timeoutMs: 300_000 }));
  mesh.built.set(module, answer);
  return answer;
}

function headOf(mesh: Mesh, module: string): { commit: string; inspected: Valid } {
  const head = mesh.heads.get(module);
  if (head === undefined) throw new Error(`${module} was not inspected`);
  return head;
}

async function buildAll(mesh: Mesh): Promise<Array<[string, FitAnswer['artifacts']]>> {
  for (const module of modules) await build(mesh, module);
  return modules.map((module) => [module, mesh.built.get(module)?.artifacts ?? []]);
}

function filesOf(directory: string): Record<string, string> {
  const entries = readdirSync(directory, { recursive: true, encoding: 'utf8' }).filter((path) => statSync(join(directory, path)).isFile());
  return Object.fromEntries(entries.map((path) => [path, readFileSync(join(directory, path), 'utf8')]));
}

/** What comes out is the same. */
function withWarmCache(files: Record<string, string>): Record<string, string> {
  const manifest = parse(files['module.yaml'] ?? '') as { build?: object };
  return { ...files, 'module.yaml': stringify({ ...manifest, build: { ...manifest.build, env: warmGo() } }) };
}

test('the examples are fit, and the same from an empty home as from a used one, from another commit, and on another builder elsewhere', async () => {
  const one = await startMesh('builder-1');
  await commitAll(one, ['meshboard']);
  const first = await buildAll(one);
  expect(first.every(([, artifacts]) => artifacts.length > 0)).toBe(true);
  const uses = (module: string): string[] => (one.built.get(module)?.inputs ?? []).map((input) => `${input.module}/${input.artifact}`).sort();
  expect(modules.map((module) => [module, uses(module)]).filter(([, used]) => used?.length !== 0)).toEqual([
    ['board-types', ['core/core-go']],
    ['greeter', ['core/core-python']],
    ['kiosk', ['core/core-npm']],
    ['meshboard', ['board-types/board-types', 'core/core-go']],
  ]);

  const heads = new Map([...one.heads].map(([module, { commit }]) => [module, commit]));
  await commitAll(one, ['meshboard']);
  expect(modules.some((module) => headOf(one, module).commit === heads.get(module))).toBe(false);
  expect(await buildAll(one)).toEqual(first);

  const other = await startMesh('builder-2');
  await commitAll(other, []);
  expect(await buildAll(other)).toEqual(first);
}, 1_200_000);
