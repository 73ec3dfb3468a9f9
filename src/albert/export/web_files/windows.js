// Texts that are too long for one sequence: where they are cut (src/albert/tasks/windows.py and task.py).

// As few windows over `length` tokens as there is room for, as long as one another to a token, as [start, end].
export function evenSpans(length, room) {
  const windows = Math.max(1, Math.ceil(length / room));
  return Array.from({ length: windows }, (_, i) => [Math.floor((i * length) / windows), Math.floor(((i + 1) * length) / windows)]);
}

// Windows of `room` tokens, `stride` apart.
export function windowSpans(length, { room, stride, overlap }) {
  const step = Math.min(stride, Math.max(room - overlap, Math.floor((room + 1) / 2)));
  const spans = [[0, Math.min(room, length)]];
  while (spans.at(-1)[1] < length) {
    const start = spans.at(-1)[0] + step;
    spans.push([start, Math.min(start + room, length)]);
  }
  return spans;
}

// Of each token, the number of the window where it has most context: the first with the longest of its shorter sides.
export function bestContext(spans) {
  const owner = [], best = [];
  spans.forEach(([start, end], number) => {
    for (let token = start; token < end; token += 1) {
      const score = Math.min(token - start, end - 1 - token) + 0.01 * (end - start);
      if (score > (best[token] ?? -1)) {
        best[token] = score;
        owner[token] = number;
      }
    }
  });
  return owner;
}

// Two lists that fit together: the longer is shortened first, then both in turn.
export function truncatePair(first, second, room) {
  const excess = Math.max(0, first.length + second.length - room), difference = first.length - second.length;
  const longer = Math.min(Math.abs(difference), excess), rest = excess - longer;
  const fromFirst = (difference > 0 ? longer : 0) + Math.floor(rest / 2), fromSecond = excess - fromFirst;
  return [first.slice(0, first.length - fromFirst), second.slice(0, second.length - fromSecond)];
}
