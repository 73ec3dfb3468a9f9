// The depth dial: what the model says after each pass of its shared layer, as a chart with a cursor that a slider moves.

import { draw, make } from './dom.js';

const WIDEST = 640, AROUND = 60, HEIGHT = 190, LEFT = 40, BOTTOM = 24, TOP = 8, LINES = 6, LABEL = 24;

export function showDepth(place, { series, decisions, range }) {
  const shown = series.slice(0, LINES);
  const depth = decisions.length;
  const width = Math.max(240, Math.min(WIDEST, window.innerWidth - AROUND)); // on a phone its own: scaled down, nobody could read it
  const [low, high] = range;
  const x = (pass) => LEFT + (depth > 1 ? ((pass - 1) * (width - LEFT - 12)) / (depth - 1) : 0);
  const y = (value) => TOP + (1 - (value - low) / (high - low || 1)) * (HEIGHT - TOP - BOTTOM);
  const chart = draw('svg', { viewBox: `0 0 ${width} ${HEIGHT}`, role: 'img', 'aria-label': 'What the model says by depth' });
  for (const value of [low, (low + high) / 2, high]) {
    chart.append(draw('line', { class: 'axis', x1: LEFT, x2: width - 8, y1: y(value), y2: y(value) }));
    const label = draw('text', { x: LEFT - 6, y: y(value) + 4, 'text-anchor': 'end' });
    label.textContent = Number(value.toPrecision(2)).toString();
    chart.append(label);
  }
  const every = Math.ceil(depth / ((width - LEFT) / LABEL));
  for (let pass = depth; pass >= 1; pass -= every) {
    const label = draw('text', { x: x(pass), y: HEIGHT - 6, 'text-anchor': 'middle' });
    label.textContent = pass;
    chart.append(label);
  }
  shown.forEach(({ values }, number) => chart.append(draw('polyline', {
    class: `line-${number}`, points: values.map((value, i) => `${x(i + 1)},${y(value)}`).join(' '),
  })));
  const cursor = draw('line', { class: 'cursor', y1: TOP, y2: HEIGHT - BOTTOM });
  chart.append(cursor);

  const said = make('output', { for: 'dial' });
  const legend = make('div', { class: 'legend' });
  const dial = make('input', { type: 'range', id: 'dial', min: 1, max: depth, step: 1, value: depth });
  const turn = () => {
    const pass = Number(dial.value);
    for (const end of ['x1', 'x2']) cursor.setAttribute(end, x(pass));
    said.textContent = `After pass ${pass} of ${depth}: ${decisions[pass - 1]}`;
    legend.replaceChildren(...shown.map(({ name, values }, number) => make('span', {},
      draw('svg', { viewBox: '0 0 20 6' }, draw('polyline', { class: `line-${number}`, points: '0,3 20,3' })),
      ` ${name} ${values[pass - 1].toFixed(3)}`)));
  };
  dial.addEventListener('input', turn);
  turn();
  place.replaceChildren(
    make('h2', {}, 'The depth dial'),
    make('p', { class: 'soft' }, 'The same layer is applied again and again. This is what the model would say if it stopped earlier.'),
    chart, make('label', { for: 'dial', class: 'soft' }, 'Passes of the shared layer'), dial, said, legend,
  );
  place.hidden = false;
}
