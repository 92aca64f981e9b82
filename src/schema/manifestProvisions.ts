/** What a module requires and provides, and who can fill in which reference: names that must exist, and where a secret may stand. */
import { bindingNameOf, isTaken, TAKES } from '../domain/provisioning';
import type { InstanceProvision, Manifest } from './manifest';
import { type Finding, suggest } from './manifestIssues';
import { isPrivateMode } from './primitives';

type Path = Array<string | number>;

/** What a text may refer to: whole names, and `facts.` for any fact. */
interface Known {
  readonly names: readonly string[];
  /** The names that are secret: they stand in the content of a file of mode 0600 alone. */
  readonly secrets: readonly string[];
}

const LITERAL = '`$$' + '{` for a literal `$' + '{`';
const OF_A_NODE = ['node.name', 'node.address', 'facts.'];
const OF_AN_INSTANCE = ['instance.name', 'instance.consumer', 'instance.node', 'instance.address'];

export function checkRequirements({ requires }: Manifest): Finding[] {
  const seen = new Map<string, number>();
  return requires.flatMap((need, i) => {
    const key = 'presence' in need ? `presence ${need.presence}` : `binding ${bindingNameOf(need)}`;
    const before = seen.get(key);
    seen.set(key, i);
    if (before === undefined) return [];
    if ('presence' in need)
      return [{ path: ['requires', i, 'presence'], message: `requires[${before}] has the presence ${need.presence}: keep one` }];
    const at = need.as === undefined ? 'instantiation' : 'as';
    return [
      {
        path: ['requires', i, at],
        message: `requires[${before}] is bound as \`${bindingNameOf(need)}\` already: give this one another name with \`as\``,
      },
    ];
  });
}

export function checkProvisions({ provides }: Manifest): Finding[] {
  const seen = new Map<string, number>();
  return provides.flatMap((given, i): Finding[] => {
    const key = 'presence' in given ? 'presence' : 'instantiation';
    const name = 'presence' in given ? given.presence : given.instantiation;
    const before = seen.get(`${key} ${name}`);
    seen.set(`${key} ${name}`, i);
    const twice = before === undefined ? [] : [{ path: ['provides', i, key], message: `provides[${before}] provides ${name} already: keep one` }];
    return 'presence' in given ? twice : [...twice, ...checkParameters(given, ['provides', i]), ...checkTemplate(given, ['provides', i])];
  });
}

function checkParameters({ parameters }: InstanceProvision, path: Path): Finding[] {
  return Object.entries(parameters).flatMap(([name, one]) =>
    one.default === undefined || isTaken(one.is, one.default)
      ? []
      : [{ path: [...path, 'parameters', name, 'default'], message: `the default is not what \`is: ${one.is}\` takes: ${TAKES[one.is]}` }],
  );
}

