// Elements made from values. Text is always set as text, so nothing that a model or a person says becomes markup.

export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, '');
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

export function draw(tag, attributes, ...children) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

export const percent = (share) => `${(100 * share).toFixed(1)}%`;

// Rows of [name, share from 0 to 1], the best of them marked, or all from a threshold on.
export function bars(rows, threshold = Math.max(...rows.map(([, share]) => share))) {
  const grid = make('div', { class: 'bars' });
  for (const [name, share] of rows) {
    const fill = make('div', { class: 'fill' });
    fill.style.width = percent(Math.max(0, Math.min(1, share)));
    grid.append(
      make('span', { class: share >= threshold ? 'name best' : 'name' }, name),
      make('div', { class: 'track' }, fill),
      make('span', { class: 'number' }, percent(share)),
    );
  }
  return grid;
}

// A text with some of its characters in elements: pieces are [start, end, element of a string]. Python counts
// characters, JavaScript halves of some of them.
export function marked(text, pieces) {
  const characters = Array.from(text);
  const passage = make('p', { class: 'passage' });
  let at = 0;
  for (const [start, end, wrap] of [...pieces].sort((one, other) => one[0] - other[0])) {
    passage.append(characters.slice(at, start).join(''), wrap(characters.slice(start, end).join('')));
    at = end;
  }
  passage.append(characters.slice(at).join(''));
  return passage;
}

// Buttons of which one is chosen, by click or by arrow keys.
export function tabs(place, names, chosen, choose) {
  place.replaceChildren(...names.map(([name, label]) => make('button', {
    type: 'button', role: 'tab', 'data-name': name, 'aria-selected': String(name === chosen), tabindex: name === chosen ? 0 : -1,
    onclick: () => choose(name),
    onkeydown: (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const next = names[(names.findIndex(([one]) => one === name) + step + names.length) % names.length][0];
      choose(next);
      place.querySelector(`[data-name="${CSS.escape(next)}"]`).focus();
    },
  }, label)));
}
