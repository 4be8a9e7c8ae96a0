// A run of a program next to what was predicted of it: layers one behind the other as they are predicted, below what each rank did.
const kDoings = [['computing', '--role0'], ['sending', '--role5'], ['waiting for others', '--role4']];

const runView = {
  ...timeline,
  describe: (row, [doing, layer, begin, end]) =>
    formatBar(`${row.isMeasured ? `rank ${row.rank}` : 'predicted'}: ${kDoings[doing][0]}, ${runView.nameLayer(layer)}`, begin, end),
  label: ([, layer]) => runView.nameLayer(layer),
  color: ([doing]) => kDoings[doing][1],
  nameLayer: layer => plan.layers[layer]?.title ?? 'of no layer',
  /** `[computing, sending]` of a layer, as predicted. */
  predict: layer => getOps(layer).reduce(([work, sent], op) => [work + op.ns, sent + (op.sent ?? []).reduce((sum, one) => sum + one.ns, 0)], [0, 0]),
  /** One row of what is predicted, which is of any rank, and those of the run: several of a rank that does several things at once. */
  takeRows(run) {
    let now = 0;
    const bars = [], add = (doing, layer, ns) => { if (ns > 0) bars.push([doing, layer, now, now += ns]); };
    plan.layers.forEach((_, layer) => { for (const op of getOps(layer)) { add(0, layer, op.ns); for (const sent of op.sent ?? []) add(1, layer, sent.ns); } });
    this.predicted = now;
    this.rows = [{name: 'predicted', bars}, ...run.rows.map((row, number) => ({rank: row.rank, isMeasured: true,
      name: run.rows[number - 1]?.rank === row.rank ? '' : `rank ${row.rank}`, bars: row.bars.map(([doing, layer, begin, length]) => [doing, layer, begin, begin + length])}))];
    this.end = Math.max(run.makespan, now);
  },
  draw() {
    const run = plan.run;
    this.canvas = null;
    if (!showSection('run-section', run)) return;
    this.takeRows(run);
    const ranks = new Set(run.rows.map(row => row.rank)).size, sums = run.layers.reduce((all, layer) => all.map((sum, doing) => sum + layer[doing]), [0, 0, 0]);
    const said = `a call took ${formatTime(run.makespan)}, predicted are ${formatTime(getTotals(plan).time)} on ${plan.cluster}`;
    this.makeCanvas(`a run on ${count(ranks, 'rank')}: ${said}`);
    const column = (head, value) => ({head, number: true, text: row => formatTime(value(row)), key: value});
    fill(document.getElementById('run'), make('p', {class: 'soft', text: `${said}; a rank computes for ${formatTime(sums[0])}, sends for ${formatTime(sums[1])} and waits for others for ${formatTime(sums[2])}, on average. The row of what is predicted has op behind op, as if no kernel had several and nothing were sent meanwhile`}),
      this.makeTools(), make('div', {class: 'legend'}, ...kDoings.map(([name, color]) => make('span', {}, make('i', {style: `background:var(${color})`}), name))),
      this.canvas, make('details', {}, make('summary', {text: 'as a table'}), makeTable('layers as predicted and as measured', [
        {head: 'layer', text: row => row.layer < plan.layers.length ? make('button', {class: 'tool', text: this.nameLayer(row.layer), onclick: () => choose(row.layer, null)}) : this.nameLayer(row.layer), key: row => row.layer},
        column('computing, predicted', row => row.predicted[0]), column('computing', row => row.took[0]),
        column('sending, predicted', row => row.predicted[1]), column('sending and waiting', row => row.took[1] + row.took[2]),
      ], run.layers.map((took, layer) => ({layer, took, predicted: layer < plan.layers.length ? this.predict(layer) : [0, 0]})).filter(row => row.layer < plan.layers.length || row.took.some(Boolean)))));
    this.paint();
  },
};
views.push(runView);
addEventListener('resize', () => runView.paint());
