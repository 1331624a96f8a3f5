/**
 * Memory of an episode as a reader of its texts has it: the task, the place, what was seen there, carried, focused on,
 * measured and read. It restates texts and plans nothing; view and drawing share it.
 */
import type { First } from '../../src/core/env.ts';
import type { SeenTurn } from '../../src/core/view.ts';
import { plain } from './names.ts';
import { readTaskDescription, type TaskDescription } from './task-description.ts';

/** Memory of an episode: what its texts have shown so far. */
export interface Memory {
  readonly task: TaskDescription;
  readonly place: string;
  readonly visited: readonly string[];
  /** Doors of this place as last seen, by the place behind: open or not. */
  readonly doors: ReadonlyMap<string, boolean>;
  /** Heads of the lines of the last look at this place; empty before it. */
  readonly seen: readonly string[];
  /** Whole text of that look. */
  readonly look: string;
  /** Raw names of what was taken. */
  readonly held: readonly string[];
  readonly focus: string;
  /** Last temperature read of the task's own thing, in °C. */
  readonly degrees: number | null;
  /** State that its name showed at that time. */
  readonly state: 'solid' | 'liquid' | 'gas' | '';
  /** Circuit in the last look: a component is on, or all are off. */
  readonly power: 'on' | 'off' | '';
  /** Inputs that a recipe named. */
  readonly needed: readonly string[];
  /** Result of the last action in a word. */
  readonly outcome: 'ok' | 'fail' | 'unclear';
}

/** Texts of what could not be done. */
const REFUSED =
  /^(?:No known action|Unknown action|The .* (?:is not|is already|is empty|can't|isn't|aren't able|could not|doesn't|does not|appears)|It's not|Its not|I'm not sure|You can't|That can't|That is already|Mixing the contents .* does not|There is only one|That container is empty|Connections must|You must disconnect|Something can't|That thing doesn't)|is already connected|is not flammable/;

/** Memory after the opening, which states the task. */
export function begin({ observation }: First): Memory {
  const end = observation.indexOf('\n');
  const empty: Memory = {
    task: readTaskDescription(end < 0 ? observation : observation.slice(0, end)),
    place: '',
    visited: [],
    doors: new Map(),
    seen: [],
    look: '',
    held: [],
    focus: '',
    degrees: null,
    state: '',
    power: '',
    needed: [],
    outcome: 'ok',
  };
  return rememberLook(empty, observation.slice(end + 1));
}

/** Memory after a whole turn; a stage changes nothing. */
export function updateMemory(memory: Memory, { action, observation, partial }: SeenTurn): Memory {
  if (partial) return memory;
  if (observation.startsWith('Ambiguous request')) return { ...memory, outcome: 'unclear' };
  const next: Memory = { ...memory, outcome: REFUSED.test(observation) ? 'fail' : 'ok' };
  const went = /^You (?:move|teleport) to the (.+)\.$|^You move through the .+ to the (.+)\.$/.exec(observation);
  if (went) return rememberArrival(next, went[1] ?? went[2]!);
  const moved = /^(?:\(disconnecting .*?\))?You move the (.+) to the (.+?)\.$/.exec(observation);
  if (moved) return rememberCarried(next, moved[1]!, moved[2]!);
  const focused = /^You focus on the (.+)\.$/.exec(observation);
  if (focused) return { ...next, focus: focused[1]! };
  if (observation === 'You reset the goal progress and focus.') return { ...next, focus: '' };
  const measured = /measures a temperature of (-?\d+) degrees celsius$/.exec(observation);
  if (measured) {
    const on = / (?:on|with) (.+)$/.exec(action)?.[1] ?? '';
    return targetPart(memory.task, on) === undefined ? next : read(next, on, Number(measured[1]));
  }
  const recipe = /you need to mix (.+)\.$/.exec(observation);
  if (recipe) return { ...next, needed: recipe[1]!.split(', ') };
  if (observation.startsWith('The door is now ')) return doorSet(next, action, observation.endsWith('open.'));
  if (observation.startsWith('In your inventory')) return { ...next, held: linesOf(observation).map(head) };
  return /^This (?:room|outside location) is called/.test(observation) ? rememberLook(next, observation) : next;
}

