// The head of the page, and the choice among plans, of the scheme, and of nothing.

/** Of a rank whose report has no times: without a cluster only the page's own are known. */
const sumPlan = one => one.layers.reduce((sum, layer) => one.kinds[layer.kind].ops.reduce((ns, op) => ns + op.ns, sum), 0);

function getTotals(one) {
  const {report} = one, sent = Object.values(report.totals ?? {}).reduce((sum, total) => sum + total.wire_bytes_per_rank, 0);
  const time = report.time?.call_ns ?? (report.time ? report.time.compute_ns + report.time.communication_ns - (report.time.overlapped_ns ?? 0) : sumPlan(one));
  return {cluster: one.cluster, mesh: one.axes.map(axis => `${axis.name}=${axis.size}`).join(', '), time, sent, memory: report.peak_bytes_per_rank,
    stored: report.parameters?.bytes_per_rank ?? 0, flops: report.flops?.per_rank ?? 0};
}

const kTotals = [['mesh', 'mesh', text => text || 'one device'], ['cluster', 'machine', text => text], ['time', 'a call, as predicted', formatTime],
  ['sent', 'a rank sends', formatBytes], ['memory', 'a rank takes', formatBytes], ['stored', 'of that parameters', formatBytes], ['flops', 'a rank computes', formatFlops]];

/** Plans side by side, and where they differ in words. */
function drawTotals() {
  const totals = page.plans.map(getTotals);
  const rows = kTotals.map(([key, name, format]) => make('tr', {}, make('th', {scope: 'row', text: name}), ...totals.map(total => make('td', {text: format(total[key])}))));
  const head = page.plans.length > 1 ? make('thead', {}, make('tr', {}, make('td'), ...page.plans.map(one => make('th', {scope: 'col', text: one.name})))) : null;
  fill(document.getElementById('totals'), make('div', {class: 'scroll'}, make('table', {}, ...[make('caption', {class: 'hidden', text: 'what a plan takes'}), head, make('tbody', {}, ...rows)].filter(Boolean))),
    page.plans.length > 1 ? make('div', {}, make('h2', {text: 'Where they differ'}), page.differences.length ?
      make('ul', {}, ...page.differences.map(text => make('li', {text}))) : make('p', {text: 'They do the same.'})) : null,
    plan.report.replicated?.length ? make('p', {class: 'soft', text: `replicated: ${plan.report.replicated.map(one => `${one.op} ${one.node} (${one.reason})`).slice(0, 5).join('; ')}`}) : null);
}

function show(number) {
  plan = page.plans[number];
  chosen = null;
  for (const button of document.querySelectorAll('#plans button')) button.setAttribute('aria-pressed', String(Number(button.dataset.plan) === number));
  for (const view of views) view.draw();
}

function setScheme(scheme) {
  document.documentElement.dataset.scheme = scheme;
  document.getElementById('scheme').setAttribute('aria-pressed', String(scheme === 'dark'));
  scheduleView.paint();
  runView.paint();
}

document.title = `${page.model}: ${page.plans.map(one => one.name).join(' and ')}`;
document.querySelector('h1').textContent = page.model;
drawTotals();
if (page.plans.length > 1)
  document.getElementById('plans').append(...page.plans.map((one, number) => make('button', {'data-plan': number, text: one.name, onclick: () => show(number)})));
document.getElementById('scheme').addEventListener('click', () => setScheme(document.documentElement.dataset.scheme === 'dark' ? 'light' : 'dark'));
addEventListener('keydown', event => { if (event.key === 'Escape') { hideTip(); choose(null, null); } });
show(0);
setScheme(matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
