#include "onebit/program/serve/page.h"

namespace onebit::serve {

// Texts get into the page as text nodes only, so that none can be markup. Places are counted in
// characters, which JavaScript's strings are not made of: Array.from() cuts a text into them.
const char* const kPageScript = R"js(
'use strict';
const byId = id => document.getElementById(id);
function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}
const shown = number => Math.abs(number) < 0.00095 && number !== 0
    ? number.toExponential(1) : number.toFixed(3);

// Where scores are probabilities, a bar is as long as its score. Others are compared by rank.
function bars(rows) {
  const list = element('div', {class: 'bars'});
  const isShare = rows.every(row => row.score >= 0 && row.score <= 1.000001);
  const most = Math.max(...rows.map(row => row.score));
  const least = Math.min(0, ...rows.map(row => row.score));
  for (const row of rows) {
    const part = isShare ? row.score : (row.score - least) / ((most - least) || 1);
    const picture = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
    picture.setAttribute('viewBox', '0 0 100 1');
    picture.setAttribute('preserveAspectRatio', 'none');
    picture.setAttribute('aria-hidden', 'true');
    const bar = document.createElementNS('http://www.w3.org/2000/svg', 'rect');
    bar.setAttribute('width', Math.min(100, Math.max(0, 100 * part)).toFixed(2));
    bar.setAttribute('height', '1');
    picture.append(bar);
    list.append(element('span', {class: 'name'}, row.name),
                element('span', {class: 'track'}, picture),
                element('span', {class: 'number', 'data-score': row.score}, shown(row.score)));
  }
  return list;
}

// The text with places marked that do not overlap: {start, end, label}.
function marked(text, places) {
  const characters = Array.from(text);
  const slice = (from, to) => characters.slice(from, to).join('');
  const whole = element('p', {class: 'text'});
  let at = 0;
  for (const place of [...places].sort((a, b) => a.start - b.start)) {
    whole.append(slice(at, place.start));
    const mark = element('mark', {}, slice(place.start, place.end));
    if (place.label) {
      mark.append(element('small', {}, place.label));
      mark.title = shown(place.score);
    }
    whole.append(mark);
    at = place.end;
  }
  whole.append(slice(at));
  return whole;
}

