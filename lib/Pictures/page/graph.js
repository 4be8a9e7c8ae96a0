// The graph: layers in the order of the program, runs of equal ones as one row, each opened into its ops.

/** Runs of layers whose kinds repeat: {first, period, repeats}. */
function findRuns(kinds) {
  const runs = [], longest = 24;
  for (let first = 0; first < kinds.length;) {
    let best = {first, period: 1, repeats: 1};
    for (let period = 1; period <= longest && first + 2 * period <= kinds.length; ++period) {
      let end = first + period;
      while (end < kinds.length && kinds[end] === kinds[end - period]) ++end;
      const repeats = Math.floor((end - first) / period);
      if (repeats > 1 && period * repeats > best.period * best.repeats) best = {first, period, repeats};
    }
    runs.push(best);
    first += best.period * best.repeats;
  }
  return runs;
}

/** `layers.3` and `layers.14` are `layers.{3..14}`. */
function joinTitles(first, last) {
  const a = first.split(/(\d+)/), b = last.split(/(\d+)/);
  if (first === last || a.length !== b.length) return first;
  return a.map((part, index) => part === b[index] ? part : `{${part}..${b[index]}}`).join('');
}

function sumLayer(layer) {
  const sum = {ops: 0, sends: 0, bytes: 0, ns: 0};
  for (const op of getOps(layer)) {
    ++sum.ops;
    sum.ns += op.ns;
    for (const sent of op.sent ?? []) { ++sum.sends; sum.bytes += sent.bytes; }
  }
  return sum;
}

/** Depth by depth; among equals where what they read is, on average. */
function placeOps(ops) {
  const depths = [], rows = [];
  ops.forEach((op, number) => {
    depths[number] = op.reads.reduce((most, read) => Math.max(most, depths[read] + 1), 0);
    (rows[depths[number]] ??= []).push(number);
  });
  const columns = [];
  for (const row of rows) {
    const wish = number => ops[number].reads.length
      ? ops[number].reads.reduce((sum, read) => sum + columns[read], 0) / ops[number].reads.length : 0;
    row.sort((a, b) => wish(a) - wish(b) || a - b);
    let free = 0;
    for (const number of row) { columns[number] = Math.max(free, Math.round(wish(number))); free = columns[number] + 1; }
  }
  return ops.map((op, number) => ({x: columns[number], y: depths[number]}));
}

const kOpWidth = 168, kOpHeight = 40, kOpStepX = 184, kOpStepY = 62;

function drawOps(layer) {
  const ops = getOps(layer), places = placeOps(ops);
  const width = (Math.max(...places.map(place => place.x)) + 1) * kOpStepX, height = (Math.max(...places.map(place => place.y)) + 1) * kOpStepY;
  const svg = make('svg', {width, height, viewBox: `-4 -4 ${width} ${height}`, role: 'group', 'aria-label': `ops of ${plan.layers[layer].title}`});
  ops.forEach((op, number) => op.reads.forEach(read => {
    const from = {x: places[read].x * kOpStepX + kOpWidth / 2, y: places[read].y * kOpStepY + kOpHeight};
    const to = {x: places[number].x * kOpStepX + kOpWidth / 2, y: places[number].y * kOpStepY}, middle = (from.y + to.y) / 2;
    svg.append(make('path', {class: 'edge', 'data-from': read, 'data-to': number,
      d: `M${from.x} ${from.y}C${from.x} ${middle} ${to.x} ${middle} ${to.x} ${to.y}`}));
  }));
  const groups = ops.map((op, number) => drawOp(op, places[number], layer, number));
  svg.append(...groups);
  svg.addEventListener('keydown', event => moveFocus(event, groups, ops, places));
  return svg;
}

function describeOp(op) {
  const sent = (op.sent ?? []).map(one => `, sends ${formatBytes(one.bytes)} by ${one.kind} over ${one.axes.join(', ')}`).join('');
  return `${op.op} ${op.node}: ${op.whole ?? op.type}, ${op.sharding ?? 'no sharding of its own'}, ${formatTime(op.ns)}${sent}`;
}

