// Who answers the page: this server, with the key that it asks for. In the folder of `albert export web` another file of
// this name answers, in the browser.

const form = document.getElementById('key');
let key = sessionStorage.getItem('key') ?? '';

export async function call(path, body) {
  const headers = { ...(body ? { 'Content-Type': 'application/json' } : {}), ...(key ? { Authorization: `Bearer ${key}` } : {}) };
  const response = await fetch(path, { method: body ? 'POST' : 'GET', headers, body: body && JSON.stringify(body) });
  form.hidden = response.status !== 401;
  const value = await response.json();
  if (!response.ok) throw new Error(value.error ?? value.message ?? `status ${response.status}`);
  return { value, headers: response.headers };
}

export function timing(took, headers) {
  const part = (header) => `${Number(headers.get(header)).toFixed(1)} ms`;
  const cut = Number(headers.get('x-truncated')) > 0 ? '; too long, and cut' : '';
  return `${took.toFixed(0)} ms in all: ${part('x-inference-time')} in the model, ${part('x-queue-time')} in the queue; ${headers.get('x-compute-tokens')} tokens${cut}`;
}

form.addEventListener('submit', (event) => {
  event.preventDefault();
  key = document.getElementById('key-field').value;
  sessionStorage.setItem('key', key);
  document.dispatchEvent(new Event('key'));
});
