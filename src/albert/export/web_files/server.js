// Who answers the page: the model in this folder, run by onnxruntime-web in the browser. The requests and answers are
// those of `albert serve`.

import * as ort from './runtime/ort.js';
import { ANSWERS } from './answers.js';
import { Tokenizer } from './tokenizer.js';

const LONGEST = 100_000; // characters of a request: more would stop the page for long

async function read(path, kind) {
  const response = await fetch(path);
  if (!response.ok) throw new Error(`${path}: status ${response.status}`);
  return response[kind]();
}

class Model {
  constructor(about, tokenizer, session) {
    Object.assign(this, { about, tokenizer, session, tokens: 0, cut: false });
  }

  static async load() {
    const about = await read('model.json', 'json');
    const [wasm, weights, vocabulary] = await Promise.all([
      read('runtime/ort.wasm', 'arrayBuffer'), read(about.file, 'arrayBuffer'), read('vocabulary.json', 'json'),
    ]);
    ort.env.wasm.wasmBinary = wasm;
    ort.env.wasm.numThreads = 1; // more would need headers that plain file servers don't send
    return new Model(about, new Tokenizer(vocabulary), await ort.InferenceSession.create(new Uint8Array(weights)));
  }

  // [CLS] first [SEP], or [CLS] first [SEP] second [SEP]: what the model says of it, by the names of its outputs. `marked`: the tokens of first that are of segment 1.
  async run(first, second = null, marked = []) {
    const { cls, sep } = this.tokenizer.special;
    const ids = [cls, ...first, sep, ...(second ? [...second, sep] : [])];
    const tensor = (value) => new ort.Tensor('int64', BigInt64Array.from(ids, (id, i) => BigInt(value(id, i))), [1, ids.length]);
    this.tokens += ids.length;
    return this.session.run({
      input_ids: tensor((id) => id), attention_mask: tensor(() => 1), token_type_ids: tensor((_, i) => Number(i >= first.length + 2 || Boolean(marked[i - 1]))),
    });
  }
}

let loading = null, last = Promise.resolve();

// `/models`, or `/models/NAME/ROUTE` with what is asked: one after the other.
export function call(path, body) {
  const own = last.then(() => answer(path, body));
  last = own.catch(() => {});
  return own;
}

async function answer(path, body) {
  const model = await (loading ??= Model.load());
  if (!body) return { value: [model.about] };
  if (JSON.stringify(body).length > LONGEST) throw new Error(`more than ${LONGEST.toLocaleString('en')} characters: use albert predict`);
  Object.assign(model, { tokens: 0, cut: false });
  const value = await ANSWERS[path.split('/').pop()](model, body);
  return { value, headers: { tokens: model.tokens, cut: model.cut } };
}

export const timing = (took, { tokens, cut }) => `${took.toFixed(0)} ms; ${tokens} tokens${cut ? '; too long, and cut' : ''}`;