// Of each kind: its fields, the request that they make, the texts whose tokens are shown, two where
// the model reads them as one, and the elements that show an answer.
const kinds = {
  'embedding': {
    about: 'Compares two texts by the cosine of their vectors.',
    fields: [['first', 'Text', 2, 'A man is playing a guitar.'],
             ['second', 'Another text', 2, 'Someone makes music.']],
    path: '/similarity',
    body: f => ({inputs: {source_sentence: f.first, sentences: [f.second]}}),
    texts: f => [f.first, f.second],
    show: ([cosine]) => [
      element('h2', {}, 'Cosine'), element('p', {class: 'big', 'data-score': cosine},
                                           shown(cosine)),
      bars([{name: 'similarity', score: cosine}])],
  },
  'classifier': {
    about: 'Gives a text, or a pair of texts, its labels.',
    fields: [['first', 'Text', 3, 'What a wonderful day.'],
             ['second', 'Second text of a pair (may be empty)', 2, '']],
    path: '/predict',
    body: f => ({inputs: f.second ? [f.first, f.second] : f.first}),
    texts: f => f.second ? [[f.first, f.second]] : [f.first],
    show: labels => [element('h2', {}, 'Labels'),
                     bars(labels.map(one => ({name: one.label, score: one.score})))],
  },
  'reranker': {
    about: 'Orders texts by how well they fit a query.',
    fields: [['query', 'Query', 1, 'Where do penguins live?'],
             ['texts', 'Texts, one in each line', 4,
              'Penguins live in the south.\nA pen is a tool for writing.']],
    path: '/rerank',
    body: f => ({query: f.query, texts: lines(f.texts), return_text: true}),
    texts: f => lines(f.texts).map(text => [f.query, text]),
    show: ranks => [element('h2', {}, 'The best first'),
                    bars(ranks.map(one => ({name: one.text, score: one.score})))],
  },
  'tagger': {
    about: 'Marks what the words of a sentence are.',
    fields: [['sentence', 'Sentence', 3, 'Ada Lovelace was born in London.']],
    path: '/tag',
    body: f => ({inputs: f.sentence}),
    texts: f => [f.sentence],
    show: (tags, f) => [
      element('h2', {}, 'Tags'), marked(f.sentence, tags),
      tags.length ? bars(tags.map(one => ({name: `${one.text} (${one.label})`, score: one.score})))
                  : element('p', {class: 'faint'}, 'No word has a tag.')],
  },
  'answers': {
    about: 'Finds the answer to a question in a text.',
    fields: [['question', 'Question', 1, 'Where was Ada Lovelace born?'],
             ['context', 'Text', 5, 'Ada Lovelace was born in London. She wrote about engines.']],
    path: '/answer',
    body: f => ({question: f.question, context: f.context, top_n: 3}),
    texts: f => [[f.question, f.context]],
    show: (found, f) => [
      element('h2', {}, 'Answer'),
      found.answer === '' ? element('p', {class: 'faint'}, 'The text does not say.')
                          : marked(f.context, found.answers.slice(0, 1)
                              .map(({start, end}) => ({start, end}))),
      bars(found.answers.map(one => ({name: one.answer, score: one.score})))],
  },
  'masked words': {
    about: 'Predicts the words that are missing in a text.',
    fields: [['text', 'Text with [MASK]', 3, 'The capital of France is [MASK].']],
    path: '/fill',
    body: f => ({inputs: f.text}),
    texts: f => [f.text],
    show: masks => masks.flatMap((words, i) => [
      element('h2', {}, masks.length > 1 ? `Words for mask ${i + 1}` : 'Words'),
      bars(words.map(one => ({name: one.token_str, score: one.score})))]),
  },
};
const lines = text => text.split('\n').map(line => line.trim()).filter(line => line);

let models = [], chosen = null, asked = 0;

function headers() {
  const key = byId('key').value;
  const all = {'Content-Type': 'application/json'};
  if (key) all.Authorization = `Bearer ${key}`;
  return all;
}
async function answer(path, body) {
  const reply = await fetch(path, body === undefined
      ? {headers: headers()}
      : {method: 'POST', headers: headers(), body: JSON.stringify(body)});
  const text = await reply.text();
  if (!reply.ok) {
    let words = text;
    try {
      const json = JSON.parse(text);
      words = json.error || json.message || text;
    } catch { /* not JSON: shown as it is */ }
    const problem = new Error(`${reply.status}: ${words}`);
    problem.status = reply.status;
    throw problem;
  }
  return {json: JSON.parse(text), headers: reply.headers};
}
function showError(problem) {
  byId('error').textContent = problem instanceof TypeError
      ? 'The server does not answer.' : problem.message;
  byId('error').hidden = false;
}

function choose(model) {
  ++asked;
  chosen = model;
  const kind = kinds[model.kind];
  byId('about').textContent = kind ? kind.about : `This page cannot try a model of kind ${model.kind}.`;
  byId('form').hidden = !kind;
  for (const id of ['error', 'result', 'details']) byId(id).hidden = true;
  byId('fields').replaceChildren(...(kind ? kind.fields : []).map(([name, label, rows, text]) => {
    const mask = model.mask || '[MASK]';
    const field = element('textarea', {id: `field-${name}`, name, rows});
    field.value = text.replace('[MASK]', mask);
    return element('div', {class: 'field'},
                   element('label', {for: `field-${name}`}, label.replace('[MASK]', mask)), field);
  }));
}

