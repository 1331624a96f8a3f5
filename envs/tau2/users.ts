/**
 * Users of an episode. The scripted one is ours: it needs no model and answers the same every time. It gives the reason of its call,
 * then what it knows, then its wishes, and agrees from there on. A user behind a language model would be another `SimulatedUser`.
 */
import type { MaybePromise } from '../../src/core/env.ts';
import { type Message, STOP, TRANSFER } from './orchestrator.ts';
import type { Arguments } from './python/calls.ts';
import type { InstructionPart, TauTask } from './tasks.ts';

/** Message of a user: a text, or calls of the user's own tools. */
export interface UserMessage {
  readonly text: string;
  readonly calls: readonly { readonly name: string; readonly args: Arguments }[];
}

/** User of one episode. */
export interface SimulatedUser {
  /** Makes the next message. @param messages of the episode so far; what the agent called is not for the user's eyes */
  next(messages: readonly Message[]): MaybePromise<UserMessage>;
}

/** Order in which the parts of the instructions are given; the domain's name is not. */
const PARTS: readonly (readonly InstructionPart[])[] = [
  ['reason_for_call'],
  ['known_info', 'unknown_info'],
  ['task_instructions'],
];
const AGREEMENT = 'Yes, please go ahead.';

/** Scripted user. */
export class ScriptedUser implements SimulatedUser {
  readonly #facts: readonly string[];
  readonly #maxTurns: number;
  readonly #isDone: () => boolean;
  #turns = 0;

  /**
   * @param maxTurns messages of the user, after which it stops
   * @param isDone asked once everything is said: true where the user has what it wants
   */
  constructor(task: TauTask, maxTurns: number, isDone: () => boolean) {
    this.#facts = factsOf(task);
    this.#maxTurns = maxTurns;
    this.#isDone = isDone;
  }

  next(messages: readonly Message[]): UserMessage {
    const turn = this.#turns++;
    if (isTransferred(messages)) return say(`I see. ${TRANSFER}`);
    if (turn >= this.#maxTurns) return say(`I have no more time. ${STOP}`);
    const fact = this.#facts[turn];
    if (fact !== undefined) return say(fact);
    return this.#isDone() ? say(`Thank you, that is all. ${STOP}`) : say(AGREEMENT);
  }
}

function say(text: string): UserMessage {
  return { text, calls: [] };
}

/** Texts of the first messages, at least one. */
function factsOf({ instructions }: TauTask): readonly string[] {
  if (typeof instructions === 'string') return [toFirstPerson(instructions)];
  const groups = PARTS.map((parts) => parts.flatMap((part) => instructions[part]?.trim() || []).join('\n'));
  const given = groups.filter((text) => text !== '').map(toFirstPerson);
  return given.length > 0 ? given : ['Hello.'];
}

const PERSONS: Readonly<Record<string, string>> = {
  'you are': 'I am',
  "you're": "I'm",
  "you'd": "I'd",
  "you'll": "I'll",
  "you've": "I've",
  yourself: 'myself',
  yours: 'mine',
  your: 'my',
  you: 'I',
};
const ADDRESS = new RegExp(`\\b(?:${Object.keys(PERSONS).join('|')})\\b`, 'gi');

/** Turns instructions to a user into words of the user: "You are Ann" → "I am Ann". Objects ("tells you") become "I" too. */
export function toFirstPerson(text: string): string {
  return text.replace(ADDRESS, (found) => {
    const words = PERSONS[found.toLowerCase()]!;
    return /^[A-Z]/.test(found) ? words[0]!.toUpperCase() + words.slice(1) : words;
  });
}

/** True once the agent has handed the user over. */
function isTransferred(messages: readonly Message[]): boolean {
  const failed = new Set(messages.flatMap(({ answers }) => (answers?.error ? [answers.id] : [])));
  return messages.some(({ role, calls }) => {
    return role === 'assistant' && calls.some(({ id, name }) => name === 'transfer_to_human_agents' && !failed.has(id));
  });
}
