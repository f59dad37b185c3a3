'use strict';

// Everything that comes from the simulator is set as text: names are the tenants' to choose.

const EVERY = 1000; // milliseconds between two queries
const KEEP = 300; // requests that are kept

const byId = (id) => document.getElementById(id);
const state = { last: 0, requests: [], paused: false, filter: '', open: new Map(), refiltered: false, seen: 0 };

function el(name, options, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(options || {})) {
    if (key === 'text') node.append(...breakable(String(value)));
    else if (key === 'class') node.className = value;
    else if (value !== null && value !== undefined) node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
}

// breakable returns a text as nodes between which a line may end: after separators, and in what is longer than any word.
function breakable(text) {
  const parts = text.match(/[\p{L}\p{N}]{1,24}[/?&=_]*|[^\p{L}\p{N}]+/gu) || [];
  return parts.flatMap((part, i) => i === 0 ? [part] : /^[\p{L}\p{N}]/u.test(part) && /[\p{L}\p{N}/?&=_]$/u.test(parts[i - 1]) ? [el('wbr'), part] : [part]);
}

const badge = (text, kind) => el('span', { class: 'badge ' + (kind || ''), text });
const words = (text) => text.toLowerCase().replaceAll('_', ' ');
const plural = (n, one) => n.toLocaleString('en') + ' ' + one + (n === 1 ? '' : 's');

function kindOfStatus(status) {
  if (status === 'POWERED_ON') return 'ok';
  if (status === 'FAILED_CREATION') return 'bad';
  if (status === 'UNRESOLVED' || status === 'MIXED') return 'warn';
  return '';
}

function kindOfTask(status) {
  if (status === 'success') return 'ok';
  if (status === 'running' || status === 'queued') return 'warn';
  return 'bad';
}

function kindOfAnswer(status) {
  if (status === 0 || status >= 500) return 'bad';
  return status >= 400 ? 'warn' : 'ok';
}

// replace puts new children into a node, but only when they differ: what a person reads or selects stays.
function replace(node, children) {
  const fresh = el(node.tagName.toLowerCase(), {}, ...children);
  if (fresh.innerHTML !== node.innerHTML) node.replaceChildren(...fresh.childNodes);
}

function showHeader(o) {
  byId('site').textContent = o.url + ' · API ' + [...new Set(o.cells.map((c) => c.version))].join(', ');
  const clock = byId('clock');
  clock.dateTime = o.clock.now;
  clock.textContent = o.clock.now.slice(0, 19).replace('T', ' ');
  byId('rate').textContent = o.clock.rate === 0 ? 'stands still' : o.clock.rate === 1 ? '' : o.clock.rate + ' times as fast';
  const c = o.counts;
  replace(byId('counts'), [
    ['VMs', c.vms], ['powered on', c.vmsOn], ['vApps', c.vApps], ['disks', c.disks], ['tasks running', c.tasksRunning],
    ['sessions', c.sessions], ['requests', o.last], ['fault rules', c.faults],
  ].map(([name, n]) => el('div', {}, el('dt', { text: name }), el('dd', { text: n.toLocaleString('en') }))));
  const several = o.cells.length > 1 || o.cells.some((x) => !x.up || x.maintenance);
  replace(byId('cells'), several ? o.cells.map((x) => badge(
    'cell ' + x.number + ': ' + (!x.up ? 'down' : x.maintenance ? 'in maintenance' : 'up, API ' + x.version),
    !x.up ? 'bad' : x.maintenance ? 'warn' : 'ok')) : []);
}

function vmRow(vm) {
  const guest = vm.guest === '' ? '' : vm.guest === 'up' || vm.guest === 'booting' ? vm.guest : 'does not come up: ' + vm.guest;
  return el('tr', {},
    el('td', { class: 'name', text: vm.name }),
    el('td', { class: 'tag' }, badge(words(vm.status), kindOfStatus(vm.status)), vm.busy ? badge('busy', 'warn') : ''),
    el('td', { class: 'number', text: vm.cpus + ' CPU · ' + (vm.memoryMiB / 1024).toLocaleString('en', { maximumFractionDigits: 1 }) + ' GiB' }),
    el('td', {}, ...vm.addresses.map((a) => el('div', { class: 'address', text: a }))),
    el('td', { text: guest }));
}

// table makes a table. Where it is narrow, each cell shows the heading of its column.
function table(names, rows, ...before) {
  for (const row of rows) [...row.children].forEach((cell, i) => cell.setAttribute('data-heading', names[i]));
  return el('table', {}, ...before, el('thead', {}, el('tr', {}, ...names.map((n) => el('th', { scope: 'col', text: n })))), el('tbody', {}, ...rows));
}

