/**
 * Reads /api/v1/events: the whole status first, then the rows that change. Every value becomes text of the page
 * (textContent), never HTML; addresses are only those that the API made.
 */
'use strict';

const sections = { 'needs you': 'needs-you', moving: 'moving', held: 'held', 'in step': 'in-step' };

/** What is shown, by module. */
const modules = new Map();
let shown = null;

const byId = (id) => document.getElementById(id);

function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className !== '') made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

/** Times stand in UTC to the minute in every line; the reader's own clock shows them short. */
function withTimes(text) {
  const today = new Date().toDateString();
  return text.replace(/\d{4}-\d{2}-\d{2}T\d{2}:\d{2}Z/g, (found) => clock(new Date(found), today));
}

function clock(date, today = new Date().toDateString()) {
  const time = date.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', hour12: false });
  if (date.toDateString() === today) return time;
  return `${date.toLocaleDateString('en-GB', { day: 'numeric', month: 'short' })} ${time}`;
}

function moduleRow(row) {
  const item = element('li', 'row');
  item.id = `module-${row.module}`;
  item.dataset.situation = row.situation ?? 'not compared';
  item.append(element('h3', 'name', row.module), element('p', 'line', withTimes(row.line || row.headline)));
  if (row.urgency !== 'in step') item.append(element('p', 'reason', withTimes(row.reason)));
  if (row.cutOffAt !== null) item.append(element('p', 'reason', `cut off: its newest build came out the same, at ${clock(new Date(row.cutOffAt))}`));
  if (row.notReproducible) item.append(element('p', 'reason', 'not reproducible: built again with the same inputs it came out otherwise'));
  const edges = edgesOf(row);
  if (edges !== null) item.append(edges);
  if (row.remedy !== null) item.append(remedy(row.remedy));
  if (shown.workflows !== null) {
    const run = element('a', 'run', 'its run');
    run.href = `${shown.workflows}${encodeURIComponent(`module/${row.module}`)}`;
    run.rel = 'noreferrer';
    run.setAttribute('aria-label', `the run of ${row.module} in the Temporal UI`);
    item.append(run);
  }
  return item;
}

/** Its neighbours in the graph, each with the way to its row; null where it has none. */
function edgesOf(row) {
  const sides = [
    ['builds on', row.buildsOn],
    ['built on by', row.builtOnBy],
  ].filter(([, side]) => side.count > 0);
  if (sides.length === 0) return null;
  const line = element('p', 'edges');
  for (const [words, side] of sides) {
    const part = element('span', 'side', `${words} `);
    side.first.forEach((name, at) => {
      const link = element('a', '', name);
      link.href = `#${encodeURIComponent(name)}`;
      part.append(...(at === 0 ? [] : [', ']), link);
    });
    const rest = side.count - side.first.length;
    if (rest > 0) part.append(` and ${rest} more`);
    line.append(part);
  }
  return line;
}

function remedy(text) {
  const line = element('p', 'remedy', '→ ');
  line.append(element('code', '', text));
  return line;
}

/** Rows of things other than modules that need a person. */
function otherRow(name, text, help) {
  const item = element('li', 'row');
  item.append(element('h3', 'name', name), element('p', 'line', withTimes(text)), remedy(help));
  return item;
}

function showModules(changed) {
  const focused = document.activeElement?.closest('.row')?.id;
  const order = [...modules.values()].sort((a, b) => (a.since ?? '9').localeCompare(b.since ?? '9') || a.module.localeCompare(b.module));
  for (const [urgency, id] of Object.entries(sections)) {
    const rows = order.filter((row) => row.urgency === urgency).map(moduleRow);
    const others = urgency === 'needs you' ? otherRows() : [];
    const section = byId(id);
    section.hidden = rows.length + others.length === 0;
    section.querySelector('.rows').replaceChildren(...others, ...rows);
  }
  for (const name of changed) byId(`module-${name}`)?.classList.add('changed');
  byId('empty').hidden = modules.size > 0;
  // Whoever was at a row's link with the keyboard is there still.
  if (focused) byId(focused)?.querySelector('a')?.focus();
}

function otherRows() {
  return [
    ...shown.alarms.map((alarm) => otherRow(`mesh ${shown.summary.mesh}`, alarm.what, alarm.remedy)),
    ...shown.nodes.filter((node) => node.trouble !== null).map((node) => otherRow(node.node, node.trouble.reason, node.trouble.remedy)),
  ];
}

