// The mesh: a cell for each rank, and what goes along each axis.

/** Bytes and time of all layers by axis, and by kind of collective there. */
function sumAxes() {
  const sums = plan.axes.map(() => ({bytes: 0, ns: 0, kinds: new Map()}));
  plan.layers.forEach((_, layer) => {
    for (const op of getOps(layer))
      for (const sent of op.sent ?? [])
        for (const axis of findAxes(sent.axes.join(' '))) {
          const sum = sums[axis];
          sum.bytes += sent.bytes;
          sum.ns += sent.ns;
          sum.kinds.set(sent.kind, (sum.kinds.get(sent.kind) ?? 0) + sent.bytes);
        }
  });
  return sums;
}

const kMostRanks = 256, kCell = 46;

/** Where a rank is along an axis: ranks count the last axis first. */
const findPosition = (rank, axis) =>
  Math.floor(rank / plan.axes.slice(axis + 1).reduce((ranks, {size}) => ranks * size, 1)) % plan.axes[axis].size;

/** The last axis goes to the right, all others down, so that ranks are in their order. */
function drawMesh() {
  const sizes = plan.axes.map(axis => axis.size), columns = sizes.at(-1) ?? 1, ranks = sizes.reduce((a, b) => a * b, 1);
  if (ranks > kMostRanks)
    return make('p', {class: 'soft', text: `${ranks} ranks: ${plan.axes.map(axis => `${axis.name}=${axis.size}`).join(' x ')}`});
  const rows = ranks / columns, cell = columns > 16 ? 28 : kCell;
  const svg = make('svg', {width: columns * cell + 8, height: rows * cell + 8, role: 'img',
    'aria-label': `${ranks} ranks, ${plan.axes.map(axis => `${axis.name}=${axis.size}`).join(', ')}`});
  for (let rank = 0; rank < ranks; ++rank) {
    const x = rank % columns * cell + 4, y = Math.floor(rank / columns) * cell + 4;
    const position = plan.axes.map((axis, number) => `${axis.name} ${findPosition(rank, number)}`);
    svg.append(make('g', {class: 'rank', 'data-rank': rank, onmousemove: event => showTip(event, `rank ${rank}: ${position.join(', ')}`), onmouseleave: hideTip},
      make('rect', {x, y, width: cell - 6, height: cell - 6, rx: 5}),
      make('text', {x: x + (cell - 6) / 2, y: y + (cell - 6) / 2 + 4, 'text-anchor': 'middle', text: rank})));
  }
  return make('div', {class: 'scroll'}, svg);
}

/** Ranks that rank 0 meets along an axis. */
function markGroup(axes) {
  for (const rank of document.querySelectorAll('#mesh .rank')) {
    const number = Number(rank.dataset.rank);
    const meets = axes.length > 0 && plan.axes.every((_, axis) => axes.includes(axis) || findPosition(number, axis) === 0);
    rank.classList.toggle('chosen', meets);
  }
}

views.push({
  draw() {
    const sums = sumAxes(), rows = plan.axes.map((axis, number) => ({axis, number, ...sums[number], attributes: {tabindex: 0, 'data-axis': axis.name,
      onmouseenter: () => markGroup([number]), onmouseleave: () => markGroup([]), onfocus: () => markGroup([number]), onblur: () => markGroup([])}}));
    const kinds = row => [...row.kinds].map(([kind, bytes]) => `${kind} ${formatBytes(bytes)}`).join(', ') || 'nothing';
    fill(document.getElementById('mesh'), drawMesh(), makeTable('what a rank sends along each axis', [
      {head: 'axis', text: row => make('span', {class: 'stripe', style: `background:${axisColor(row.number)}`, text: row.axis.name})},
      {head: 'size', number: true, text: row => String(row.axis.size), key: row => row.axis.size},
      {head: 'link', number: true, text: row => `${row.axis.bytes_per_ns.toPrecision(3)} GB/s`, key: row => row.axis.bytes_per_ns},
      {head: plan.schedule ? 'all stages send' : 'a rank sends', number: true, text: row => formatBytes(row.bytes), key: row => row.bytes},
      {head: 'time', number: true, text: row => formatTime(row.ns), key: row => row.ns},
      {head: 'by', text: kinds},
    ], rows));
  },
  choose(choice) {
    const ops = !choice ? [] : choice.op === null ? getOps(choice.layer) : [getOps(choice.layer)[choice.op]];
    markGroup([...new Set(ops.flatMap(op => (op.sent ?? []).flatMap(sent => findAxes(sent.axes.join(' ')))))]);
  },
});
