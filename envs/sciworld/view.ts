/**
 * World in few tokens, for the local policy: the task, then what came of each turn, the state of things last. Names that
 * the task gives a part are replaced by that part, so that tasks of a kind read alike. Each listed action shows what
 * was read of what it is about: the place was visited, the thing is held, the last temperature lies above the limit.
 *
 *     goal temperature target wood at living room boxes bathroom here kitchen
 *     ok at hallway · pick up target ok held target · use thermometer target ok reads above
 *     candidates: go to living room place new · move target box above reads above
 *
 * It restates texts (memory.ts) and plans nothing.
 */
import { append } from '../../src/core/extremes.ts';
import type { AppendView, Rendered, SeenTurn } from '../../src/core/view.ts';
import { ACTIONS } from './actions.ts';
import { begin, type Memory, showsTarget, targetPart, updateMemory } from './memory.ts';
import { plain } from './names.ts';
import { BACK, MORE } from './stages.ts';
import { LEXICON, WORDS } from './vocabulary.ts';

/** Things of a look that a turn shows. */
const MAX_SEEN = 14;
/** Things carried that a turn shows, the newest. */
const MAX_HELD = 4;

const OWN_WORDS = `goal target at place boxes box above below conductive nonconductive dominant recessive here held focus
  reads solid liquid gas on off needed ok fail unclear new visited open closed see limit minus 100 150 200 other`;

const known = new Set([...WORDS, ...OWN_WORDS.split(/\s+/)]);

export const view: AppendView<Memory> = {
  id: 'sciworld/parts@2',
  mode: 'append',
  lexicon: LEXICON,
  words: [...known, MORE],
  track: { begin, reduce: updateMemory },
  prompt: (first) => renderPrompt(begin(first)),
  turn: renderTurn,
  candidate,
};

/** Words that have a token; `other` for what has none. */
function words(text: string): string {
  const parts = text.toLowerCase().match(/[a-z]+|\d+|\?/g) ?? [];
  return parts.map((part) => (known.has(part) || part === MORE || /^\d{1,2}$/.test(part) ? part : 'other')).join(' ');
}

/** A thing's name by the part it has in the task, else in words. */
function nameThing(name: string, { task, needed }: Memory): string {
  const bare = plain(name);
  const box = task.boxes.find((one) => bare.startsWith(plain(one.name)));
  if (box) return box.means === 'box' ? 'box' : `box ${box.means}`;
  const rest = targetPart(task, bare);
  if (rest !== undefined) return `target ${words(rest)}`.trim();
  if (needed.some((one) => bare.includes(plain(one)))) return `${words(bare)} needed`;
  return words(bare);
}

/** An action cut into its verb and the names after it. */
interface Cut {
  readonly verb: string;
  readonly names: readonly string[];
  readonly more: boolean;
}

/** Verbs as listed, longest first, with the joint between two things. */
const VERBS = ACTIONS.map(({ shown, arity }) => ({ verb: shown[0]!, joint: shown[1], arity })).sort(
  (a, b) => b.verb.length - a.verb.length,
);

function cut(action: string): Cut {
  const more = action.endsWith(` ${MORE}`);
  const text = more ? action.slice(0, -2) : action;
  const form = VERBS.find(({ verb }) => text === verb || text.startsWith(`${verb} `));
  if (!form) return { verb: text, names: [], more };
  const rest = text.slice(form.verb.length + 1);
  if (rest === '') return { verb: form.verb, names: [], more };
  if (form.arity < 2) return { verb: form.verb, names: [rest], more };
  const at = rest.lastIndexOf(` ${form.joint}`);
  const names = at < 0 ? [rest] : [rest.slice(0, at), rest.slice(at + 2 + form.joint!.length)];
  return { verb: form.verb, names: names.filter((name) => name !== ''), more };
}

const cuts = new Map<string, Cut>();
const MAX_CUTS = 20_000;

/** Cut of an action, cached: each turn needs the same ones again. */
function cutOf(action: string): Cut {
  let found = cuts.get(action);
  if (!found) {
    if (cuts.size >= MAX_CUTS) cuts.clear();
    found = cut(action);
    cuts.set(action, found);
  }
  return found;
}

/** Place that an action goes to, or whose door it opens. */
function placeOf({ verb, names }: Cut): string | undefined {
  if (verb === 'go to' || verb === 'teleport to') return names[0]?.replace(/^door to /, '');
  return verb === 'open' && names[0]?.startsWith('door to ') ? names[0].slice('door to '.length) : undefined;
}

