// The page: choose a model and what to do, ask, look at the result. Who answers is up to server.js.

import { make, tabs } from './dom.js';
import { showDepth } from './depth.js';
import { call, timing } from './server.js';
import { VERBS, labelOf, verbsOf } from './verbs.js';

const at = (id) => document.getElementById(id);
const state = { models: [], model: null, verb: null, asked: 0, kept: {} };

function chooseModel(name) {
  state.model = state.models.find((one) => one.model_id === name);
  const { task, layers, width, max_input_length: longest } = state.model;
  tabs(at('models'), state.models.map((one) => [one.model_id, one.model_id]), name, chooseModel);
  at('models').hidden = state.models.length < 2;
  at('about').textContent = `${name}: ${task ?? 'not tuned for a task'}, ${layers} passes, ${width} wide, ${longest} tokens`;
  const verbs = verbsOf(state.model);
  chooseVerb(verbs.includes(state.verb) ? state.verb : verbs[0]);
}

function chooseVerb(verb) {
  state.verb = verb;
  state.asked += 1; // an answer that is still on its way belongs to another question
  tabs(at('verbs'), verbsOf(state.model).map((name) => [name, labelOf(name, state.model)]), verb, chooseVerb);
  const fields = VERBS[verb].fields(state.model).flatMap(({ name, label, value, tall }) => {
    const kept = state.kept[`${verb}.${name}`] ?? value;
    const field = make(tall ? 'textarea' : 'input', { id: `field-${name}`, name, spellcheck: 'false', ...(tall ? {} : { type: 'text' }) });
    field.value = kept;
    if (tall) field.rows = Math.min(10, Math.max(3, kept.split('\n').length + 1));
    field.addEventListener('input', () => { state.kept[`${verb}.${name}`] = field.value; });
    return [make('label', { for: `field-${name}` }, label), field];
  });
  at('ask').replaceChildren(...fields, make('div', { class: 'row' }, make('button', { type: 'submit' }, 'Ask'), make('span', { class: 'soft keys' }, 'Ctrl + Enter')));
  clear();
}

function clear() {
  at('result').replaceChildren();
  at('depth').hidden = true;
  at('problem').textContent = '';
  at('timing').textContent = '';
}

async function ask(event) {
  event.preventDefault();
  const verb = VERBS[state.verb], name = state.verb, base = `/models/${encodeURIComponent(state.model.model_id)}`;
  const given = Object.fromEntries([...at('ask').querySelectorAll('[name]')].map((field) => [field.name, field.value]));
  const body = verb.body(given), number = (state.asked += 1), button = at('ask').querySelector('button');
  clear();
  button.disabled = true;
  try {
    const began = performance.now();
    const { value, headers } = await call(`${base}/${verb.route}`, body);
    const took = performance.now() - began;
    if (number !== state.asked) return;
    at('result').replaceChildren(...verb.show(value, given, state.model).filter((child) => child !== null));
    at('timing').textContent = timing(took, headers);
    if (verb.depth && state.model.depth) {
      const depths = await call(`${base}/depth`, { verb: name === 'search' ? 'similarity' : name, request: body });
      if (number === state.asked) showDepth(at('depth'), depths.value);
    }
  } catch (problem) {
    if (number === state.asked) at('problem').textContent = problem.message;
  } finally {
    button.disabled = false;
  }
}

async function start() {
  at('problem').textContent = '';
  try {
    state.models = (await call('/models')).value;
    chooseModel(state.models[0].model_id);
  } catch (problem) {
    at('problem').textContent = problem.message;
  }
}

at('ask').addEventListener('submit', ask);
document.addEventListener('key', start);
document.addEventListener('keydown', (event) => {
  if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) at('ask').requestSubmit();
});
start();
