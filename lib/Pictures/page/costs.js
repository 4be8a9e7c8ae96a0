// What takes the time of a rank: collectives with the best that could be done otherwise, and computation by kind of op.

/** Equal collectives of nodes whose names differ in numbers alone. */
function groupCollectives() {
  const groups = new Map();
  plan.layers.forEach((_, layer) => getOps(layer).forEach((op, number) => {
    for (const sent of op.sent ?? []) {
      const node = op.node.replace(/\d+/g, '*'), key = `${node} ${sent.kind} ${sent.axes}`;
      if (!groups.has(key)) groups.set(key, {node, sent, layer, number, count: 0, bytes: 0, ns: 0});
      const group = groups.get(key);
      ++group.count;
      group.bytes += sent.bytes;
      group.ns += sent.ns;
    }
  }));
  return [...groups.values()].sort((a, b) => b.ns - a.ns || b.bytes - a.bytes);
}

function groupOps() {
  const groups = new Map();
  plan.layers.forEach((_, layer) => {
    for (const op of getOps(layer)) {
      if (op.sent?.length || op.ns === 0) continue;
      if (!groups.has(op.op)) groups.set(op.op, {op: op.op, count: 0, ns: 0, flops: 0});
      const group = groups.get(op.op);
      ++group.count;
      group.ns += op.ns;
      group.flops += op.flops;
    }
  });
  return [...groups.values()].sort((a, b) => b.ns - a.ns);
}

views.push({
  draw() {
    const collectives = groupCollectives(), ops = groupOps();
    const next = row => row.sent.next_best;
    fill(document.getElementById('costs'), collectives.length ? makeTable('collectives, the longest first', [
      {head: 'at', text: row => make('button', {text: row.node || 'no node', onclick: () => choose(row.layer, row.number)}), key: row => row.node},
      {head: 'collective', text: row => `${row.sent.kind} over ${row.sent.axes.join(', ')}`, key: row => row.sent.kind},
      {head: 'count', number: true, text: row => String(row.count), key: row => row.count},
      {head: 'bytes', number: true, text: row => formatBytes(row.bytes), key: row => row.bytes},
      {head: 'time', number: true, text: row => formatTime(row.ns), key: row => row.ns},
      {head: 'what for', text: row => row.sent.cause},
      {head: 'next best', text: row => next(row) ? `${next(row).sharding}: ${formatBytes(next(row).bytes)} more${next(row).ns ? ', ' + formatTime(next(row).ns) + ' more' : ''}` : 'there is no other'},
    ], collectives) : make('p', {text: 'Nothing is sent.'}),
    make('h2', {text: 'Computation'}), makeTable('computation by kind of op, the longest first', [
      {head: 'op', text: row => row.op, key: row => row.op},
      {head: 'count', number: true, text: row => String(row.count), key: row => row.count},
      {head: 'time', number: true, text: row => formatTime(row.ns), key: row => row.ns},
      {head: 'work', number: true, text: row => formatFlops(row.flops), key: row => row.flops},
    ], ops));
  },
});
