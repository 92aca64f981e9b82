import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';

const root = join(__dirname, '..', '..');

interface Service {
  image?: string;
  build?: { target: string };
  ports?: string[];
  healthcheck?: { test: string[] };
  environment?: Record<string, string>;
  depends_on?: Record<string, { condition: string }>;
  restart?: string;
}

const text = readFileSync(join(root, 'docker-compose.yml'), 'utf8');
const services = Object.entries<Service>(parse(text, { merge: true }).services);

/** Runs on its own until it is done, so that nothing can ask it how it is. */
const ONE_SHOT = 'builder-account';

describe('docker-compose.yml', () => {
  test('is what the compose specification allows, and passes its linter', () => {
    expect(lint('docker-compose.yml')).toEqual([]);
  });

  test('would be refused by that linter with a key that does not exist', () => {
    const broken = join(root, 'test', 'compose', 'broken.yml');
    expect(lint(broken)).toContainEqual(expect.stringContaining('invalid-schema'));
  });

  test.each(services.filter(([, { image }]) => image !== undefined))('pins %s to an exact version', (_, { image }) => {
    expect(image).toMatch(/:\d+\.\d+(\.\d+)?(-[a-z]+)?$/);
  });

  test.each(services.filter(([name]) => name !== ONE_SHOT))('asks %s how it is, and starts it again', (_, { healthcheck, restart }) => {
    expect(healthcheck?.test.length).toBeGreaterThan(1);
    expect(restart).toBe('unless-stopped');
  });

  test.each(services)('publishes no port of %s beyond loopback unless told to', (_, { ports = [] }) => {
    for (const port of ports) expect(port).toMatch(/^(127\.0\.0\.1|\$\{TALLY_BIND:-127\.0\.0\.1\}):\d+:\d+$/);
  });

  test.each(services)('takes each secret of %s from the environment, and stops without it', (_, { environment = {} }) => {
    const secrets = Object.entries(environment).filter(([name, value]) => /PASS|PWD|SECRET/.test(name) || /:\/\/[^/]*@/.test(value));
    for (const [, value] of secrets) expect(value).toMatch(/\$\{[A-Z_]+:\?[^}]+\}/);
  });

  test.each(services)('lets %s wait until what it needs is there', (_, { depends_on: needs = {} }) => {
    for (const [name, { condition }] of Object.entries(needs)) {
      expect(condition).toBe(name === ONE_SHOT ? 'service_completed_successfully' : 'service_healthy');
    }
  });

  test('names only build targets that the Dockerfile has', () => {
    const stages = [...readFileSync(join(root, 'Dockerfile'), 'utf8').matchAll(/^FROM \S+ AS (\w+)$/gm)].map(([, stage]) => stage);
    const targets = services.flatMap(([, { build }]) => (build === undefined ? [] : [build.target]));
    expect(stages).toEqual(expect.arrayContaining(targets));
  });

  test('tells in .env.example every variable that it does not start without', () => {
    const wanted = new Set([...text.matchAll(/\$\{([A-Z_]+):\?/g)].map(([, name]) => name));
    const told = readFileSync(join(root, '.env.example'), 'utf8').match(/^[A-Z_]+(?==$)/gm);
    expect(new Set(told)).toEqual(wanted);
  });
});

interface Finding {
  messages: { rule: string; message: string; severity: string }[];
}

/** Order of keys is taste; an interface given by a variable is unknown to the linter, and checked above. */
const NOT_ASKED = ['service-keys-order', 'top-level-properties-order', 'no-unbound-port-interfaces'];

function lint(file: string): string[] {
  const args = [join(root, 'node_modules', 'dclint', 'bin', 'dclint.cjs'), file, '--formatter=json'];
  // Its exit status says only that there are findings.
  const { stdout, stderr } = spawnSync(process.execPath, [...args, ...NOT_ASKED.map((rule) => `--disable-rule=${rule}`)], {
    cwd: root,
    encoding: 'utf8',
    timeout: 30_000,
  });
  if (stdout === '') throw new Error(stderr);
  const findings: Finding[] = JSON.parse(stdout);
  return findings.flatMap(({ messages }) => messages.map(({ rule, message }) => `${rule}: ${message}`));
}