/** What is made for each instance is named by it, else the second one would have the target of the first. */
function checkTemplate(given: InstanceProvision, path: Path): Finding[] {
  return given.resources.flatMap((resource, i): Finding[] => {
    const [shape, spec] = Object.entries(resource)[0] as [string, { name?: string; path?: string }];
    const key = spec.path === undefined ? 'name' : 'path';
    const target = spec.path ?? spec.name ?? '';
    const free = Object.keys(given.parameters).find((name) => given.parameters[name]?.is === 'text' && target.includes(`\${with.${name}}`));
    if (free !== undefined) {
      const message = `\`\${with.${free}}\` is any text, which a consumer could make another path of: give the parameter \`is: word\`, or use \`\${instance.name}\``;
      return [{ path: [...path, 'resources', i, shape, key], message }];
    }
    if (/\$\{(instance\.name|with\.)/.test(target)) return [];
    return [
      { path: [...path, 'resources', i, shape, key], message: `\`${target}\` is the same for every instance: put \`\${instance.name}\` into it` },
    ];
  });
}

export function checkReferencesOfModule(manifest: Manifest): Finding[] {
  const { requires, claims, provides, resources } = manifest;
  const bindings = requires.flatMap((need) => ('presence' in need ? [] : [`bind.${bindingNameOf(need)}.`]));
  const own = known(['root', ...OF_A_NODE, ...bindings]);
  return [
    ...checkReferences(resources, ['resources'], own),
    ...claims.flatMap(({ resource }, i) => checkText(resource, ['claims', i, 'resource'], known(['node.name', 'facts.']), false)),
    ...requires.flatMap((need, i) => ('presence' in need ? [] : checkReferences(need.with, ['requires', i, 'with'], known(OF_A_NODE)))),
    ...provides.flatMap((given, i) => ('presence' in given ? [] : checkGiven(given, ['provides', i]))),
  ];
}

function checkGiven(given: InstanceProvision, path: Path): Finding[] {
  const names = [...OF_A_NODE, ...OF_AN_INSTANCE, ...Object.keys(given.parameters).map((one) => `with.${one}`)];
  const secrets = given.secrets.map((one) => `secret.${one}`);
  return [
    ...given.resources.flatMap((resource, i) => checkReferences(resource, [...path, 'resources', i], known(['root', ...names], secrets))),
    // A value that holds a secret is one: it is given on sealed.
    ...checkReferences(given.gives, [...path, 'gives'], known([...names, ...secrets])),
    ...Object.entries(given.parameters).flatMap(([name, one]) =>
      one.default === undefined ? [] : checkText(one.default, [...path, 'parameters', name, 'default'], known([]), false),
    ),
  ];
}

function known(names: readonly string[], secrets: readonly string[] = []): Known {
  return { names, secrets };
}

function checkReferences(value: unknown, path: Path, allowed: Known): Finding[] {
  if (typeof value === 'string') return checkText(value, path, allowed, false);
  if (typeof value !== 'object' || value === null) return [];
  if (Array.isArray(value)) return value.flatMap((item, i) => checkReferences(item, [...path, i], allowed));
  const isPrivate = 'content' in value && 'mode' in value && isPrivateMode(String(value.mode));
  return Object.entries(value).flatMap(([key, item]) =>
    key === 'content' && typeof item === 'string'
      ? checkText(item, [...path, key], allowed, isPrivate)
      : checkReferences(item, [...path, key], allowed),
  );
}

function checkText(text: string, path: Path, { names, secrets }: Known, isPrivate: boolean): Finding[] {
  const findings: Finding[] = [];
  // `$${` is a literal `${`; the first alternative swallows it.
  for (const match of text.matchAll(/\$\$\{|\$\{([^}\n]*)(\}?)/g)) {
    const [whole, name, end] = match;
    if (whole === '$${' || name === undefined) continue;
    if (end === '') findings.push({ path, message: `a reference \`\${\` is not closed by \`}\`: write ${LITERAL}` });
    else if (secrets.includes(name)) {
      if (!isPrivate)
        findings.push({ path, message: `\`\${${name}}\` is a secret: it may stand in the content of a file of mode "0600" and nowhere else` });
    } else if (!names.some((one) => (one.endsWith('.') ? isUnder(name, one) : one === name))) {
      const shown = name.length > 60 ? `${name.slice(0, 59)}…` : name;
      const all = [...names, ...secrets];
      const last = name.slice(name.lastIndexOf('.') + 1);
      const meant = suggest(
        name,
        all.map((one) => (one.endsWith('.') ? `${one}${last}` : one)),
      );
      const forms = suggest(
        '',
        all.map((one) => (one.endsWith('.') ? `${one}KEY` : one)),
      );
      findings.push({ path, message: `unknown reference \`\${${shown}}\`: ${meant.startsWith('did') ? meant : forms}; write ${LITERAL}` });
    }
  }
  return findings;
}

function isUnder(name: string, prefix: string): boolean {
  return name.startsWith(prefix) && /^[A-Za-z0-9][A-Za-z0-9_.-]*$/.test(name.slice(prefix.length));
}
