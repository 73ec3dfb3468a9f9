// The API, from the server's own OpenAPI description.

import { make } from './dom.js';

const key = sessionStorage.getItem('key') ?? '';
const response = await fetch('/openapi.json', { headers: key ? { Authorization: `Bearer ${key}` } : {} });
const spec = await response.json();
const resolve = (schema) => (schema.$ref ? spec.components.schemas[schema.$ref.split('/').pop()] : schema);

function kind(schema) {
  const own = resolve(schema);
  if (own.anyOf) return [...new Set(own.anyOf.map(kind))].join(' or ');
  if (own.enum) return own.enum.map((value) => JSON.stringify(value)).join(' or ');
  if (own.type === 'array') return `list of ${kind(own.items)}`;
  return own.type === 'object' && own.title ? own.title : own.type ?? 'any';
}

if (response.ok) {
  for (const [path, methods] of Object.entries(spec.paths)) {
    for (const [method, route] of Object.entries(methods)) {
      const details = make('details', {}, make('summary', {}, make('strong', {}, `${method.toUpperCase()} ${path}`), ` ${route.description ?? ''}`));
      const body = route.requestBody?.content['application/json']?.schema;
      if (body) {
        const { properties, required = [] } = resolve(body);
        details.append(make('ul', {}, ...Object.entries(properties).map(([name, field]) => make('li', {}, make('code', {}, name), `: ${kind(field)}`,
          required.includes(name) ? ' (required)' : '', field.description ? `. ${field.description}` : ''))));
      }
      document.getElementById('routes').append(details);
    }
  }
} else {
  document.getElementById('routes').append(make('p', { role: 'alert' }, 'The key is needed: enter it on the page first.'));
}