function drawOp(op, place, layer, number) {
  const x = place.x * kOpStepX, y = place.y * kOpStepY, axes = findAxes(op.sharding ?? '');
  const name = op.node.replace(/\)+$/, '').split(/[/(]/).pop().slice(-24), stripe = axes.length ? kOpHeight / axes.length : 0;
  const group = make('g', {class: 'op', tabindex: number ? -1 : 0, role: 'button', 'aria-label': describeOp(op), 'data-op': number,
    onclick: () => choose(layer, number), onfocus: () => choose(layer, number), onmouseleave: hideTip,
    onmousemove: event => showTip(event, describeOp(op)),
    onkeydown: event => { if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); choose(layer, number); } }},
    make('rect', {class: 'box', x, y, width: kOpWidth, height: kOpHeight, rx: 5}),
    ...axes.map((axis, index) => make('rect', {x, y: y + index * stripe, width: 8, height: stripe, style: `fill:${axisColor(axis)}`})),
    make('text', {x: x + 14, y: y + 16, 'font-weight': 600, text: op.op.replace(/^(nn|spmd)\./, '')}),
    make('text', {x: x + 14, y: y + 32, class: 'soft', text: name}));
  if (op.sent?.length)
    group.append(make('circle', {class: 'sends', cx: x + kOpWidth - 12, cy: y + 13, r: 6}));
  return group;
}

/** Up to what it reads, down to who reads it, left and right among those of one depth. */
function moveFocus(event, groups, ops, places) {
  const number = Number(event.target.dataset?.op);
  if (Number.isNaN(number)) return;
  const beside = step => groups.findIndex((group, other) => places[other].y === places[number].y &&
    places.filter((place, index) => place.y === places[number].y && (place.x - places[number].x) * step > 0 &&
      (place.x - places[other].x) * step < 0).length === 0 && (places[other].x - places[number].x) * step > 0);
  const next = {ArrowUp: () => ops[number].reads.at(-1) ?? -1, ArrowDown: () => ops.findIndex(op => op.reads.includes(number)),
    ArrowLeft: () => beside(-1), ArrowRight: () => beside(1)}[event.key]?.();
  if (next === undefined) return;
  event.preventDefault();
  if (next >= 0) groups[next].focus();
}

/** Opens the row of a layer, or closes it; what is in it is drawn when it is seen first. */
function toggle(row) {
  const [button, ops] = row.children, opens = ops.hidden;
  ops.hidden = !opens;
  button.setAttribute('aria-expanded', String(opens));
  if (opens && !ops.firstChild) ops.append(drawOps(Number(button.dataset.layer)));
}

function drawRun(run) {
  const rows = [];
  for (let offset = 0; offset < run.period; ++offset) {
    const layer = run.first + offset, last = layer + (run.repeats - 1) * run.period, sum = sumLayer(layer);
    const ops = make('div', {class: 'ops', hidden: true});
    const button = make('button', {'aria-expanded': 'false', 'data-layer': layer, onclick: () => {
      toggle(button.parentElement);
      choose(layer, null);
    }}, make('span', {text: joinTitles(plan.layers[layer].title, plan.layers[last].title) || 'ops without a name'}),
      run.repeats > 1 ? make('span', {class: 'times', text: `x ${run.repeats}`}) : null,
      make('span', {class: 'soft', text: `${count(sum.ops, 'op')}, ${formatTime(sum.ns)}`}),
      sum.sends ? make('span', {class: 'soft', text: `${count(sum.sends, 'collective')}, ${formatBytes(sum.bytes)}`}) : null,
      makeStripes(getOps(layer).map(op => op.sharding ?? '').join(' ')));
    rows.push(make('div', {class: 'layer', 'data-layers': `${layer}..${last}`}, button, ops));
  }
  return rows;
}

