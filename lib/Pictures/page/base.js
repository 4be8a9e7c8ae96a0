// What all views share: the model of the page, how numbers are written, and what is chosen.
'use strict';
const page = JSON.parse(document.getElementById('model').textContent);
let plan = page.plans[0];
const views = [];      // each draws itself anew for a plan: {draw(), choose(choice)}
let chosen = null;     // {layer, op}: a layer's number and, or null, an op of its kind

/** An element with attributes and children; `text` is its text, `on*` are listeners. */
function make(name, attributes = {}, ...children) {
  const svg = ['svg', 'g', 'rect', 'path', 'text', 'line', 'title', 'polyline', 'circle'].includes(name);
  const element = svg ? document.createElementNS('http://www.w3.org/2000/svg', name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === 'text') element.textContent = value;
    else if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else if (value !== null && value !== false) element.setAttribute(key, value === true ? '' : value);
  }
  element.append(...children.filter(child => child !== null));
  return element;
}

/** Replaces what is in an element; null is no child. */
const fill = (element, ...children) => element.replaceChildren(...children.filter(child => child !== null));

function scale(value, units, base) {
  let unit = 0;
  while (Math.abs(value) >= base && unit + 1 < units.length) { value /= base; ++unit; }
  const digits = unit === 0 && Number.isInteger(value) ? 0 : value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return `${value.toFixed(digits)} ${units[unit]}`;
}
const count = (number, what) => `${number} ${what}${number === 1 ? '' : 's'}`;
const formatBytes = bytes => scale(bytes, ['B', 'kB', 'MB', 'GB', 'TB'], 1000);
const formatTime = ns => scale(ns, ['ns', 'us', 'ms', 's'], 1000);
const formatFlops = flops => scale(flops, ['flop', 'kflop', 'Mflop', 'Gflop', 'Tflop', 'Pflop'], 1000);

/** Shows a section or not, and its link in the head. */
function showSection(id, isShown) {
  const section = document.getElementById(id);
  section.hidden = document.querySelector(`nav a[href="#${id}"]`).hidden = !isShown;
  return isShown;
}

/** The axes of the mesh that a sharding, or a list of axes such as `model:(2)4`, names, by number. */
function findAxes(text) {
  const words = new Set(text.split(/[^A-Za-z0-9_]+/));
  return plan.axes.map((axis, number) => words.has(axis.name) ? number : -1).filter(number => number >= 0);
}
const axisColor = number => `var(--axis${number % 6})`;
const readColor = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** A label with the color of each axis in `text`. */
function makeStripes(text) {
  const axes = findAxes(text);
  return make('span', {class: 'stripes'}, ...(axes.length ? axes.map(number =>
    make('span', {class: 'stripe', style: `background:${axisColor(number)}`, text: plan.axes[number].name})) : [
    make('span', {class: 'soft', text: 'replicated'})]));
}

const tip = document.getElementById('tip');
function showTip(event, text) {
  tip.textContent = text;
  tip.style.display = 'block';
  tip.style.left = Math.max(4, Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 8)) + 'px';
  const below = event.clientY + 16;
  tip.style.top = (below + tip.offsetHeight < innerHeight ? below : event.clientY - tip.offsetHeight - 8) + 'px';
}
const hideTip = () => { tip.style.display = 'none'; };

function choose(layer, op) {
  chosen = layer === null ? null : {layer, op};
  for (const view of views) view.choose?.(chosen);
}
const getOps = layer => plan.kinds[plan.layers[layer].kind].ops;

/** A table whose columns are {head, number, text(row), key(row)}; heads sort where there is a key. */
function makeTable(caption, columns, rows) {
  const body = make('tbody');
  const fill = () => body.replaceChildren(...rows.map(row => make('tr', row.attributes ?? {}, ...columns.map(column => {
    const value = column.text(row);
    return make('td', {class: column.number ? 'number' : null}, value);
  }))));
  const heads = columns.map(column => {
    const attributes = {scope: 'col', class: column.number ? 'number' : null};
    if (!column.key) return make('th', {...attributes, text: column.head});
    const head = make('th', attributes);
    head.append(make('button', {text: column.head, onclick: () => {
      const falls = head.getAttribute('aria-sort') !== 'descending';
      for (const other of heads) other.removeAttribute('aria-sort');
      head.setAttribute('aria-sort', falls ? 'descending' : 'ascending');
      rows.sort((a, b) => (column.key(a) > column.key(b) ? 1 : column.key(a) < column.key(b) ? -1 : 0) * (falls ? -1 : 1));
      fill();
    }}));
    return head;
  });
  fill();
  return make('div', {class: 'scroll'}, make('table', {}, make('caption', {class: 'hidden', text: caption}),
    make('thead', {}, make('tr', {}, ...heads)), body));
}
