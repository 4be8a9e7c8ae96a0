// What a rank holds from step to step, by what it is for.
const kMemoryHeight = 220, kMemoryLeft = 74;

/** The layer that runs at a step: the last that has begun. */
function findLayerOfStep(step) {
  let found = 0;
  plan.layers.forEach((layer, number) => { if (layer.step <= step) found = number; });
  return found;
}

function describePoint(point) {
  const roles = plan.memory.roles.map((role, number) => `${role} ${formatBytes(point[number + 1])}`).filter((_, number) => point[number + 1] > 0);
  const sum = point.slice(1).reduce((a, b) => a + b, 0);
  return `step ${point[0]} of ${plan.memory.steps}, ${plan.layers[findLayerOfStep(point[0])].title}: ${formatBytes(sum)}\n${roles.join('\n')}`;
}

/** Areas on top of each other; what is held changes from step to step, and not in between. */
function drawAreas(svg, x, y) {
  const {points, roles, steps} = plan.memory, bases = points.map(() => 0);
  const trace = heights => points.flatMap((point, index) => [point[0], points[index + 1]?.[0] ?? steps].map(step =>
    `${x(step).toFixed(1)},${y(heights[index]).toFixed(1)}`));
  roles.forEach((role, number) => {
    const top = points.map((point, index) => bases[index] + point[number + 1]);
    svg.append(make('path', {'data-role': role, d: `M${trace(top).join('L')}L${trace(bases).reverse().join('L')}Z`, style: `fill:var(--role${number % 7})`}));
    top.forEach((value, index) => { bases[index] = value; });
  });
}

views.push({
  draw() {
    const {points, roles, steps, peak, rank} = plan.memory, width = 1000, device = plan.report.memory?.device_bytes;
    const most = Math.max(peak, 1) * 1.08;
    const x = step => kMemoryLeft + step / Math.max(1, steps) * (width - kMemoryLeft - 10), y = bytes => kMemoryHeight - bytes / most * (kMemoryHeight - 10);
    const svg = make('svg', {viewBox: `0 0 ${width} ${kMemoryHeight + 24}`, width: '100%', role: 'img', 'aria-label':
      `memory of rank ${rank} over ${steps} steps, at most ${formatBytes(peak)}`});
    for (let tick = 0; tick <= 4; ++tick)
      svg.append(make('line', {x1: kMemoryLeft, x2: width - 10, y1: y(peak * tick / 4), y2: y(peak * tick / 4), stroke: 'var(--line)'}),
        make('text', {class: 'soft', x: kMemoryLeft - 6, y: y(peak * tick / 4) + 4, 'text-anchor': 'end', text: formatBytes(peak * tick / 4)}));
    drawAreas(svg, x, y);
    this.marker = make('line', {y1: 6, y2: kMemoryHeight, stroke: 'var(--mark)', 'stroke-width': 2, visibility: 'hidden'});
    svg.append(this.marker, make('text', {class: 'soft', x: width - 10, y: kMemoryHeight + 18, 'text-anchor': 'end', text: `${steps} steps of the program`}));
    this.x = x;
    const says = make('p', {class: 'soft', 'aria-live': 'polite', style: 'white-space: pre-line'});
    const show = index => {
      this.mark(points[index][0]);
      says.textContent = describePoint(points[index]).replaceAll('\n', ', ').replace(',', ':').replace(', ', ' ');
    };
    const slider = make('input', {type: 'range', min: 0, max: points.length - 1, value: 0, 'aria-label': 'step', style: 'width:100%', oninput: () => show(Number(slider.value))});
    svg.addEventListener('mousemove', event => {
      const box = svg.getBoundingClientRect(), step = ((event.clientX - box.left) / box.width * width - kMemoryLeft) / (width - kMemoryLeft - 10) * steps;
      const index = points.reduce((best, point, number) => Math.abs(point[0] - step) < Math.abs(points[best][0] - step) ? number : best, 0);
      this.mark(points[index][0]);
      showTip(event, describePoint(points[index]));
    });
    svg.addEventListener('mouseleave', hideTip);
    fill(document.getElementById('memory'),
      make('p', {class: 'soft', text: `rank ${rank} of the program before memory is planned: at most ${formatBytes(peak)}${device ? `, of ${formatBytes(device)} that a device has` : ''}`}),
      make('div', {class: 'legend'}, ...roles.map((role, number) => make('span', {}, make('i', {style: `background:var(--role${number % 7})`}), role))), svg, slider, says);
  },
  mark(step) {
    this.marker.setAttribute('x1', this.x(step));
    this.marker.setAttribute('x2', this.x(step));
    this.marker.setAttribute('visibility', 'visible');
  },
  choose(choice) { if (choice) this.mark(plan.layers[choice.layer].step); },
});
