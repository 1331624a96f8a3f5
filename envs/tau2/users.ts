/**
 * Users of an episode. The scripted one is ours: it needs no model and answers the same every time. It gives the reason of its call,
 * then what it knows, then its wishes, and agrees from there on. Asked to use a tool of its own, it does, and says what came of it.
 * A user behind a language model is `ModelUser` (model-user.ts).
 */
import type { MaybePromise } from '../../src/core/env.ts';
import { type Message, type MessageCall, STOP, TRANSFER } from './orchestrator.ts';
import type { RequestedCall } from './phone-requests.ts';
import type { InstructionPart, TauTask } from './tasks.ts';

/** Message of a user: a text, or calls of the user's own tools. */
export interface UserMessage {
  readonly text: string;
  readonly calls: readonly Omit<MessageCall, 'id'>[];
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

/** Settings of a scripted user. */
export interface ScriptOptions {
  /** Texts of the user, after which it stops. */
  readonly maxTurns: number;
  /** Asked once everything is said: true where the user has what it wants. */
  readonly isDone: () => boolean;
  /** Finds the calls that a text of the agent asks for; absent where the user has no tools. */
  readonly findRequests?: ((text: string) => readonly RequestedCall[]) | undefined;
}

/** Scripted user. */
export class ScriptedUser implements SimulatedUser {
  readonly #facts: readonly string[];
  readonly #options: ScriptOptions;
  #given = 0;
  #turns = 0;

  constructor(task: TauTask, options: ScriptOptions) {
    this.#facts = factsOf(task);
    this.#options = options;
  }

  next(messages: readonly Message[]): UserMessage {
    const { maxTurns, isDone, findRequests = () => [] } = this.#options;
    const results = ownResults(messages);
    const isOver = this.#turns >= maxTurns;
    if (results.length === 0 && !isOver && !isTransferred(messages)) {
      const asked = findRequests(messages.at(-1)?.content ?? '');
      const open = asked.filter((one) => !one.isDone);
      if (open.length > 0) return { text: '', calls: open.map(({ name, args }) => ({ name, args })) };
      if (asked.length > 0) return this.#say('It is as you want it already.');
    }
    if (isTransferred(messages)) return this.#say(`I see. ${TRANSFER}`);
    if (isOver) return this.#say(`I have no more time. ${STOP}`);
    if (results.length > 0) return this.#say(results.join('\n'));
    const fact = this.#facts[this.#given];
    if (fact !== undefined) {
      this.#given++;
      return this.#say(fact);
    }
    return this.#say(isDone() ? `Thank you, that is all. ${STOP}` : AGREEMENT);
  }

  #say(text: string): UserMessage {
    this.#turns++;
    return { text, calls: [] };
  }
}

/** Results of the user's own calls that stand at the end. */
function ownResults(messages: readonly Message[]): readonly string[] {
  const last = messages.findLastIndex(({ answers }) => answers?.side !== 'user');
  return messages.slice(last + 1).map(({ content }) => content);
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
