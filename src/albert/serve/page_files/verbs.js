// What can be asked on the page: for each verb its fields with an example, its request, and its result as elements.

import { bars, make, marked, percent } from './dom.js';

const lines = (text) => text.split('\n').map((line) => line.trim()).filter((line) => line !== '');
const area = (name, label, value) => ({ name, label, value, tall: true });
const line = (name, label, value) => ({ name, label, value, tall: false });

function classes(rows, _, { task, threshold }) {
  if (rows.length === 1 && rows[0].label === 'value') return [make('p', { class: 'value' }, rows[0].score.toFixed(3))];
  return [bars(rows.map(({ label, score }) => [label, score]), task === 'multi-label' ? threshold ?? undefined : undefined)];
}

function answer(record, given) {
  const where = record.start === null ? [] : [[record.start, record.end, (text) => make('mark', {}, text)]];
  const best = record.candidates.map(({ text, probability }) => [text, probability]);
  return [
    marked(given.context, where),
    make('p', {}, record.answer === '' ? 'No answer in this text.' : `${record.answer} (${percent(record.probability)})`),
    best.length ? make('h2', {}, 'Candidates') : null, best.length ? bars(best) : null,
  ];
}

function blanks(record) {
  const pieces = record.blanks.map(({ start, end, guesses }) => [start, end, () => make('span', { class: 'blank' }, guesses[0].text)]);
  return [marked(record.text, pieces), ...record.blanks.flatMap(({ guesses }, number) => [
    make('h2', {}, `Blank ${number + 1}`),
    bars(guesses.map(({ text, probability, continues }) => [continues ? `…${text}` : text, probability])),
  ])];
}

function tags(record) {
  const spans = record.spans.length ? record.spans : record.words.map((word) => ({ ...word, type: word.tag })).filter(({ type }) => type !== 'O');
  const kinds = [...new Set(spans.map(({ type }) => type))];
  const wrap = ({ type, probability }) => (text) => make('span', {
    class: `span kind-${kinds.indexOf(type) % 6}`, title: percent(probability),
  }, text, make('small', {}, type));
  return [marked(record.text, spans.map((span) => [span.start, span.end, wrap(span)])),
    make('p', { class: 'soft' }, spans.length ? `${spans.length} found: ${kinds.join(', ')}` : 'Nothing was tagged.')];
}

function heat(vectors, given) {
  const texts = lines(given.inputs);
  const cosine = (one, other) => one.reduce((sum, value, i) => sum + value * other[i], 0);
  const cosines = vectors.map((one) => vectors.map((other) => cosine(one, other)));
  const others = cosines.flatMap((row, i) => row.filter((_, j) => i !== j));
  const low = Math.min(...others, 1), high = Math.max(...others, low + 1e-6);
  const table = make('table', {}, make('tr', {}, make('th'), ...texts.map((_, i) => make('th', {}, String(i + 1)))));
  cosines.forEach((row, i) => table.append(make('tr', {}, make('th', { title: texts[i] }, `${i + 1}  ${texts[i]}`), ...row.map((value, j) => {
    const cell = make('td', { title: `${texts[i]} / ${texts[j]}` }, value.toFixed(2));
    const share = i === j ? 1 : (value - low) / (high - low);
    cell.style.backgroundColor = `rgba(var(--hot), ${(0.75 * Math.max(0, Math.min(1, share))).toFixed(3)})`;
    return cell;
  }))));
  return [make('div', { class: 'wide' }, table), make('p', { class: 'soft' }, 'Cosines; the stronger the colour, the more alike.')];
}

function found(cosines, given) {
  const rows = lines(given.inputs).map((text, i) => [cosines[i], text]).sort((one, other) => other[0] - one[0]);
  return [make('ol', { class: 'found' }, ...rows.map(([value, text]) => make('li', {}, make('span', { class: 'number' }, value.toFixed(3)), make('span', {}, text))))];
}

const LIBRARY = 'The harbour froze in January.\nA ship with coal arrived at last.\nThe film was warm and funny.\nHe fixed the old engine himself.\nThe actors were excellent.';

export const VERBS = {
  predict: {
    label: 'Classify', route: 'predict', fields: ({ pairs }) => [area('text', pairs ? 'First text' : 'Text', 'What a wonderful surprise: warm, funny, and very well acted.'),
      ...(pairs ? [area('pair', 'Second text', 'A lovely film.')] : [])],
    body: ({ text, pair }) => ({ inputs: pair === undefined ? text : [text, pair] }), show: classes, depth: true,
  },
  answer: {
    label: 'Answer', route: 'answer', fields: () => [line('question', 'Question', 'Who wrote a letter?'),
      area('context', 'Passage', 'The harbour was closed all winter. In March, Maria wrote a long letter to her sister in Paris, but it never left the post office.')],
    body: ({ question, context }) => ({ question, context }), show: answer, depth: true,
  },
  choose: {
    label: 'Choose', route: 'choose', fields: () => [area('context', 'Passage', 'Tom forgot his umbrella, and it rained all day.'), line('question', 'Question', 'Why was Tom wet?'),
      area('choices', 'Choices, one per line', 'It rained.\nHe fell into a river.\nHe took a shower.')],
    body: ({ question, context, choices }) => ({ question, context, choices: lines(choices) }),
    show: (record, given) => [bars(lines(given.choices).map((text, i) => [text, record.probabilities[i]]))], depth: true,
  },
  tag: {
    label: 'Tag', route: 'tag', fields: () => [area('inputs', 'Text', 'Peter Smith works for Acme Corporation in London.')],
    body: ({ inputs }) => ({ inputs }), show: tags, depth: true,
  },
  fill: {
    label: 'Fill in', route: 'fill', fields: () => [area('inputs', 'Text with [MASK] where a word is missing', 'He sat down at the [MASK] and opened the [MASK].')],
    body: ({ inputs }) => ({ inputs, top: 6 }), show: blanks, depth: true,
  },
  similarity: {
    label: 'Compare', route: 'embed', fields: () => [area('inputs', 'Texts, one per line', LIBRARY)],
    body: ({ inputs }) => ({ inputs: lines(inputs) }), show: heat, depth: false,
  },
  search: {
    label: 'Search', route: 'similarity', fields: () => [line('query', 'Look for', 'cold weather'), area('inputs', 'Texts, one per line', LIBRARY)],
    body: ({ query, inputs }) => ({ inputs: { source_sentence: query, sentences: lines(inputs) } }), show: found, depth: true,
  },
};

export const labelOf = (verb, { task }) => (verb === 'predict' && task === 'regression' ? 'Score' : VERBS[verb].label);

export const verbsOf = ({ abilities }) => Object.keys(VERBS).filter((verb) => abilities.includes(verb === 'search' ? 'similarity' : verb));
