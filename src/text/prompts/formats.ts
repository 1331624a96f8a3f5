/**
 * Formats of a model's answer: one row each with the instructions to the model, the printer and the parser.
 * `parse(print(thought, action))` gives the action back, and any other text is read as an action or refused with a
 * reason that can be shown to the model; nothing throws.
 */

import { parseJson } from '../../core/json-text.ts';
import type { ActionForm, FormatId, WorldPrompt } from '../../core/prompt.ts';
import { isRecord } from '../../core/record.ts';
import { type Call, callOf, fill, OTHER, parametersOf } from './action-form.ts';
import { parseCall, printCall } from './python-call.ts';

/** Parsed answer: the action it names and the thought beside it (empty where there is none), or the reason why it names none. */
export type Parsed = { readonly action: string; readonly thought: string } | { readonly error: string };

export interface PromptFormat {
  readonly id: FormatId;
  /** Describes the form of an answer for the instructions. */
  describe(world: WorldPrompt): string;
  print(thought: string, action: string, world: WorldPrompt): string;
  parse(text: string, world: WorldPrompt): Parsed;
}

const action: PromptFormat = {
  id: 'action',
  describe: () => 'Answer with one action and nothing else.',
  print: (_thought, text) => text,
  parse(text, world) {
    const read = splitReasoning(text);
    return 'error' in read ? read : actionOf(read.answer, world, read.thought);
  },
};

const react: PromptFormat = {
  id: 'react',
  describe: () =>
    'Answer in exactly this form, with one action:\n\nThought:\n<your reasoning>\n\nAction:\n<your action>',
  print: (thought, action) => `Thought:\n${thought}\n\nAction:\n${action}`,
  parse(text, world) {
    const read = splitReasoning(text);
    if ('error' in read) return read;
    const parts = read.answer.split(/\bAction:/);
    if (parts.length < 2) return { error: "The answer has no 'Action:'. End it with 'Action:' and one action." };
    if (parts.length > 2) return { error: "Only one 'Action:' is allowed in an answer." };
    const line = parts[1]!.replace(/^\s*\**\s*/, '').split('\n', 1)[0]!;
    return actionOf(line, world, parts[0]!.replace(/^\s*Thought:/, ''));
  },
};

const think: PromptFormat = {
  id: 'think',
  describe: () =>
    'First reason between <think> and </think>. Then write one action on a single line, and nothing after it.',
  print: (thought, action) => `<think>\n${thought}\n</think>\n${action}`,
  parse(text, world) {
    if (!text.includes(THINK_END))
      return { error: 'Reason between <think> and </think> first, then write one action.' };
    const read = splitReasoning(text);
    if ('error' in read) return read;
    const lines = read.answer.trim().split('\n');
    if (lines.length > 1) return { error: 'Write one action on a single line after </think>.' };
    return actionOf(lines[0]!, world, read.thought);
  },
};

const functionCalling: PromptFormat = {
  id: 'function-calling',
  describe: (world) =>
    [
      'Answer with one JSON object and nothing else:',
      '{"thought": "<your reasoning>", "function_name": "<name>", "arguments": {"<parameter>": "<value>"}}',
      'The functions:',
      ...formsOf(world).map((form) => `- ${form.name}(${parametersOf(form).join(', ')}): ${form.meaning}`),
    ].join('\n'),
  print(thought, action, world) {
    const { form, args } = callOf(formsOf(world), action);
    return JSON.stringify({ thought, function_name: form.name, arguments: args });
  },
  parse(text, world) {
    const read = splitReasoning(text);
    if ('error' in read) return read;
    const object = jsonObject(read.answer);
    if (!object) return { error: 'The answer is not a JSON object.' };
    const { function_name: name, arguments: args, thought } = object;
    if (typeof name !== 'string') return { error: 'The JSON object has no "function_name".' };
    const values = typeof args === 'string' ? jsonObject(args) : (args ?? {});
    if (typeof values !== 'object' || Array.isArray(values)) return { error: '"arguments" must be an object.' };
    return formatCall(world, name, values as Record<string, unknown>, typeof thought === 'string' ? thought : '');
  },
};