function rememberArrival(memory: Memory, place: string): Memory {
  const doors = new Map([[memory.place, true]]);
  const visited = memory.visited.includes(place) ? memory.visited : [...memory.visited, place];
  return { ...memory, place, visited, doors, seen: [], look: '', power: '' };
}

function rememberCarried(memory: Memory, thing: string, into: string): Memory {
  const held = memory.held.filter((name) => name !== thing);
  return { ...memory, held: into === 'inventory' ? [...held, thing] : held };
}

function read(memory: Memory, name: string, degrees: number): Memory {
  return { ...memory, degrees, state: stateOf(name) };
}

/** State that a name in a text shows. */
function stateOf(text: string): Memory['state'] {
  if (/\b(?:liquid|water)\b/.test(text)) return 'liquid';
  if (/\b(?:solid|ice)\b/.test(text)) return 'solid';
  return /\b(?:gaseous|steam)\b/.test(text) ? 'gas' : '';
}

function doorSet(memory: Memory, action: string, open: boolean): Memory {
  const place = /door to (.+)$/.exec(action)?.[1];
  return place === undefined ? memory : { ...memory, doors: new Map(memory.doors).set(place, open) };
}

function rememberLook(memory: Memory, look: string): Memory {
  const place = /is called the (.+?)\. (?:In it|Here)/.exec(look)?.[1] ?? memory.place;
  const [things = '', doors = ''] = look.split('You also see:');
  const seen = linesOf(things).map(head);
  const ways = linesOf(doors).flatMap((line) => {
    const [, to, state] = /door to the (.+) \(that is (open|closed)\)/.exec(line) ?? [];
    return to === undefined ? [] : [[to, state === 'open'] as const];
  });
  const power = /, which is on\b/.test(things) ? 'on' : /, which is off\b/.test(things) ? 'off' : '';
  const visited = memory.visited.includes(place) ? memory.visited : [...memory.visited, place];
  return { ...memory, place, visited, seen, look: things, doors: new Map(ways), power };
}

/** Lines of a list, each begun by a tab. */
function linesOf(text: string): string[] {
  return [...text.matchAll(/^\t(.*)$/gm)].map(([, line]) => line!);
}

/** Thing that a line of a list is about: "a bowl (containing …)" → "bowl". */
function head(line: string): string {
  return plain(line.replace(/[.,(:].*$/, '').replace(/^(?:a |an |the |A )?(?:substance called )?/, ''));
}

const STATES = /\b(?:solid|liquid|gaseous|burned|melted) /g;

/** Name without its state: "liquid tin" → "tin", "ice" → "water". */
function stateless(name: string): string {
  const bare = plain(name).replace(STATES, '');
  return bare === 'ice' || bare === 'steam' ? 'water' : bare;
}

/**
 * Rest of a name after the task's own thing: '' for the thing itself, "terminal 1" or "in cup" for a part of it or a
 * place it is in; undefined for anything else.
 */
export function targetPart({ target }: TaskDescription, name: string): string | undefined {
  if (target === '') return undefined;
  const [own, other] = [stateless(target), stateless(name)];
  if (other === own) return '';
  const rest = other.startsWith(`${own} `) ? other.slice(own.length + 1) : '';
  return /^(?:in|on|terminal|anode|cathode)\b/.test(rest) ? rest : undefined;
}

/** True when a look shows the task's own thing. */
export function showsTarget({ target }: TaskDescription, look: string): boolean {
  if (target === '') return false;
  const name = stateless(target).replace(/[^a-z0-9 ]/g, '.');
  const text = look.toLowerCase().replace(STATES, '');
  return new RegExp(`(?:\\ban? |called |containing | is: |[(,] ?|\t)${name}(?=[,.)\n]| \\(| titled|$)`, 'm').test(text);
}
