// What ranks do and when: the schedule of a pipeline, and a run of a program without one next to what was predicted. On a canvas, since there
// may be a hundred thousand bars.
const kBarHeight = 22, kRowHeight = 28, kNames = 64;
const kKinds = {F: ['forward', '--role0'], B: ['backward', '--role2'], I: ['gradients of inputs', '--role6'], W: ['gradients of weights', '--role4'],
  UNSHARD: ['gathering weights', '--role3'], RESHARD: ['dropping weights', '--role3'], REDUCE_GRAD: ['reducing gradients', '--role5']};

/** A step between ticks that is 1, 2 or 5 times a power of ten. */
function findTick(span) {
  const power = 10 ** Math.floor(Math.log10(span / 8));
  return [1, 2, 5, 10].map(factor => factor * power).find(step => span / step <= 10);
}

const formatSpan = time => plan.schedule?.unit === 'ns' || plan.run ? formatTime(time) : `${Number(time.toPrecision(6))}`;
const formatBar = (what, begin, end) => `${what}\nfrom ${formatSpan(begin)} to ${formatSpan(end)}, ${formatSpan(end - begin)}`;

/** Rows of bars on one axis, with keys, pointer and zoom. A view that is one has `rows` ({name, bars, isMeasured}), `end`, and says of a bar, whose
 * last two are its times, what it is: `describe(row, bar)`, `label(bar)`, `color(bar)`, a property of CSS, and `fade(bar)`. */
const timeline = {
  from: 0, zoom: 1, canvas: null,
  fade: () => 1,
  makeCanvas(label) {
    this.from = 0; this.zoom = 1;
    this.canvas = make('canvas', {role: 'img', tabindex: 0, 'aria-label': `${label}; keys + and - change the zoom, arrows move`,
      onmousemove: event => this.point(event), onmouseleave: hideTip, onkeydown: event => this.press(event),
      onwheel: event => { if (event.ctrlKey) { event.preventDefault(); this.change(event.deltaY < 0 ? 1.25 : 0.8, event.offsetX / this.canvas.clientWidth); } }});
    return this.canvas;
  },
  makeTools() {
    return make('nav', {}, make('button', {class: 'tool', text: 'zoom in', onclick: () => this.change(1.6, 0.5)}), make('button', {class: 'tool', text: 'zoom out', onclick: () => this.change(1 / 1.6, 0.5)}), make('button', {class: 'tool', text: 'all', onclick: () => { this.from = 0; this.zoom = 1; this.paint(); }}));
  },
  x(time) { return kNames + (time - this.from) / (this.end / this.zoom) * (this.canvas.clientWidth - kNames - 8); },
  paint() {
    const canvas = this.canvas;
    if (!canvas) return;
    const height = this.rows.length * kRowHeight + 26, ratio = devicePixelRatio || 1;
    canvas.style.height = `${height}px`;
    canvas.width = canvas.clientWidth * ratio;
    canvas.height = height * ratio;
    const brush = canvas.getContext('2d'), width = canvas.clientWidth, text = readColor('--text'), soft = readColor('--soft');
    const colors = {};
    brush.scale(ratio, ratio);
    brush.font = '12px system-ui, sans-serif';
    brush.textBaseline = 'middle';
    this.rows.forEach(({bars, name, isMeasured}, number) => {
      const y = number * kRowHeight;
      brush.fillStyle = readColor('--panel');
      brush.fillRect(kNames, y, width - kNames - 8, kBarHeight);
      for (const bar of bars) this.paintBar(brush, bar, y, colors, text, width);
      brush.fillStyle = readColor('--ground');
      brush.fillRect(0, y, kNames, kBarHeight);
      brush.fillStyle = isMeasured ? soft : text;
      brush.fillText(name, 2, y + kBarHeight / 2);
    });
    const span = this.end / this.zoom, step = findTick(span), y = this.rows.length * kRowHeight + 8;
    brush.fillStyle = soft;
    for (let time = Math.ceil(this.from / step) * step; time <= this.from + span * 1.0001; time += step) {
      brush.fillRect(this.x(time), y - 8, 1, 5);
      const label = formatSpan(time), room = brush.measureText(label).width;
      brush.fillText(label, Math.min(this.x(time) - room / 2, width - room), y + 6);
    }
  },
  paintBar(brush, bar, y, colors, text, width) {
    const left = Math.max(this.x(bar.at(-2)), kNames), right = Math.min(this.x(bar.at(-1)), width - 8), name = this.color(bar);
    if (right <= left) return;
    brush.globalAlpha = this.fade(bar);
    brush.fillStyle = colors[name] ??= readColor(name);
    brush.fillRect(left, y, Math.max(right - left - 0.5, 0.5), kBarHeight);
    brush.globalAlpha = 1;
    const label = this.label(bar);
    if (brush.measureText(label).width + 4 < right - left) {
      brush.fillStyle = text;
      brush.fillText(label, (left + right - brush.measureText(label).width) / 2, y + kBarHeight / 2);
    }
  },
  /** A factor of the zoom; what is at this part of the width stays there. */
  change(factor, at) {
    const before = this.end / this.zoom, time = this.from + before * at;
    this.zoom = Math.min(Math.max(this.zoom * factor, 1), 2000);
    const span = this.end / this.zoom;
    this.from = Math.min(Math.max(time - span * at, 0), this.end - span);
    this.paint();
  },
  press(event) {
    const span = this.end / this.zoom, move = {ArrowLeft: -span / 8, ArrowRight: span / 8}[event.key];
    if (event.key === '+') this.change(1.6, 0.5);
    else if (event.key === '-') this.change(1 / 1.6, 0.5);
    else if (move) { event.preventDefault(); this.from = Math.min(Math.max(this.from + move, 0), this.end - span); this.paint(); }
  },
  /** The bar at a place of a row, or one right next to it: many are narrower than a pixel. */
  findBar(bars, x) {
    const away = bar => Math.max(this.x(bar.at(-2)) - x, x - this.x(bar.at(-1)), 0);
    const nearest = bars.reduce((best, bar) => best && away(best) < away(bar) ? best : bar, null);
    return nearest && away(nearest) < 2 ? nearest : null;
  },
  point(event) {
    const box = this.canvas.getBoundingClientRect(), row = this.rows[Math.floor((event.clientY - box.top) / kRowHeight)];
    const x = event.clientX - box.left, bar = this.findBar(row?.bars ?? [], x);
    if (bar && x >= kNames) showTip(event, this.describe(row, bar)); else hideTip();
  },
};

