/**
 * Requests in words, as the scripted user understands them: which of its tools a text of the agent asks for. The rule is ours, and
 * simple: each sentence asks for one tool at most, by its name, or by a verb and the words of its name.
 */
import type { Tool } from '../../src/core/model-call.ts';
import { isRecord } from '../../src/core/record.ts';
import { followReferences } from '../../src/core/schema-check.ts';
import type { Arguments } from './python/calls.ts';

/** Call that a text asks for. `isDone`: the switch stands already as it is wanted, so nothing is to be called. */
export interface RequestedCall {
  readonly name: string;
  readonly args: Arguments;
  readonly isDone: boolean;
}

/** Knowledge of a domain that the rule needs. */
export interface RequestReading {
  /** Values of arguments that are free texts, by the argument's name; the first that a sentence has is taken. */
  readonly words: Readonly<Record<string, readonly string[]>>;
  /** State of the switch that a tool toggles; undefined for other tools. */
  isOn(tool: string): boolean | undefined;
}

/** Words by which a sentence asks for a tool, by the verb that the tool's name begins with. */
const VERBS: Readonly<Record<string, readonly string[]>> = {
  can: ['can', 'try', 'test', 'check', 'send'],
  check: ['check', 'look', 'see', 'what', 'which', 'show', 'tell', 'verify', 'confirm', 'is', 'are', 'doe'],
  connect: ['connect', 'on', 'enable'],
  disconnect: ['disconnect', 'off', 'disable'],
  grant: ['grant', 'give', 'allow'],
  make: ['make', 'pay'],
  reboot: ['reboot', 'restart'],
  reseat: ['reseat', 'reinsert', 'remove'],
  reset: ['reset'],
  run: ['run', 'test', 'do', 'perform', 'measure'],
  set: ['set', 'change', 'switch'],
  toggle: ['toggle', 'turn', 'switch', 'enable', 'disable', 'activate', 'deactivate'],
};
/** Words of names that a sentence may leave out. */
const OPTIONAL = new Set(['status', 'setting', 'mode', 'preference', 'card', 'device', 'request', 'send'].map(stem));
const ON = /\b(?:on|enable|activate)\b/i;
const OFF = /\b(?:off|disable|deactivate)\b/i;
/** Sentences about what is not to be done, or about what the agent itself has done. */
const NEGATED = /\b(?:do not|don't|never|without|no need)\b/i;
const ABOUT_ITSELF = /^\s*(?:i|we)\b(?!.*\byou to\b)/i;

/** Finds the calls that a text asks for, in the order of its sentences, each once. */
export function findRequests(text: string, tools: readonly Tool[], reading: RequestReading): readonly RequestedCall[] {
  const found = new Map<string, RequestedCall>();
  for (const sentence of text.split(/[.!?;\n]+/)) {
    if (NEGATED.test(sentence) || ABOUT_ITSELF.test(sentence)) continue;
    const tool = findTool(sentence, tools);
    const args = tool && findArguments(sentence, tool, reading.words);
    if (!args) continue;
    const wanted = ON.test(sentence) === OFF.test(sentence) ? undefined : ON.test(sentence);
    const isDone = wanted !== undefined && reading.isOn(tool.name) === wanted;
    const key = JSON.stringify([tool.name, ...args]);
    if (!found.has(key)) found.set(key, { name: tool.name, args, isDone });
  }
  return [...found.values()];
}

/** Tool that a sentence asks for: the one that shares most words with it by its name, then by its description. */
function findTool(sentence: string, tools: readonly Tool[]): Tool | undefined {
  const named = tools.filter(({ name }) => sentence.includes(name)).sort((a, b) => b.name.length - a.name.length);
  if (named.length > 0) return named[0];
  const words = new Set(wordsOf(sentence));
  let best: { readonly tool: Tool; readonly score: number } | undefined;
  for (const tool of tools) {
    const [verb = '', ...objects] = wordsOf(tool.name.replaceAll('_', ' '));
    if (!(VERBS[verb] ?? [verb]).some((one) => words.has(one))) continue;
    if (!objects.every((word) => words.has(word) || OPTIONAL.has(word))) continue;
    const described = new Set(wordsOf(tool.description ?? ''));
    const byName = [verb, ...objects].filter((word) => words.has(word)).length;
    const byDescription = [...words].filter((word) => described.has(word)).length;
    const score = 100 * byName + byDescription;
    if (score > (best?.score ?? 0)) best = { tool, score };
  }
  return best?.tool;
}

/** Arguments that a sentence names; undefined where it lacks one that the tool requires. */
function findArguments(sentence: string, { parameters }: Tool, known: RequestReading['words']): Arguments | undefined {
  const words = new Set(wordsOf(sentence));
  const args = new Map<string, string>();
  const required = Array.isArray(parameters.required) ? parameters.required.map(String) : [];
  for (const name of required) {
    const property = isRecord(parameters.properties) ? parameters.properties[name] : undefined;
    const value = [...(known[name] ?? listedValues(property, parameters))]
      .sort((a, b) => wordsOf(b).length - wordsOf(a).length)
      .find((one) => sentence.includes(one) || keyWordsOf(one).every((word) => words.has(word)));
    if (value === undefined) return undefined;
    args.set(name, value);
  }
  return args;
}

/** Words of a value that a sentence must have: `4g_only` is meant by 4G. */
function keyWordsOf(value: string): string[] {
  return wordsOf(value).filter((word) => word !== 'only' && word !== 'preferred');
}

/** Values that a schema lists, also as one of several alternatives. */
function listedValues(schema: unknown, root: Tool['parameters']): readonly string[] {
  const { enum: listed, anyOf } = followReferences(schema, root);
  if (Array.isArray(listed)) return listed.map(String);
  return Array.isArray(anyOf) ? anyOf.flatMap((one) => listedValues(one, root)) : [];
}

/** Words of a text in one form: small letters, no plural, `wifi`, `mms` and `payment` by one name. */
function wordsOf(text: string): string[] {
  const plain = text
    .toLowerCase()
    .replace(/wi-fi/g, 'wifi')
    .replace(/picture messag(?:e|es|ing)/g, 'mms')
    .replace(/\bpay\b/g, 'pay payment')
    .replaceAll('_', ' ');
  return [...plain.matchAll(/[a-z0-9]+/g)].map(([word]) => stem(word));
}

function stem(word: string): string {
  return word.length > 2 && word.endsWith('s') && !word.endsWith('ss') && word !== 'mms' ? word.slice(0, -1) : word;
}