/** Rows below the name of their part, where there are several; what is many updates of weights is closed at first. */
function groupRows(rows) {
  const groups = [];
  for (const row of rows) {
    const layer = plan.layers[row.dataset.layers.split('..')[0]], isUpdate = layer.title.startsWith('update(');
    const name = (plan.parts.length > 1 ? plan.parts[layer.part] : '') + (isUpdate ? ' updates' : '');
    if (groups.at(-1)?.name === name) groups.at(-1).rows.push(row); else groups.push({name, isUpdate, rows: [row]});
  }
  return groups.flatMap(({name, isUpdate, rows: own}) => name === '' ? own : [
    make('details', {class: 'part', open: !isUpdate || own.length < 4}, make('summary', {text: `${name} (${own.length})`}), ...own)]);
}

views.push({
  draw() {
    const rows = findRuns(plan.layers.map(layer => layer.kind)).flatMap(drawRun);
    document.getElementById('graph').replaceChildren(...groupRows(rows));
    // The one that takes longest, all repeats together, is what people look for.
    const weigh = row => { const [first, last] = row.dataset.layers.split('..').map(Number); return sumLayer(first).ns * (1 + last - first); };
    if (rows.length) toggle(rows.reduce((best, row) => weigh(row) > weigh(best) ? row : best));
  },
  choose(choice) {
    for (const group of document.querySelectorAll('#graph .op'))
      group.classList.toggle('chosen', choice !== null && Number(group.dataset.op) === choice.op &&
        Number(group.closest('.layer').querySelector('button').dataset.layer) === choice.layer);
    for (const edge of document.querySelectorAll('#graph .edge'))
      edge.classList.toggle('chosen', choice !== null && choice.op !== null &&
        [edge.dataset.from, edge.dataset.to].includes(String(choice.op)) &&
        Number(edge.closest('.layer').querySelector('button').dataset.layer) === choice.layer);
  },
});

// What is known of what is chosen: as `cleave explain` says it.
views.push({
  draw() { this.choose(null); },
  choose(choice) {
    const details = document.getElementById('details');
    if (!choice) return fill(details, make('p', {class: 'soft', text: 'Choose a layer, then an op: why it is sharded as it is, what it sends and what that is for.'}));
    const layer = plan.layers[choice.layer];
    if (choice.op === null) {
      const sum = sumLayer(choice.layer);
      return fill(details, make('h2', {text: layer.title}), make('p', {text: `${count(sum.ops, 'op')}, ${formatTime(sum.ns)} of a rank, ${count(sum.sends, 'collective')}, ${formatBytes(sum.bytes)} sent`}),
        make('p', {class: 'soft', text: layer.reads.length ? `reads from ${layer.reads.map(other => plan.layers[other].title).join(', ')}` : 'reads from no other layer'}));
    }
    const op = getOps(choice.layer)[choice.op];
    fill(details, make('h2', {text: op.op}), make('p', {text: op.node}), op.module ? make('p', {class: 'soft', text: `module ${op.module}`}) : null,
      make('p', {text: `${op.whole ? op.whole + ', ' : ''}on a rank ${op.type}`}), op.sharding ? make('p', {}, make('code', {text: op.sharding}), ' ', makeStripes(op.sharding)) : null,
      make('p', {class: 'soft', text: `${formatTime(op.ns)}, ${formatFlops(op.flops)}`}),
      op.given ? make('p', {class: 'soft', text: `reads ${op.given.join(', ')}`}) : null,
      op.why?.length ? make('pre', {text: op.why.map(line => plan.texts[line]).join('\n')}) : null,
      ...(op.sent ?? []).map(sent => make('p', {}, make('strong', {text: `${sent.kind} over ${sent.axes.join(', ')}`}),
        `: ${formatBytes(sent.bytes)} a rank, ${formatTime(sent.ns)}, in groups of ${sent.group}: ${sent.cause}.`,
        sent.next_best ? ` The next best choice costs ${formatBytes(sent.next_best.bytes)}${sent.next_best.ns ? ', ' + formatTime(sent.next_best.ns) : ''} more: ${sent.next_best.sharding}` : '')));
  },
});