const code: PromptFormat = {
  id: 'code',
  describe: (world) =>
    [
      'Answer with one Python block that calls exactly one function; reason in comments:',
      '```python\n# <your reasoning>\n<function>(<parameter>="<value>")\n```',
      'The functions:',
      ...formsOf(world).map((form) => `- ${form.name}(${parametersOf(form).join(', ')}): ${form.meaning}`),
    ].join('\n'),
  print(thought, action, world) {
    const { form, args } = callOf(formsOf(world), action);
    const comment = thought === '' ? '' : `${thought.replace(/^/gm, '# ')}\n`;
    return `\`\`\`python\n${comment}${printCall(form.name, args)}\n\`\`\``;
  },
  parse(text, world) {
    const read = splitReasoning(text);
    if ('error' in read) return read;
    const block = /```(?:python|py)?[^\S\n]*\n([\s\S]*?)\n?```/.exec(read.answer)?.[1] ?? read.answer;
    const call = parseCall(block);
    if ('error' in call) return call;
    const form = formsOf(world).find(({ name }) => name === call.name);
    if (!form) return unknownFunction(world, call.name);
    const names = parametersOf(form);
    if (call.positional.length > names.length) return { error: `${call.name} takes ${names.length} arguments.` };
    const positional = Object.fromEntries(call.positional.map((value, i) => [names[i]!, value]));
    const comments = [...block.matchAll(/^# ?(.*)$/gm)].map(([, line]) => line!);
    return formatCall(world, call.name, { ...positional, ...call.named }, comments.join('\n'));
  },
};

const fenced: PromptFormat = {
  id: 'fenced',
  describe: () => 'Reason first. Then write the one action to take between triple backticks, like ```click [12]```.',
  print: (thought, action) => `${thought}\nThe next action is \`\`\`${action}\`\`\``,
  parse(text, world) {
    const read = splitReasoning(text);
    if ('error' in read) return read;
    const found = [...read.answer.matchAll(/```([\s\S]*?)```/g)];
    if (found.length === 0) return { error: 'The answer has no action between triple backticks.' };
    if (found.length > 1) return { error: 'Write only one action between triple backticks.' };
    const before = read.answer.slice(0, found[0]!.index).replace(/\s*The next action is\s*$/, '');
    return actionOf(found[0]![1]!.trim(), world, before);
  },
};

export const FORMATS: Readonly<Record<FormatId, PromptFormat>> = {
  react,
  think,
  'function-calling': functionCalling,
  code,
  fenced,
  // Last: it takes any text, where others look for their shape.
  action,
};

const THINK_END = '</think>';

/**
 * Divides a text into a reasoning model's own `<think>` block, which its template may have opened, and the answer after it. In a
 * block that was never closed (the answer was cut off) nothing is an action.
 */
function splitReasoning(
  text: string,
): { readonly thought: string; readonly answer: string } | { readonly error: string } {
  const end = text.lastIndexOf(THINK_END);
  const rest = end < 0 ? text : text.slice(end + THINK_END.length);
  if (/^\s*<think>/.test(rest)) return { error: 'The answer ends inside <think>: close it, then write one action.' };
  return {
    thought:
      end < 0
        ? ''
        : text
            .slice(0, end)
            .replace(/^\s*<think>/, '')
            .trim(),
    answer: rest,
  };
}

/**
 * Reads a recorded answer whose format is not known: after a thought of the model's own, ReAct by its last `Action:`, or any
 * other form that it has, else the action itself. An answer that ends inside its thought has an empty action.
 */
export function readReply(text: string, world: WorldPrompt): { readonly thought: string; readonly action: string } {
  const read = splitReasoning(text);
  if ('error' in read) return { thought: text.trim(), action: '' };
  const { thought, action } = readForm(read.answer, world);
  return { thought: [read.thought, thought].filter((part) => part !== '').join('\n'), action };
}

function readForm(answer: string, world: WorldPrompt): { readonly thought: string; readonly action: string } {
  // An answer that is one object or one block from its beginning is that, whatever its thought says.
  const begun = /^\s*\{/.test(answer) ? functionCalling : /^\s*```(?:python|py)\b/.test(answer) ? code : undefined;
  const whole = begun?.parse(answer, world);
  if (whole && 'action' in whole) return whole;
  const at = answer.lastIndexOf('Action:');
  if (at >= 0) {
    const thought = answer.slice(0, at).replace(/^\s*Thought:/, '');
    return { thought: thought.trim(), action: answer.slice(at + 'Action:'.length).trim() };
  }
  for (const format of [functionCalling, code, fenced]) {
    const parsed = format.parse(answer, world);
    if ('action' in parsed) return parsed;
  }
  return { thought: '', action: answer.trim() };
}

function formsOf({ forms }: WorldPrompt): readonly ActionForm[] {
  return [...forms, OTHER];
}

/** Action as the world takes it. */
function actionOf(text: string, { foreign }: WorldPrompt, thought: string): Parsed {
  const action = (foreign ? text.replace(foreign, '') : text).trim().toWellFormed();
  return action === '' ? { error: 'The action is empty.' } : { action, thought: thought.trim().toWellFormed() };
}

/** The action that a model's call of a function means. @param args JSON of its arguments */
export function actionOfCall(world: WorldPrompt, name: string, args: string): Parsed {
  const values = args.trim() === '' ? {} : jsonObject(args);
  return values
    ? formatCall(world, name, values, '')
    : { error: `The arguments of ${name.slice(0, 40).toWellFormed()} are not a JSON object.` };
}

function formatCall(world: WorldPrompt, name: string, values: Record<string, unknown>, thought: string): Parsed {
  const form = formsOf(world).find((known) => known.name === name);
  if (!form) return unknownFunction(world, name);
  const names = parametersOf(form);
  const args: Record<string, string> = {};
  for (const parameter of names) {
    const value = Object.hasOwn(values, parameter) ? values[parameter] : undefined;
    if (typeof value !== 'string' && typeof value !== 'number') {
      return { error: `${name} needs ${names.map((one) => `"${one}"`).join(' and ')}.` };
    }
    args[parameter] = String(value);
  }
  const extra = Object.keys(values).find((key) => !names.includes(key));
  if (extra !== undefined) return { error: `${name} has no parameter "${extra.slice(0, 40).toWellFormed()}".` };
  const call: Call = { form, args };
  return actionOf(fill(call.form, call.args), world, thought);
}

function unknownFunction(world: WorldPrompt, name: string): Parsed {
  const names = formsOf(world).map((form) => form.name);
  return { error: `There is no function "${name.slice(0, 40).toWellFormed()}"; there are ${names.join(', ')}.` };
}

/** JSON object in a text: the whole text, a fenced part, or what lies between its first and last brace. */
function jsonObject(text: string): Record<string, unknown> | undefined {
  const fence = /```(?:json)?\s*\n([\s\S]*?)\n?```/.exec(text)?.[1];
  const braces = text.slice(text.indexOf('{'), text.lastIndexOf('}') + 1);
  for (const candidate of [text, fence, braces]) {
    if (candidate === undefined) continue;
    try {
      const value: unknown = parseJson(candidate);
      if (isRecord(value)) return value;
    } catch {
      // the next candidate
    }
  }
  return undefined;
}
