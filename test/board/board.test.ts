/** The board in a real browser: what it shows, that it changes by itself, and that nothing in it becomes code. */
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import type { StatusAnswer } from '../../src/schema/api';
import { startApi, type TestApi } from '../support/api';
import { openBrowser } from '../support/browser';
import { addEdges, aGraph } from '../support/edges';
import { eventually } from '../support/eventually';
import { aDay, answeredBuild, COMMITS, inStep, situate } from '../support/meshes';

const WITHIN = { timeoutMs: 10_000 };

let browser: Browser;
let api: TestApi;
let context: BrowserContext;
let page: Page;
let complaints: string[];

beforeAll(async () => {
  browser = await openBrowser();
  api = await startApi();
}, 360_000);

beforeEach(async () => {
  await api.reset();
  context = await browser.newContext({ viewport: { width: 1_200, height: 900 } });
  page = await context.newPage();
  page.setDefaultTimeout(10_000);
  complaints = [];
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('dialog', (dialog) => {
    complaints.push(`a dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
});

afterEach(async () => {
  await context.close();
});

afterAll(async () => {
  await browser.close();
  await api.close();
});

async function logIn(): Promise<void> {
  await page.goto(`${api.url}/`);
  await page.getByLabel('Token').fill(api.token);
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.waitForSelector('#connection[data-state="live"]');
  // What a stream begins with may be of the moment before: a test is about what is so now.
  const answered = await fetch(`${api.url}/api/v1/status`, { headers: { authorization: `Bearer ${api.token}` } });
  const { summary } = (await answered.json()) as StatusAnswer;
  const now = `${summary.modules} modules, ${summary.inStep} in step`;
  await eventually(async () => expect(await page.textContent('#summary')).toContain(now), WITHIN);
}

async function linesOf(section: string): Promise<string[]> {
  return await page.locator(`#${section} .row .name`).allTextContents();
}

describe('whoever has no token', () => {
  test('sees the form and nothing of the mesh', async () => {
    await aDay(api.db);
    await page.goto(`${api.url}/`);
    const { TALLY_PICTURES: pictures } = process.env;
    if (pictures) await picture(join(pictures, 'login.png'));
    expect(page.url()).toBe(`${api.url}/login`);
    expect(await page.textContent('body')).not.toContain('kiosk');
  });

  test('is told that a token is nobody’s', async () => {
    await page.goto(`${api.url}/login`);
    await page.getByLabel('Token').fill('guess');
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.waitForSelector('[role=alert]');
    expect(await context.cookies()).toEqual([]);
  });
});

test('the token lies in a cookie that no script reads and no other site sends', async () => {
  await logIn();
  const [cookie] = await context.cookies();
  expect(cookie).toMatchObject({ name: 'tally_token', httpOnly: true, sameSite: 'Strict' });
  expect(await page.evaluate('document.cookie')).toBe('');
  await page.getByRole('button', { name: 'Log out' }).click();
  await page.waitForURL('**/login');
  expect(await context.cookies()).toEqual([]);
});

describe('the board', () => {
  test('shows what needs a person first, each line whole, with the verb that helps and the page of its run', async () => {
    await aDay(api.db);
    await logIn();
    expect(await linesOf('needs-you')).toEqual(['kiosk', 'greeter']);
    expect(await page.textContent('#module-greeter .remedy')).toBe('→ tally node show gamma');
    expect(await linesOf('moving')).toEqual(['meshboard']);
    expect(await linesOf('in-step')).toEqual(['board-types', 'core', 'site']);
    expect(await page.textContent('#module-kiosk .line')).toContain('failed at 9c1f0e2');
    expect(await page.textContent('#module-kiosk .remedy')).toBe('→ tally log kiosk');
    expect(await page.getAttribute('#module-kiosk .run', 'href')).toBe('http://temporal.test/namespaces/default/workflows/module%2Fkiosk');
    expect(await page.textContent('#summary')).toContain('mesh home · 6 modules, 3 in step · 3 nodes, 1 away since');
    expect(await page.locator('#nodes .card').count()).toBe(3);
    expect(complaints).toEqual([]);
  });

  test('shows what each module builds on and what builds on it, with the way there', async () => {
    await aGraph(api.db);
    for (let at = 0; at < 12; at += 1) await inStep(api.db, `user-${10 + at}`);
    await addEdges(api.db, ...Array.from({ length: 12 }, (_, at) => `user-${10 + at} > core a.go:1`));
    await situate(api.db, {
      module: 'meshboard',
      head: COMMITS.fit,
      situation: 'waiting',
      next: 'wait',
      line: 'source 77ab310 · waiting for core (building on builder-1) since 2026-11-29T14:02Z',
      reason: 'core moved from sha256:1f2e3d4 to sha256:9c8b7a6; waits for core (building on builder-1) to settle',
    });
    await logIn();
    expect(await page.textContent('#module-board-types .edges')).toBe('builds on corebuilt on by kiosk, meshboard');
    expect(await page.textContent('#module-core .edges')).toBe(
      'built on by board-types, meshboard, probe, user-10, user-11, user-12, user-13, user-14 and 7 more',
    );
    expect(await page.textContent('#module-meshboard .reason')).toContain('waits for core (building on builder-1) to settle');
    expect(await page.locator('#module-site .edges').count()).toBe(0);
    const { TALLY_PICTURES: pictures } = process.env;
    if (pictures) await picture(join(pictures, 'graph.png'));
    await page.locator('#module-meshboard .edges').getByRole('link', { name: 'core' }).click();
    await page.waitForSelector('#module-core.changed');
    expect(complaints).toEqual([]);
  });

  test('says of a module that its build is not reproducible', async () => {
    await inStep(api.db, 'kiosk');
    await inStep(api.db, 'core');
    await answeredBuild(api.db, { id: 'build-otherwise', module: 'kiosk', commit: COMMITS.fit, verdict: 'fit' });
    await api.db.query(`update build set not_reproducible = true where id = 'build-otherwise'`);
    await api.db.query(`update module set effective_build = 'build-otherwise' where name = 'kiosk'`);
    await logIn();
    expect(await page.textContent('#module-kiosk')).toContain('not reproducible: built again with the same inputs');
    expect(await page.textContent('#module-core')).not.toContain('not reproducible');
    expect(complaints).toEqual([]);
  });

  test('leads to the module that its address names', async () => {
    await aDay(api.db);
    await page.setViewportSize({ width: 360, height: 300 });
    await logIn();
    await page.goto(`${api.url}/#site`);
    await page.waitForFunction('document.getElementById("module-site").getBoundingClientRect().top < 300');
  });

  test('changes its lines by itself', async () => {
    await aDay(api.db);
    await logIn();
    await inStep(api.db, 'kiosk');
    await eventually(async () => expect(await linesOf('in-step')).toContain('kiosk'), WITHIN);
    await situate(api.db, {
      module: 'brand-new',
      head: COMMITS.moving,
      situation: 'settling',
      line: 'source 4f2c1a9 · not inspected yet',
      reason: 'new',
    });
    await eventually(async () => expect(await linesOf('moving')).toContain('brand-new'), WITHIN);
    await api.db.query(`delete from module where name = 'brand-new'`);
    await eventually(async () => expect(await linesOf('moving')).not.toContain('brand-new'), WITHIN);
    expect(complaints).toEqual([]);
  });

  test('says when it is not connected any more', async () => {
    await aDay(api.db);
    await logIn();
    await context.setOffline(true);
    await api.close();
    await page.waitForSelector('#connection[data-state="lost"]');
    api = await startApi();
  });

  test('makes text of whatever modules and machines say', async () => {
    const attacks = [
      '<img src=x onerror="alert(1)">',
      '<script>alert(2)</script>',
      '"><svg onload=alert(3)>',
      'javascript:alert(4)',
      '</li></ul><h1>owned</h1>',
      '{{constructor.constructor("alert(5)")()}}',
    ];
    for (const [at, attack] of attacks.entries()) {
      const module = `m${at}`;
      await situate(api.db, {
        module,
        head: COMMITS.failed,
        situation: 'failed',
        verdict: 'failed',
        line: `failed · ${attack}`,
        reason: `because ${attack}`,
        needsPerson: true,
      });
    }
    const [attack = ''] = attacks;
    await api.db.query(
      `insert into node (name, broker_user, last_beat_at, refused_reason, refused_since) values ('alpha', 'node-alpha', now(), $1, now())`,
      [attack],
    );
    await api.db.query(
      `insert into builder (name, platforms, public_key, version, last_beat_at, busy) values ($1, array[$1], 'k', '1', now(), '[]')`,
      [attack],
    );
    await api.db.query(
      `insert into placement (module, node, failing_resources, failing_count, failing_since, failing_message) values ('m0', 'alpha', array[$1], 4, now(), $1)`,
      [attack],
    );
    await logIn();
    await page.waitForSelector('#module-m5');
    for (const [at, text] of attacks.entries()) expect(await page.textContent(`#module-m${at} .line`)).toBe(`failed · ${text}`);
    expect(await page.locator('main img, main script, main svg, .beside img, h1:has-text("owned")').count()).toBe(0);
    expect(complaints).toEqual([]);
  });

  test('would not run a script that got into it', async () => {
    await logIn();
    await page.evaluate(`document.body.insertAdjacentHTML('beforeend', '<img src="data:," onerror="document.title = 1">')`);
    await eventually(() => expect(complaints.join()).toMatch(/Content Security Policy/), WITHIN);
    expect(await page.title()).not.toBe('1');
  });

  test.each(['light', 'dark'] as const)('can be read in a %s surrounding, on a wide and on a narrow screen', async (colorScheme) => {
    await aDay(api.db);
    await page.emulateMedia({ colorScheme });
    await logIn();
    for (const width of [1_200, 360]) {
      await page.setViewportSize({ width, height: 900 });
      expect(await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')).toBe(0);
      expect(await page.evaluate(poorContrasts)).toEqual([]);
      const { TALLY_PICTURES: pictures } = process.env;
      if (pictures) await picture(join(pictures, `board-${colorScheme}-${width}.png`));
    }
  });

  test('is read by a keyboard and a screen reader', async () => {
    await aDay(api.db);
    await logIn();
    expect(await page.evaluate('document.documentElement.lang')).toBe('en');
    expect(await page.getByRole('heading', { name: 'Needs you' }).count()).toBe(1);
    expect(await page.getByRole('region', { name: 'Moving' }).getByRole('listitem').count()).toBe(1);
    await page.keyboard.press('Tab');
    expect(await page.evaluate('document.activeElement.textContent')).toBe('To the modules');
    const link = page.getByRole('link', { name: 'the run of meshboard in the Temporal UI' });
    await link.focus();
    await situate(api.db, { module: 'other', head: COMMITS.moving, situation: 'settling', line: 'x', reason: 'y' });
    await eventually(async () => expect(await linesOf('moving')).toContain('other'), WITHIN);
    expect(await page.evaluate('document.activeElement.getAttribute("aria-label")')).toBe('the run of meshboard in the Temporal UI');
  });
});

async function picture(path: string): Promise<void> {
  mkdirSync(dirname(path), { recursive: true });
  await page.screenshot({ path, fullPage: true });
}

/** Texts whose contrast with what is behind them is less than 4.5, by WCAG 2. */
const poorContrasts = `(() => {
  const channel = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const luminance = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const ground = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const poor = [];
  for (const node of document.querySelectorAll('body *')) {
    const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim() !== '');
    if (!own || node.offsetParent === null) continue;
    const [light, dark] = [luminance(parse(getComputedStyle(node).color)), luminance(ground(node))].sort((a, b) => b - a);
    if ((light + 0.05) / (dark + 0.05) < 4.5) poor.push(node.className + ': ' + node.textContent.trim().slice(0, 40));
  }
  return poor;
})()`;