function vAppNode(v, open) {
  const details = el('details', { 'data-id': v.id },
    el('summary', {},
      el('span', { class: 'grow' }, el('span', { class: 'name', text: v.name }), ' ', el('span', { class: 'sub', text: v.org + ' / ' + v.vdc })),
      el('span', { class: 'sub', text: plural(v.count, 'VM') }),
      badge(words(v.status), kindOfStatus(v.status)), v.busy ? badge('busy', 'warn') : ''));
  if (v.vms.length > 0) {
    details.append(table(['VM', 'State', 'Size', 'Addresses', 'Guest'], v.vms.map(vmRow)));
  } else {
    details.append(el('p', { class: 'empty', text: 'No VMs.' }));
  }
  if (v.moreVMs > 0) details.append(el('p', { class: 'sub', text: 'and ' + plural(v.moreVMs, 'VM') + ' more: filter to see them' }));
  if (open) details.open = true;
  return details;
}

// fold shows items that a person can open and close: what is open stays so, and what has the focus keeps it.
function fold(box, items, node, empty) {
  if (!state.refiltered) for (const d of box.querySelectorAll('details')) state.open.set(d.dataset.id, d.open);
  const within = document.activeElement && box.contains(document.activeElement) ? document.activeElement.closest('details') : null;
  const focused = within ? within.dataset.id : null;
  const few = items.length <= 8;
  const nodes = items.map((v) => node(v, state.open.has(v.id) ? state.open.get(v.id) : few || state.filter !== ''));
  if (nodes.length === 0) nodes.push(el('p', { class: 'empty', text: empty }));
  replace(box, nodes);
  if (focused) {
    for (const d of box.querySelectorAll('details')) if (d.dataset.id === focused) d.querySelector('summary').focus();
  }
}

function kindOfHealth(health) {
  if (health === 'UP') return 'ok';
  if (health === 'DOWN') return 'bad';
  return health === 'DISABLED' ? '' : 'warn';
}

const healthBadge = (health) => health === '' ? '' : badge(words(health), kindOfHealth(health));

function membersCell(pool) {
  const cell = el('td', {}, ...pool.members.map((m) => el('div', {}, el('span', { class: 'address', text: m.address }), ' ', healthBadge(m.health))));
  if (pool.more > 0) cell.append(el('div', { class: 'sub', text: 'and ' + plural(pool.more, 'member') + ' more' }));
  return cell;
}

function serviceRow(vs) {
  return el('tr', {},
    el('td', { class: 'first' }, el('span', { class: 'name', text: vs.name }), el('div', { class: 'sub address', text: vs.address })),
    el('td', { class: 'tag' }, healthBadge(vs.health)),
    el('td', {}, el('span', { text: vs.pool.name }), ' ', healthBadge(vs.pool.name === '' ? '' : vs.pool.health)),
    membersCell(vs.pool));
}

const lone = (pool) => ({ name: 'no virtual service', address: '', health: '', pool });

function gatewayNode(g, open) {
  const details = el('details', { 'data-id': g.id },
    el('summary', {},
      el('span', { class: 'grow' }, el('span', { class: 'name', text: g.name }), ' ', el('span', { class: 'sub', text: g.org + ' / ' + g.vdc })),
      el('span', { class: 'sub', text: plural(g.services.length + g.more, 'virtual service') + ', ' + plural(g.rules, 'NAT rule') }),
      g.balancer ? '' : badge('no load balancer', 'warn'), g.busy ? badge('busy', 'warn') : ''));
  const rows = g.services.concat(g.unused.map(lone));
  if (rows.length > 0) {
    details.append(table(['Virtual service', 'Health', 'Pool', 'Members'], rows.map(serviceRow)));
  }
  if (g.more > 0) details.append(el('p', { class: 'sub', text: 'and ' + plural(g.more, 'virtual service') + ' more: filter to see them' }));
  details.append(el('p', { class: 'sub', text: 'Addresses in use: ' + (g.used.length > 0 ? g.used.map(words).join(', ') : 'none') }));
  if (open) details.open = true;
  return details;
}

const nothing = () => state.filter ? 'Nothing has that in its name.' : 'None.';

function listTable(caption, names, rows) {
  return rows.length === 0 ? '' : table(names, rows, el('caption', { text: caption }));
}

const cells = (...texts) => el('tr', {}, ...texts.map((t, i) => el('td', { class: i === 0 ? 'name' : '', text: t })));

function showNetworks(o) {
  fold(byId('gateways'), o.gateways, gatewayNode, nothing());
  const tables = [
    listTable('Networks', ['Network', 'Subnet', 'Pool in use', 'Edge gateway', 'VDC'], o.networks.map((n) => cells(
      n.name, n.subnet + ' ' + words(n.type), n.used + ' of ' + n.pool, n.gateway, n.org + ' / ' + n.vdc))),
    listTable('IP Spaces', ['IP Space', 'Type', 'Floating IPs', 'Allocations'], o.spaces.map((s) => cells(
      s.name, words(s.type), s.allocated + ' of ' + s.total, s.allocations.join(', ')))),
    listTable('Entities', ['Entity', 'Type', 'State', 'Phase', 'Organization'], o.entities.map((e) => cells(
      e.name, e.type.replace('urn:vcloud:type:', ''), words(e.state), e.phase, e.org))),
  ].filter((t) => t !== '');
  replace(byId('networks'), tables.length > 0 ? tables : [el('p', { class: 'empty', text: nothing() })]);
  const more = byId('more-networks');
  more.hidden = o.moreOfNetworks === 0;
  more.textContent = 'and ' + o.moreOfNetworks.toLocaleString('en') + ' more: filter to see them';
}