function card(name, presence, texts, isBad) {
  const item = element('li', 'card');
  item.dataset.presence = presence;
  item.dataset.bad = isBad ? 'yes' : 'no';
  item.append(element('h3', 'name', name), ...texts.map((text) => element('p', '', text)));
  return item;
}

function held(node) {
  if (node.placements === 0) return 'no modules';
  return `${node.applied} of ${node.placements} ${node.placements === 1 ? 'module' : 'modules'} applied`;
}

function showMachines() {
  const nodes = shown.nodes.map((node) => {
    const seen = node.presence === 'away' && node.lastBeatAt !== null ? `away since ${clock(new Date(node.lastBeatAt))}` : node.presence;
    return card(node.node, node.presence, [`${seen} · ${held(node)} · ${node.sending}`], node.trouble !== null);
  });
  byId('nodes')
    .querySelector('.cards')
    .replaceChildren(...(nodes.length > 0 ? nodes : [element('li', 'card', 'none yet')]));
  const builders = shown.builders.map((builder) => {
    const busy = builder.busy.map((one) => `${one.module ?? one.request}: ${one.step} since ${clock(new Date(one.since))}`);
    const seen = builder.presence === 'away' ? `away since ${clock(new Date(builder.lastBeatAt))}` : 'up';
    return card(
      builder.builder,
      builder.presence,
      [`${seen} · ${builder.platforms.join(', ')} · ${busy.length === 0 ? 'idle' : busy.join(', ')}`],
      false,
    );
  });
  byId('builders')
    .querySelector('.cards')
    .replaceChildren(...(builders.length > 0 ? builders : [element('li', 'card', 'none has been seen')]));
}

function showSummary() {
  const { mesh, modules: count, inStep, nodes, away, awaySince, notWorkedOut } = shown.summary;
  const since = awaySince === null ? '' : ` since ${clock(new Date(awaySince))}`;
  const parts = [`mesh ${mesh}`, `${count} modules, ${inStep} in step`, `${nodes} nodes${away > 0 ? `, ${away} away${since}` : ''}`];
  if (notWorkedOut > 0) parts.push(`${notWorkedOut} not worked out`);
  const text = parts.join(' · ');
  // Said again only when it is another: it is read aloud.
  if (byId('summary').textContent !== text) byId('summary').textContent = text;
  document.title = shown.inStep ? 'Tally: in step' : `Tally: ${count - inStep} of ${count} not in step`;
}

function show(changed) {
  byId('trouble').hidden = true;
  showSummary();
  showModules(changed);
  showMachines();
}

function connection(state, text) {
  byId('connection').dataset.state = state;
  byId('connection').textContent = text;
}

function trouble(text) {
  byId('trouble').textContent = text;
  byId('trouble').hidden = false;
}

/** An address that ends in #kiosk, as the Temporal UI has it, leads to that module's row. */
function showSought() {
  const sought = byId(`module-${decodeURIComponent(location.hash.slice(1))}`);
  if (sought === null) return;
  sought.scrollIntoView({ block: 'center' });
  // The mark fades by itself, and has to begin anew for a row that had it before.
  sought.classList.remove('changed');
  void sought.offsetWidth;
  sought.classList.add('changed');
}

window.addEventListener('hashchange', showSought);

const events = new EventSource('/api/v1/events');

events.addEventListener('status', (event) => {
  shown = JSON.parse(event.data);
  modules.clear();
  for (const row of shown.modules) modules.set(row.module, row);
  connection('live', 'live');
  show([]);
  showSought();
});

events.addEventListener('change', (event) => {
  const change = JSON.parse(event.data);
  shown = { ...shown, ...change };
  for (const name of change.removedModules) modules.delete(name);
  for (const row of change.modules) modules.set(row.module, row);
  show(change.modules.map((row) => row.module));
});

events.addEventListener('trouble', (event) => trouble(JSON.parse(event.data).error));

events.addEventListener('error', () => {
  connection('lost', 'not connected: what is shown may be old');
  // The stream comes back by itself unless it was refused: then the token is no longer good.
  if (events.readyState === EventSource.CLOSED) location.assign('/login');
});