function candidate(action: string, memory: Memory): string {
  if (action === BACK) return BACK;
  const parts = cutOf(action);
  const place = placeOf(parts);
  if (place !== undefined) return [parts.verb, describePlace(place, memory)].join(' ');
  const shown = parts.names.map((name) => nameThing(name, memory));
  const [first] = parts.names;
  if (first !== undefined && memory.held.some((name) => plain(name) === plain(first))) shown.push('held');
  if (shown.some((name) => name.startsWith('box '))) shown.push(readings(memory));
  if (parts.more) shown.push(MORE);
  return [words(parts.verb), ...shown].filter((text) => text !== '').join(' ');
}

function describePlace(place: string, { task, visited }: Memory): string {
  const roles = [place === task.place ? 'place' : '', place === task.boxPlace ? 'boxes' : ''];
  return [words(place), ...roles, visited.includes(place) ? 'visited' : 'new'].filter((text) => text !== '').join(' ');
}

/** Measurements of the task's own thing, and the state of the circuit as seen. */
function readings({ task, degrees, state, power }: Memory): string {
  const reads =
    degrees === null || task.limit === null ? '' : `reads ${degrees > task.limit ? 'above' : 'below'} ${state}`.trim();
  return [reads, task.goal === 'conductive' ? power : ''].filter((text) => text !== '').join(' ');
}

function renderPrompt(memory: Memory): Rendered {
  const { task } = memory;
  const segments = [`goal ${words(task.goal)}`];
  const places = new Map<string, number>();
  const put = (key: string, text: string) => {
    if (text === '') return;
    places.set(key, segments.length);
    segments.push(` ${text}`);
  };
  if (task.target !== '') put('target', `target ${words(task.target)}`);
  if (task.limit !== null) put('limit', `limit ${task.limit < 0 ? 'minus ' : ''}${Math.abs(task.limit)}`);
  if (task.place !== '') put('place', `place ${words(task.place)}`);
  if (task.boxPlace !== '') put('boxes', `boxes ${words(task.boxPlace)}`);
  put('here', `here ${words(memory.place)}`);
  put('see', describeSeen(memory));
  return {
    segments,
    focus: words(task.goal),
    mentions(action) {
      const texts = candidate(action, memory).split(' ');
      const found = ['target', 'place', 'boxes'].filter(
        (key) => texts.includes(key) || (key === 'boxes' && texts.includes('box')),
      );
      return found.flatMap((key) => places.get(key) ?? []).sort((a, b) => a - b);
    },
  };
}

/** Things of the last look, those with a part in the task first. */
function describeSeen(memory: Memory): string {
  const { task, seen, look } = memory;
  if (seen.length === 0) return '';
  const roles = showsTarget(task, look) ? ['target'] : [];
  for (const { name, means } of task.boxes)
    if (look.includes(name)) roles.push(means === 'box' ? 'box' : `box ${means}`);
  const others = seen.filter((name) => name !== 'agent' && name !== 'air' && !roles.includes(nameThing(name, memory)));
  return ['see', ...roles, ...others.slice(0, MAX_SEEN).map((name) => nameThing(name, memory))].join(' ');
}

function renderTurn({ action, observation }: SeenTurn, memory: Memory): string {
  const parts = cutOf(action);
  const shown = parts.names.slice(0, 2).map((name) => nameThing(name, memory));
  const place = placeOf(parts);
  const start = [words(parts.verb), ...(place === undefined ? shown : [words(place)])].filter((text) => text !== '');
  const texts = [...start, memory.outcome];
  if (/^This (?:room|outside)/.test(observation)) texts.push(describeSeen(memory));
  else if (/measures a temperature/.test(observation)) texts.push(readings(memory));
  else if (/you need to mix/.test(observation)) append(texts, ['needed', ...memory.needed.map(words)]);
  texts.push(memory.power === '' ? '' : memory.power, 'at', words(memory.place));
  if (memory.held.length > 0)
    append(texts, ['held', ...memory.held.slice(-MAX_HELD).map((name) => nameThing(name, memory))]);
  if (memory.focus !== '') texts.push('focus', nameThing(memory.focus, memory));
  return ` ${texts.filter((text) => text !== '').join(' ')}`;
}
