// What the routes of `albert serve` answer, for one input: how texts become sequences, and what the model says of them
// a decision. Each does what its task in src/albert/tasks or src/albert/inference does; places are counted in characters
// as Python counts them.

import { SPACE } from './tokenizer.js';
import { bestContext, evenSpans, truncatePair, windowSpans } from './windows.js';

const MASK = '[MASK]';
const WORD = new RegExp(`[\\p{L}\\p{N}_][\\p{L}\\p{N}_\\p{M}\\u200c\\u200d]*|[^\\p{L}\\p{N}_${SPACE}]`, 'gu');
const DECISIONS = {
  classification: softmax,
  'multi-label': (logits) => Array.from(logits, (logit) => 1 / (1 + Math.exp(-logit))),
  regression: (logits) => Array.from(logits),
};
const count = (text) => Array.from(text).length;

function softmax(logits) {
  const most = logits.reduce((one, other) => Math.max(one, other));
  const powers = Array.from(logits, (logit) => Math.exp(logit - most)), sum = powers.reduce((one, other) => one + other);
  return powers.map((power) => power / sum);
}

function refuseEmpty(...texts) {
  if (texts.every((text) => text.trim() === '')) throw new Error('the text is empty: write something');
}

// The rows of an output [1, tokens, width].
const rows = ({ data, dims }) => (place) => data.subarray(place * dims.at(-1), (place + 1) * dims.at(-1));

// The sequences of a text that is read one window after the other; `cut`: the first alone.
function inTurn(model, ids, cut) {
  const room = model.about.max_input_length - 2;
  if (cut && ids.length > room) model.cut = true;
  return windowSpans(ids.length, { room, stride: room, overlap: 0 }).slice(0, cut ? 1 : undefined).map(([start, end]) => ids.slice(start, end));
}

async function predict(model, { inputs }) {
  const [text, pair] = [inputs].flat(), { tokenizer, about } = model;
  refuseEmpty(text, pair ?? '');
  const read = tokenizer.encode(text);
  let sequences;
  if (pair !== undefined) {
    const other = tokenizer.encode(pair);
    sequences = [truncatePair(read, other, about.max_input_length - 3)];
    model.cut = sequences[0].flat().length < read.length + other.length;
  } else if (about.long === 'first') {
    sequences = inTurn(model, read, true).map((ids) => [ids]);
  } else {
    sequences = evenSpans(read.length, about.max_input_length - 2).map(([start, end]) => [read.slice(start, end)]);
  }
  const mean = new Array(about.labels.length).fill(0);
  const size = (sequence) => sequence.flat().length + sequence.length + 1;
  const tokens = sequences.reduce((sum, sequence) => sum + size(sequence), 0);
  for (const sequence of sequences) {
    const { logits } = await model.run(...sequence);
    logits.data.forEach((logit, i) => { mean[i] += (logit * size(sequence)) / tokens; });
  }
  const scores = DECISIONS[about.task](mean);
  if (about.task === 'regression') return [{ label: 'value', score: scores[0] * about.scale + about.centre }];
  return about.labels.map((label, i) => ({ label, score: scores[i] })).sort((one, other) => other.score - one.score);
}

async function fill(model, { inputs, top }) {
  const { tokenizer, about } = model, { mask } = tokenizer.special, parts = inputs.split(MASK);
  if (parts.length < 2) throw new Error(`no ${MASK} in the text: write it where a word is to be filled in`);
  const ids = parts.flatMap((part, number) => [...(number ? [mask] : []), ...tokenizer.encode(part)]);
  const room = about.max_input_length - 2, half = Math.floor(room / 2);
  const spans = windowSpans(ids.length, { room, stride: half, overlap: half }), owner = bestContext(spans);
  const blanks = [];
  let start = 0;
  for (const [number, [begin, end]] of spans.entries()) {
    const own = ids.flatMap((id, place) => (id === mask && owner[place] === number ? [place] : []));
    if (own.length === 0) continue;
    const logits = rows((await model.run(ids.slice(begin, end))).logits);
    for (const place of own) {
      start += count(parts[blanks.length]);
      blanks.push({ start, end: start + MASK.length, guesses: guesses(model, softmax(logits(place - begin + 1)), top) });
      start += MASK.length;
    }
  }
  return { text: inputs, blanks };
}