// A masked word's name differs between models.
async function describe(all) {
  const info = (await answer('/info')).json;
  for (const one of info.models || [info]) {
    const model = all.find(other => other.id === one.model_id);
    if (model && one.model_type.fill) model.mask = one.model_type.fill.mask_token;
  }
}

async function load() {
  byId('error').hidden = true;
  try {
    const all = (await answer('/v1/models')).json.data;
    await describe(all);
    models = all;
  } catch (problem) {
    byId('access').hidden = problem.status !== 401 && byId('access').hidden;
    byId('form').hidden = true;
    byId('about').textContent = problem.status === 401
        ? 'This server asks for a key. Write it into the field above.' : '';
    if (problem.status !== 401 || byId('key').value) showError(problem);
    return;
  }
  byId('model').replaceChildren(
      ...models.map((model, i) => element('option', {value: i}, `${model.id} (${model.kind})`)));
  byId('choice').hidden = false;
  choose(models[0]);
}

// A word of a shell.
const quoted = text => `'${text.replaceAll("'", `'\\''`)}'`;
function command(path, body) {
  const parts = [`curl ${quoted(location.origin + path)}`, `-H 'Content-Type: application/json'`];
  if (byId('key').value) parts.push('-H "Authorization: Bearer $ONEBIT_API_KEY"');
  parts.push(`-d ${quoted(JSON.stringify(body))}`);
  return parts.join(' \\\n  ');
}

function showTokens(lists) {
  byId('tokens').replaceChildren(...lists.map(tokens => element('div', {},
      ...tokens.map(token => element('span', {
        class: token.special ? 'special' : '', title: `id ${token.id}`}, token.text)))));
}
function showTimes(headers) {
  const rows = [['total', 'x-total-time'], ['tokenization', 'x-tokenization-time'],
                ['waiting', 'x-queue-time'], ['inference', 'x-inference-time']];
  byId('times').replaceChildren(
      ...rows.filter(([, name]) => headers.has(name)).flatMap(([label, name]) => [
        element('dt', {}, label), element('dd', {}, `${headers.get(name)} ms`)]),
      element('dt', {}, 'tokens'), element('dd', {}, headers.get('x-compute-tokens') || '0'));
}

async function run() {
  const mine = ++asked, model = chosen, kind = kinds[model.kind];
  const fields = {};
  for (const [name] of kind.fields) fields[name] = byId(`field-${name}`).value;
  const body = kind.body(fields);
  if (models.length > 1) body.model = model.id;
  byId('run').disabled = true;
  byId('error').hidden = true;
  try {
    const reply = await answer(kind.path, body);
    const texts = kind.texts(fields).filter(text => text);
    const tokens = await Promise.all(texts.slice(0, 8).map(
        text => answer('/tokenize', {inputs: [text], model: model.id})));
    if (mine !== asked) return;
    byId('result').replaceChildren(...kind.show(reply.json, fields));
    showTokens(tokens.map(one => one.json[0]));
    showTimes(reply.headers);
    byId('curl').textContent = command(kind.path, body);
    byId('result').hidden = byId('details').hidden = false;
  } catch (problem) {
    if (mine !== asked) return;
    for (const id of ['result', 'details']) byId(id).hidden = true;
    showError(problem);
  } finally {
    byId('run').disabled = false;
  }
}

byId('form').addEventListener('submit', event => {
  event.preventDefault();
  run();
});
byId('form').addEventListener('keydown', event => {
  if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) byId('form').requestSubmit();
});
byId('model').addEventListener('change', () => choose(models[byId('model').value]));
byId('key').addEventListener('change', load);
byId('copy').addEventListener('click', async () => {
  try {
    await navigator.clipboard.writeText(byId('curl').textContent);
    byId('copy').textContent = 'Copied';
  } catch {  // only with TLS, or on this machine
    getSelection().selectAllChildren(byId('curl'));
  }
});
load();
)js";

}  // namespace onebit::serve
