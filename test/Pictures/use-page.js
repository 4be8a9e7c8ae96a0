// Uses a page as a person does, with pointer and keys, and says what is wrong with it: {checked, problems}.
const problems = [];
let checked = 0;
function check(holds, text) {
  ++checked;
  if (!holds) problems.push(text);
}

const parseColor = text => (text.match(/[\d.]+/g) ?? [0, 0, 0, 0]).map(Number);
/** Relative luminance, of WCAG 2.1. */
function getLuminance([r, g, b]) {
  const [x, y, z] = [r, g, b].map(c => c / 255).map(c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  return 0.2126 * x + 0.7152 * y + 0.0722 * z;
}
function getContrast(a, b) {
  const [x, y] = [getLuminance(a), getLuminance(b)];
  return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
}
function getGround(element) {
  for (let at = element; at; at = at.parentElement) {
    const box = at.matches?.('.op') ? getComputedStyle(at.querySelector('rect.box')).fill : getComputedStyle(at).backgroundColor;
    const color = parseColor(box);
    if (color.length < 4 || color[3] > 0.99) return color;
  }
  return [255, 255, 255];
}

/** All text that is seen: its size, and its contrast with what is behind it. */
function checkText() {
  for (const element of document.querySelectorAll('body *')) {
    const own = [...element.childNodes].some(node => node.nodeType === Node.TEXT_NODE && node.textContent.trim());
    if (!own || element.closest('script, noscript, style, #tip, .hidden, #used') || !element.getClientRects().length) continue;
    const style = getComputedStyle(element), color = parseColor(element instanceof SVGElement ? style.fill : style.color);
    const contrast = getContrast(color, getGround(element));
    // Words of a narrow window are broken, but not into letters.
    if (element.closest('td')) {
      const range = document.createRange(), words = element.textContent.trim();
      range.selectNodeContents(element);
      const lines = new Set([...range.getClientRects()].map(box => Math.round(box.top))).size;
      check(lines < 2 + words.length / 7, `'${words.slice(0, 30)}' is broken into ${lines} lines`);
    }
    check(contrast >= 4.5, `'${element.textContent.trim().slice(0, 30)}' has a contrast of ${contrast.toFixed(2)}`);
    check(parseFloat(style.fontSize) >= 12, `'${element.textContent.trim().slice(0, 30)}' is ${style.fontSize} high`);
  }
}

const move = (element, x = 0, y = 0) => {
  const box = element.getBoundingClientRect();
  element.dispatchEvent(new MouseEvent('mousemove', {bubbles: true, clientX: box.left + (x || box.width / 2), clientY: box.top + (y || box.height / 2)}));
  return tip.style.display === 'block' ? tip.textContent : '';
};
const press = (element, key) => element.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true, cancelable: true}));

function useGraph() {
  const ops = [...document.querySelectorAll('#graph .op')], layer = Number(ops[0]?.closest('.layer').querySelector('button').dataset.layer);
  check(ops.length > 0, 'no layer is open');
  if (!ops.length) return;
  check(ops.length === getOps(layer).length, `${ops.length} ops are drawn of ${getOps(layer).length}`);
  check(move(ops[0]).includes(getOps(layer)[0].node), 'the pointer does not show the node of an op');
  const reader = getOps(layer).findIndex(op => op.reads.length);
  ops[reader].focus();
  check(document.getElementById('details').textContent.includes(getOps(layer)[reader].node), 'details are not those of the op in focus');
  press(ops[reader], 'ArrowUp');
  check(document.activeElement === ops[getOps(layer)[reader].reads.at(-1)], 'the arrow up does not go to what an op reads');
  press(document.activeElement, 'ArrowDown');
  check(getOps(layer)[Number(document.activeElement.dataset.op)]?.reads.length > 0, 'the arrow down does not go to a reader');
  const why = getOps(layer).findIndex(op => op.why?.length);
  if (why >= 0) {
    ops[why].dispatchEvent(new MouseEvent('click', {bubbles: true}));
    check(document.querySelector('#details pre')?.textContent.includes(plan.texts[getOps(layer)[why].why[0]]), 'why is not told');
  }
  press(document.body, 'Escape');
  check(chosen === null && !document.querySelector('.op.chosen'), 'Escape leaves something chosen');
  for (const button of document.querySelectorAll('.layer > button')) check(button.textContent.trim().length > 3, 'a layer has no name');
  const sum = plan.layers.length, drawn = [...document.querySelectorAll('.layer')].reduce((total, row) => {
    const times = row.querySelector('.times');
    return total + (times ? Number(times.textContent.slice(2)) : 1);
  }, 0);
  check(drawn === sum, `rows stand for ${drawn} layers of ${sum}`);
}

function useOthers() {
  const ranks = plan.axes.reduce((product, axis) => product * axis.size, 1), cells = document.querySelectorAll('#mesh .rank');
  check(cells.length === (ranks > 256 ? 0 : ranks), `${cells.length} ranks are drawn of ${ranks}`);
  if (cells.length) check(move(cells[0]).startsWith('rank 0'), 'the pointer does not show a rank');
  const row = document.querySelector('#mesh tbody tr');
  row?.focus();
  if (cells.length) check(document.querySelectorAll('.rank.chosen').length === plan.axes[0].size, 'the ranks of an axis are not marked');
  const slider = document.querySelector('#memory input');
  slider.value = slider.max;
  slider.dispatchEvent(new Event('input'));
  check(/step \d+ of/.test(document.querySelector('#memory p[aria-live]').textContent), 'the slider does not say what is held');
  check(move(document.querySelector('#memory svg')).includes('step '), 'the pointer does not show a step');
  const heads = [...document.querySelectorAll('#costs th button')];
  heads.at(-2)?.click();
  check(!heads.length || heads.at(-2).parentElement.getAttribute('aria-sort') === 'descending', 'a table is not sorted');
  const place = document.querySelector('#costs tbody button');
  if (place) {
    place.click();
    check(chosen !== null && document.getElementById('details').textContent.includes(getOps(chosen.layer)[chosen.op].node), 'a collective is not found in the graph');
  }
}