function showInventory(o) {
  fold(byId('vapps'), o.vApps, vAppNode,
    state.filter ? 'Nothing has that in its name.' : 'Nothing yet: what clients create is shown here.');
  const more = byId('more-vapps');
  more.hidden = o.moreVApps === 0;
  more.textContent = 'and ' + plural(o.moreVApps, 'vApp') + ' more: filter to see them';
}

function taskNode(t) {
  const node = el('li', {},
    el('span', { class: 'what', text: t.operation.replace(/\([0-9a-f-]{36}\)$/, '') }), badge(t.status, kindOfTask(t.status)));
  if (t.status === 'running' || t.status === 'queued') {
    node.append(el('progress', { max: '100', value: String(t.progress), 'aria-label': 'Progress of ' + t.operation }));
  }
  node.append(el('span', { class: 'sub', text: 'by ' + t.user + ', begun ' + t.started.slice(11, 19) }));
  if (t.error) node.append(el('span', { class: 'error', text: t.error }));
  return node;
}

function showTasks(o) {
  replace(byId('tasks'), o.tasks.length > 0 ? o.tasks.map(taskNode) : [el('li', { class: 'empty', text: 'None yet.' })]);
}

function wanted(r) {
  switch (byId('show').value) {
    case 'writes': return r.method !== 'GET';
    case 'errors': return r.status === 0 || r.status >= 400;
    default: return true;
  }
}

function decoded(path) {
  try { return decodeURIComponent(path); } catch { return path; }
}

function requestRow(r) {
  return el('tr', { class: r.fresh ? 'fresh' : '' },
    el('td', { class: 'time', text: r.time.slice(11, 19) }),
    el('td', { class: 'tag' }, badge(r.status === 0 ? 'no answer' : String(r.status), kindOfAnswer(r.status))),
    el('td', { class: 'path', text: r.method + ' ' + decoded(r.path) }),
    el('td', { class: 'user', text: (r.user || '') + (r.cell > 1 ? ' (cell ' + r.cell + ')' : '') }));
}

function showRequests() {
  const rows = state.requests.filter(wanted).map(requestRow);
  replace(byId('requests'), rows.length > 0 ? rows : [el('tr', {}, el('td', { colspan: '4', class: 'empty', text: 'None yet.' }))]);
}

function showUnknown(o) {
  byId('unknown-section').hidden = o.unknown.length === 0;
  replace(byId('unknown'), o.unknown.map((op) => el('li', {}, el('code', { text: op }))));
}

function remember(o) {
  if (o.last < state.last) state.requests = []; // another simulator
  state.last = o.last;
  if (o.requests.length === 0) return;
  for (const r of state.requests) r.fresh = false;
  for (const r of o.requests) state.requests.unshift({ ...r, fresh: state.seen > 0 });
  state.requests.length = Math.min(state.requests.length, KEEP);
}

function problem(text) {
  const p = byId('problem');
  p.hidden = text === '';
  if (p.textContent !== text) p.textContent = text;
}

async function refresh() {
  const asked = state.filter;
  const answer = await fetch('/_sim/overview?since=' + state.last + '&filter=' + encodeURIComponent(state.filter), { cache: 'no-store' });
  if (!answer.ok) throw new Error((await answer.json()).error || answer.statusText);
  const o = await answer.json();
  if (asked !== state.filter) return; // a newer query is under way
  remember(o);
  showHeader(o);
  showInventory(o);
  showNetworks(o);
  state.refiltered = false;
  showTasks(o);
  showRequests();
  showUnknown(o);
  state.seen++;
}

let timer = 0;
async function round() {
  clearTimeout(timer);
  if (!state.paused && !document.hidden) {
    try {
      await refresh();
      problem('');
    } catch (e) {
      problem('The simulator does not answer (' + e.message + '). What is shown is old; trying again.');
    }
  }
  clearTimeout(timer);
  timer = setTimeout(round, EVERY);
}

byId('pause').addEventListener('click', () => {
  state.paused = !state.paused;
  byId('pause').setAttribute('aria-pressed', String(state.paused));
  byId('pause').textContent = state.paused ? 'Paused' : 'Pause';
  round();
});
byId('filter').addEventListener('input', () => { state.filter = byId('filter').value.trim(); state.open.clear(); state.refiltered = true; round(); });
byId('show').addEventListener('change', showRequests);
document.addEventListener('visibilitychange', round);
round();
