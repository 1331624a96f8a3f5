/** Grammars of replies: calls of tools as a model's format writes them, and answers in JSON. */
import type { AgentCall } from '../../core/agent-call.ts';
import type { Tool } from '../../core/model-call.ts';
import type { ToolFormat } from '../tools/tool-format.ts';
import { choice, type Node, sequence, textNode } from './grammar.ts';
import { anyObject, schemaNode } from './json-schema.ts';

/** Most calls of a reply that has to call. */
const MAX_CALLS = 16;

/** Arguments in whose place a format's own are looked for; a format that writes no JSON shows others. */
const PROBE = '{"a": "b"}';
/** Tool whose name stands nowhere in a format. */
const PROBE_TOOL: Tool = { name: 'probe_tool', parameters: { type: 'object', properties: { a: { type: 'string' } } } };

/** Thought that a model may write before its reply. */
export type Thought = 'opened' | 'optional' | 'none';

/**
 * Makes the grammar of the reply to a call.
 * @param thought `opened` where the template opens one, `optional` where the model may
 * A reply that may call strict tools writes the calls of those under their schemas, and any text.
 * @returns undefined where any reply will do
 * @throws {RangeError} where replies cannot be held to what the call asks for; names the reason
 */
export function replyNode(
  { toolChoice = 'auto', parallelCalls = true, format }: AgentCall,
  tools: readonly Tool[],
  toolFormat: ToolFormat,
  thought: Thought,
): Node | undefined {
  if (typeof toolChoice === 'object') {
    const named = tools.filter(({ name }) => name === toolChoice.name);
    if (named.length === 0)
      throw new RangeError(`the call asks for the tool ${toolChoice.name}, which it does not have`);
    return behindThought(callsNode(named, toolFormat, 1), thought);
  }
  if (toolChoice === 'required') {
    if (tools.length === 0) throw new RangeError('the call requires a call of a tool, and has no tools');
    return behindThought(callsNode(tools, toolFormat, parallelCalls ? MAX_CALLS : 1), thought);
  }
  if (!format) return toolChoice === 'auto' ? strictNode(tools, toolFormat, parallelCalls, thought) : undefined;
  const answer = format.type === 'json' ? anyObject() : schemaNode(format.schema);
  const calls = toolChoice === 'auto' && tools.length > 0;
  const reply = calls ? choice(callsNode(tools, toolFormat, parallelCalls ? MAX_CALLS : 1), answer) : answer;
  return behindThought(reply, thought);
}

/** Grammar of any text, and of calls where those of a strict tool fit its schema; undefined where no tool is strict. */
function strictNode(
  tools: readonly Tool[],
  format: ToolFormat,
  parallelCalls: boolean,
  thought: Thought,
): Node | undefined {
  if (!tools.some(({ strict }) => strict)) return undefined;
  const calls = callsNode(
    tools.map((tool) => (tool.strict ? tool : { ...tool, parameters: { type: 'object' } })),
    format,
    parallelCalls ? MAX_CALLS : 1,
  );
  const printed = format.print('', [{ name: PROBE_TOOL.name, arguments: PROBE }]);
  const text: Node = { kind: 'without', text: new TextEncoder().encode(openingOf(format, printed)) };
  const canFollowText = format.parse(`Well.\n${printed}`, [PROBE_TOOL]).calls.length > 0;
  const reply = canFollowText ? sequence(text, choice(textNode(''), calls)) : choice(calls, text);
  return thought === 'opened' ? behindThought(reply, thought) : reply; // else the text may be a thought too
}

/** Text by which calls begin, and no other part of a reply. */
function openingOf({ markers, print }: ToolFormat, printed: string): string {
  const [marker] = markers;
  if (marker !== undefined && printed.startsWith(marker) && !print('Well.', []).includes(marker)) return marker;
  return printed.slice(0, printed.indexOf(PROBE_TOOL.name));
}

/** Grammar of one call or more. What stands around the arguments is what the format prints. */
function callsNode(tools: readonly Tool[], format: ToolFormat, max: number): Node {
  const frames = tools.map(({ name, parameters }) => {
    const call = { name, arguments: PROBE };
    const one = format.print('', [call]);
    const at = one.lastIndexOf(PROBE);
    const [before, after] = [one.slice(0, at), one.slice(at + PROBE.length)];
    // Of two calls the second begins behind the first one's arguments.
    const two = format.print('', [call, call]);
    const between = two.slice(before.length + PROBE.length, two.length - after.length - PROBE.length);
    const isFramed = at >= 0 && two === `${before}${PROBE}${between}${PROBE}${after}`;
    if (!isFramed) throw new RangeError(`a reply that must call cannot be held to the format ${format.id}`);
    return { before, between, after, args: schemaNode(parameters) };
  });
  const { after } = frames[0]!;
  const first: Node = { kind: 'choice', items: frames.map(({ before, args }) => sequence(textNode(before), args)) };
  const next: Node = { kind: 'choice', items: frames.map(({ between, args }) => sequence(textNode(between), args)) };
  return sequence(first, { kind: 'repeat', item: next, min: 0, max: max - 1 }, textNode(after));
}

/** Grammar of a reply behind its thought, and the line ends between them. */
function behindThought(reply: Node, thought: Thought): Node {
  if (thought === 'none') return reply;
  const rest = sequence(
    { kind: 'until', text: new TextEncoder().encode('</think>') },
    choice(textNode(''), textNode('\n'), textNode('\n\n')),
    reply,
  );
  return thought === 'opened' ? rest : choice(reply, sequence(textNode('<think>'), rest));
}