const scheduleView = {
  ...timeline,
  describe: (row, [kind, stage, microbatch, begin, end]) =>
    formatBar(`rank ${row.rank}${row.isMeasured ? ', measured' : ''}: ${kKinds[kind]?.[0] ?? kind} of microbatch ${microbatch}, stage ${stage}`, begin, end),
  label: ([kind, , microbatch]) => `${kind}${microbatch}`,
  color: ([kind]) => kKinds[kind]?.[1] ?? '--role1',
  /** Later chunks of a rank. */
  fade: ([, stage]) => Math.max(0.45, 1 - 0.25 * Math.floor(stage / plan.schedule.ranks.length)),
  /** A row for each rank, and one below it of what a run took, where the page has that; all on one axis. */
  takeRows(schedule) {
    this.rows = schedule.ranks.flatMap((bars, rank) => [{rank, bars, name: `rank ${rank}`},
      ...(schedule.measured ? [{rank, bars: schedule.measured.ranks[rank], name: 'measured', isMeasured: true}] : [])]);
    this.end = Math.max(schedule.makespan, schedule.measured?.makespan ?? 0);
  },
  draw() {
    const schedule = plan.schedule;
    this.canvas = null;
    if (!showSection('schedule-section', schedule)) return;
    this.takeRows(schedule);
    const addUp = ranks => ranks.map(bars => bars.reduce((sum, bar) => sum + bar[4] - bar[3], 0));
    const busy = addUp(schedule.ranks), measured = schedule.measured, wasBusy = measured ? addUp(measured.ranks) : [];
    this.makeCanvas(`${schedule.name}: ${schedule.ranks.length} ranks, ${schedule.microbatches} microbatches, bubble ${(100 * schedule.bubble).toFixed(1)} %`);
    const kinds = [...new Set(schedule.ranks.flatMap(bars => bars.map(bar => bar[0])))];
    fill(document.getElementById('schedule'), make('p', {class: 'soft', text: `${schedule.name}: ${schedule.stages} stages, ${schedule.microbatches} microbatches; a call takes ${formatSpan(schedule.makespan)}, no order of these takes less than ${formatSpan(schedule.bound)}; bubble ${(100 * schedule.bubble).toFixed(1)} %`}),
      measured ? make('p', {class: 'soft', text: `measured: a call took ${formatSpan(measured.makespan)}, bubble ${(100 * measured.bubble).toFixed(1)} %`}) : null,
      this.makeTools(),
      make('div', {class: 'legend'}, ...kinds.map(kind => make('span', {}, make('i', {style: `background:var(${kKinds[kind]?.[1] ?? '--role1'})`}), kKinds[kind]?.[0] ?? kind)), schedule.stages > schedule.ranks.length ? make('span', {class: 'soft', text: 'later chunks of a rank are lighter'}) : null),
      this.canvas, make('details', {}, make('summary', {text: 'as a table'}), makeTable('how long each rank is busy', [
        {head: 'rank', number: true, text: row => String(row.rank), key: row => row.rank},
        {head: 'busy', number: true, text: row => formatSpan(row.busy), key: row => row.busy},
        {head: 'idle', number: true, text: row => formatSpan(schedule.makespan - row.busy), key: row => -row.busy},
        ...(measured ? [{head: 'busy as measured', number: true, text: row => formatSpan(wasBusy[row.rank]), key: row => wasBusy[row.rank]}] : []),
        {head: 'memory', number: true, text: row => String(Number((schedule.memory[row.rank] ?? 0).toPrecision(4))), key: row => schedule.memory[row.rank] ?? 0},
      ], busy.map((sum, rank) => ({rank, busy: sum})))));
    this.paint();
  },
};
views.push(scheduleView);
addEventListener('resize', () => scheduleView.paint());