// The best of the pieces that are words or parts of words; `offered` says so of each.
function guesses({ tokenizer, about }, shares, top) {
  const offered = [...about.offered].flatMap((kind, id) => (kind === '-' ? [] : [id]));
  return offered.sort((one, other) => shares[other] - shares[one]).slice(0, top).map((id) => ({
    text: tokenizer.pieces[id].replaceAll('\u2581', ' ').trim(), piece: tokenizer.pieces[id], probability: shares[id], continues: about.offered[id] === 'c',
  }));
}

async function tag(model, { inputs }) {
  const { tokenizer, about } = model;
  let at = 0, from = 0;
  const words = [...inputs.matchAll(WORD)].map(({ 0: text, index }) => {
    const start = at + count(inputs.slice(from, index)), ids = tokenizer.encode(text);
    at = start + count(text);
    from = index + text.length;
    const capital = about.capitals && text !== text.toLowerCase();
    return { text, start, end: at, ids: ids.length ? ids : [tokenizer.special.unk], capital };
  });
  if (words.length === 0) throw new Error('the text has no words: write something');
  const ids = words.flatMap((word) => word.ids), room = about.max_input_length - 2;
  const marked = words.flatMap((word) => word.ids.map(() => word.capital));
  const firsts = new Map();
  words.reduce((place, word) => (firsts.set(place, word), place + word.ids.length), 0);
  const spans = windowSpans(ids.length, { room, stride: Math.floor((3 * room) / 4), overlap: Math.floor(room / 4) }), owner = bestContext(spans);
  for (const [number, [begin, end]] of spans.entries()) {
    const logits = rows((await model.run(ids.slice(begin, end), null, marked.slice(begin, end))).logits);
    for (let place = begin; place < end; place += 1) {
      if (owner[place] !== number || !firsts.has(place)) continue;
      const shares = softmax(logits(place - begin + 1)), probability = Math.max(...shares);
      Object.assign(firsts.get(place), { tag: about.labels[shares.indexOf(probability)], probability });
    }
  }
  return { text: inputs, words, spans: about.labels.every((label) => /^(O$|[BIESLU]-.)/u.test(label)) ? spansOf(inputs, words) : [] };
}

// Words that are one thing (src/albert/tasks/tag_spans.py): a span begins wherever the tag before can't be continued.
function spansOf(text, words) {
  const spans = [];
  let before = 'O', typeBefore = '', open = false;
  for (const word of words) {
    const [, position, type] = /^([^-]*)-?(.*)$/su.exec(word.tag);
    if ('OBSU'.includes(position) || 'ELSU'.includes(before) || type !== typeBefore) open = false;
    if (open) Object.assign(spans.at(-1), { end: word.end, probability: Math.min(spans.at(-1).probability, word.probability) });
    else if (position !== 'O') spans.push({ type, start: word.start, end: word.end, probability: word.probability });
    open = position !== 'O';
    [before, typeBefore] = [position, type];
  }
  return spans.map((span) => ({ ...span, text: Array.from(text).slice(span.start, span.end).join('') }));
}

// The mean of the last layer over all tokens, of length 1.
async function vector(model, text) {
  refuseEmpty(text);
  const sum = new Array(model.about.width).fill(0);
  for (const ids of inTurn(model, model.tokenizer.encode(text), model.about.cut)) {
    const states = rows((await model.run(ids)).last_hidden_state);
    for (let place = 0; place < ids.length + 2; place += 1) states(place).forEach((value, i) => { sum[i] += value; });
  }
  const length = Math.hypot(...sum) || 1;
  return sum.map((value) => value / length);
}

async function embed(model, { inputs }) {
  if (inputs.length === 0) throw new Error('no texts: write some, one per line');
  const vectors = [];
  for (const text of inputs) vectors.push(await vector(model, text));
  return vectors;
}

async function similarity(model, { inputs: { source_sentence: query, sentences } }) {
  const [own, ...others] = await embed(model, { inputs: [query, ...sentences] });
  return others.map((other) => other.reduce((sum, value, i) => sum + value * own[i], 0));
}

export const ANSWERS = { predict, fill, tag, embed, similarity };