function useSchedule() {
  const section = document.getElementById('schedule-section');
  check(section.hidden === !plan.schedule, 'the schedule is hidden, or there is none');
  if (!plan.schedule) return;
  const canvas = section.querySelector('canvas'), [kind, , microbatch, begin, end] = plan.schedule.ranks[0][0];
  check(move(canvas, scheduleView.x((begin + end) / 2), 8).includes(`of microbatch ${microbatch}`), `the pointer does not show ${kind}${microbatch}`);
  if (plan.schedule.measured) {
    const [, , number, from, to] = plan.schedule.measured.ranks[0][0], said = move(canvas, Math.max(scheduleView.x((from + to) / 2), 66), 28 + 8);
    check(said.includes('measured') && said.includes(`of microbatch ${number}`), `the pointer does not show what was measured: ${said}`);
    check(section.textContent.includes('measured: a call took'), 'what a call took is not said');
  }
  const ink = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
  const colors = new Set();
  for (let at = 0; at < ink.length; at += 4 * 97) colors.add(`${ink[at]},${ink[at + 1]},${ink[at + 2]}`);
  check(colors.size > 3, 'the canvas is empty');
  press(canvas, '+');
  check(scheduleView.zoom > 1, 'the key + does not zoom');
  press(canvas, '-');
  const busy = section.querySelectorAll('tbody tr').length;
  check(busy === plan.schedule.ranks.length, `the table has ${busy} ranks of ${plan.schedule.ranks.length}`);
}

function useRun() {
  const section = document.getElementById('run-section'), run = plan.run;
  check(section.hidden === !run, 'the run is hidden, or there is none');
  if (!run) return;
  const canvas = section.querySelector('canvas'), first = runView.rows[0].bars[0];
  const at = bar => runView.x((bar.at(-2) + bar.at(-1)) / 2);
  const longest = row => row.bars.reduce((best, bar) => bar.at(-1) - bar.at(-2) > best.at(-1) - best.at(-2) ? bar : best);
  check(runView.rows.length === 1 + run.rows.length, 'a row is missing');
  check(first[1] === 0 && move(canvas, at(longest(runView.rows[0])), 8).startsWith('predicted: '), 'the pointer does not show what is predicted');
  // Of a call that was held up all bars may be narrower than a pixel.
  const bar = longest(runView.rows[1]), width = () => runView.x(bar.at(-1)) - runView.x(bar.at(-2));
  while (width() < 4 && runView.zoom < 2000) runView.change(2, ((bar.at(-2) + bar.at(-1)) / 2 - runView.from) / (runView.end / runView.zoom));
  const said = move(canvas, at(bar), 28 + 8);
  runView.change(1 / runView.zoom, 0);
  check(said.startsWith(`rank ${run.rows[0].rank}: ${kDoings[bar[0]][0]}`) && said.includes(runView.nameLayer(bar[1])), `the pointer does not show what a rank did: ${said}`);
  press(canvas, '+');
  check(runView.zoom > 1, 'the key + does not zoom');
  press(canvas, '-');
  const rows = section.querySelectorAll('tbody tr');
  check(rows.length >= plan.layers.length, `the table has ${rows.length} layers of ${plan.layers.length}`);
  rows[0].querySelector('button').click();
  check(chosen?.layer === 0, 'a layer of the table is not chosen in the graph');
}

function usePlans() {
  const buttons = document.querySelectorAll('#plans button');
  check(buttons.length === (page.plans.length > 1 ? page.plans.length : 0), 'plans cannot be chosen');
  if (!buttons.length) return;
  buttons[1].click();
  check(plan === page.plans[1] && buttons[1].getAttribute('aria-pressed') === 'true', 'the second plan is not shown');
  check(document.querySelectorAll('#totals li').length === page.differences.length, 'differences are missing');
  buttons[0].click();
}

function useAll() {
  setScheme(wantedScheme);
  useGraph();
  useOthers();
  useSchedule();
  useRun();
  usePlans();
  for (const details of document.querySelectorAll('details')) details.open = true;
  for (const link of document.querySelectorAll('nav a'))
    check(!link.getClientRects().length === Boolean(document.querySelector(link.getAttribute('href')).closest('[hidden]')), `a link to ${link.textContent} that leads nowhere, or none`);
  checkText();
  check(document.documentElement.scrollWidth <= innerWidth, `the page is ${document.documentElement.scrollWidth} wide in a window of ${innerWidth}: ${[...document.querySelectorAll('body *')].filter(one =>
    one.getBoundingClientRect().right > innerWidth && !one.closest('.scroll, .ops')).slice(0, 3).map(one => `${one.tagName} '${one.textContent.slice(0, 40)}'`).join(', ')}`);
  for (const button of document.querySelectorAll('button, a, input, canvas, svg[role=img]'))
    check((button.textContent || button.getAttribute('aria-label') || '').trim() !== '', `a ${button.tagName} has no name`);
}

try { useAll(); } catch (error) { problems.push(String(error.stack ?? error)); }
for (const error of window.errors) problems.push(`on the console: ${error}`);
const result = document.createElement('pre');
result.id = 'used';
result.textContent = JSON.stringify({checked, problems});
document.body.append(result);
