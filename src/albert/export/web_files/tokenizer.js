// Texts to ids as src/albert/tokenizer does it, with the data of vocabulary.json: ALBERT's normalisation, then
// SentencePiece's own, then the best way to cut the text into pieces (unigram). Single precision is SentencePiece's:
// where two ways score nearly the same, rounding decides.

export const SPACE = '\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000'; // to Python
const MARKER = '\u2581'; // where a word begins
const SYMBOL_SCORE = 0; // of a piece that is always taken whole
const UNKNOWN_PENALTY = 10;

// SentencePiece's compiled rules: a double-array trie (Darts) over UTF-8 bytes, and the texts that it points to.
class Rules {
  constructor(base64) {
    const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
    const size = bytes.length ? new DataView(bytes.buffer).getUint32(0, true) : 0;
    this.units = new Uint32Array(bytes.buffer.slice(4, 4 + size));
    this.texts = bytes.subarray(4 + size);
  }

  // The longest rule that fits at a place: how many bytes it takes, and what they become; null if there is none.
  find(bytes, at) {
    const { units, texts } = this;
    let node = 0, found = null;
    for (let end = at; units.length; end += 1) {
      const unit = units[node];
      const base = node ^ ((unit >>> 10) << ((unit & 0x200) >>> 6));
      if (end > at && unit & 0x100) found = [end - at, units[base] & 0x7fffffff];
      node = base ^ bytes[end];
      if (!(end < bytes.length && bytes[end] && node < units.length && (units[node] & 0x800000ff) === bytes[end])) break;
    }
    return found && [found[0], texts.subarray(found[1], texts.indexOf(0, found[1]))];
  }
}

// Ids by their pieces, and -1 for what only begins a piece: whoever looks for longer and longer pieces knows when to stop.
function byBeginning(entries) {
  const found = new Map(entries);
  for (const [piece] of entries) {
    for (let end = piece.length - 1; end > 0 && !found.has(piece.slice(0, end)); end -= 1) found.set(piece.slice(0, end), -1);
  }
  return found;
}

const widthAt = (text, at) => (text.codePointAt(at) > 0xffff ? 2 : 1);

export class Tokenizer {
  constructor({ pieces, scores, text, symbols, special, commas, charsmap, marks, lower_case: lower, keep_accents: accents }) {
    Object.assign(this, { pieces, special, lower, accents });
    this.rules = new Rules(charsmap);
    this.marks = new RegExp(marks, 'gu');
    this.commas = new Map(Object.entries(commas).map(([id, ids]) => [Number(id), ids]));
    this.ids = byBeginning(text.map((id) => [pieces[id], id]));
    this.symbols = byBeginning(symbols.map((id) => [pieces[id], id]));
    this.scores = Float32Array.from(scores);
    const learnt = text.filter((id) => !symbols.includes(id)).map((id) => scores[id]);
    this.unknownScore = Math.fround(learnt.reduce((one, other) => Math.min(one, other)) - UNKNOWN_PENALTY);
    for (const id of symbols) this.scores[id] = SYMBOL_SCORE;
  }

  encode(text) {
    return this.cut(this.escape(this.normalise(text))).flatMap((id) => this.commas.get(id) ?? [id]);
  }

  // src/albert/tokenizer/normalisation.py
  normalise(given) {
    let text = given.replace(new RegExp(`[${SPACE}]+`, 'gu'), ' ').replace(/^ | $/g, '').replaceAll('``', '"').replaceAll("''", '"');
    if (/[^\0-\x7f]/.test(text)) {
      text = text.replace(/\p{Surrogate}/gu, '\ufffd');
      if (this.lower) text = text.replaceAll('Σ', 'σ').toLowerCase();
      if (!this.accents) text = text.normalize('NFKD').replace(this.marks, '');
    }
    return this.lower ? text.toLowerCase() : text;
  }

  // SentencePiece's normaliser: its rules, one space between words, a marker for each space and before the text.
  escape(text) {
    let escaped = '', spaced = true;
    for (const part of this.replaced(text)) {
      const own = spaced ? part.replace(/^ +/, '') : part;
      if (own !== '') spaced = own.endsWith(' ');
      escaped += own;
    }
    return (MARKER + escaped.replaceAll(' ', MARKER)).replace(/\u2581+$/, '');
  }

  * replaced(text) {
    const writer = new TextEncoder(), reader = new TextDecoder('utf-8', { ignoreBOM: true });
    const bytes = writer.encode(text);
    for (let at = 0, byte = 0; at < text.length;) {
      const symbol = this.symbolAt(text, at);
      const rule = symbol ? null : this.rules.find(bytes, byte);
      const taken = rule ? reader.decode(bytes.subarray(byte, byte + rule[0])) : symbol || text.slice(at, at + widthAt(text, at));
      yield rule ? reader.decode(rule[1]) : taken;
      at += taken.length;
      byte += rule ? rule[0] : writer.encode(taken).length;
    }
  }

  symbolAt(text, at) {
    let symbol = '';
    for (let end = at + 1; end <= text.length; end += 1) {
      const id = this.symbols.get(text.slice(at, end));
      if (id === undefined) break;
      if (id >= 0) symbol = text.slice(at, end);
    }
    return symbol;
  }

  // Viterbi: the best path to each place of the text, then back along it; neighbours that are unknown become one.
  cut(text) {
    const size = text.length, { unk } = this.special;
    const best = new Float32Array(size + 1), from = new Int32Array(size + 1).fill(-1), last = new Int32Array(size + 1);
    const offer = (start, end, id, score) => {
      if (from[end] >= 0 && score <= best[end]) return;
      best[end] = score;
      from[end] = start;
      last[end] = id;
    };
    for (let start = 0, width; start < size; start += width) {
      width = widthAt(text, start);
      for (let end = start + 1; end <= size; end += 1) {
        const id = this.ids.get(text.slice(start, end));
        if (id === undefined) break;
        if (id >= 0) offer(start, end, id, Math.fround(best[start] + this.scores[id]));
      }
      if (!(this.ids.get(text.slice(start, start + width)) >= 0)) offer(start, start + width, unk, Math.fround(best[start] + this.unknownScore));
    }
    const ids = [];
    for (let end = size; end > 0; end = from[end]) if (last[end] !== unk || ids.at(-1) !== unk) ids.push(last[end]);
    return ids.reverse();
  }
}
