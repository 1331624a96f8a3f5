/**
 * Drawing of an episode of agents or tools: its calls as a tree, the conversation that the newest of them continues, and what was
 * measured: parts of the reward, valid calls.
 */
import { type AgentCall, isAgentCall, readAgentCall, readAgentReply, readReport } from '../core/agent-call.ts';
import type { Draw, TextPanel } from '../core/draw.ts';
import type { ConversationMessage } from '../core/model-call.ts';

/** Call of a drawing, with the reply to it where there is one. */
interface DrawnCall {
  readonly call: AgentCall;
  readonly depth: number;
  reply: string | undefined;
}

/** Most lines of a panel, and characters of a line. */
const MAX_LINES = 80;
const MAX_LINE = 240;

/** Draws an episode of calls. */
export const draw: Draw = (_task, first, turns) => {
  const calls = new Map<number, DrawnCall>();
  let newest = take(calls, first.observation);
  let stages: string[] = [];
  for (const { action, observation, partial } of turns) {
    if (partial && observation === '') {
      stages.push(action);
      continue;
    }
    if (newest) newest.reply = partial ? 'reached nobody' : [...stages, showReply(action)].join(' ');
    stages = [];
    newest = take(calls, observation) ?? newest;
  }
  const panels: TextPanel[] = [{ kind: 'text', title: 'Calls', lines: bound(showTree(calls, newest)) }];
  if (newest) panels.push({ kind: 'text', title: 'Conversation', lines: bound(showConversation(calls, newest)) });
  const measured = showReport(turns.findLast(({ observation }) => observation !== '')?.observation ?? '');
  if (measured.length > 0) panels.push({ kind: 'text', title: 'Measured', lines: bound(measured) });
  return { panels };
};

function showReport(observation: string): string[] {
  const { metrics, tools } = readReport(observation);
  const lines = Object.entries(metrics).map(([name, value]) => `${name} ${value}`);
  if (tools && tools.calls > 0) lines.push(`valid calls ${tools.valid} of ${tools.calls}, errors ${tools.errors}`);
  return lines;
}

function take(calls: Map<number, DrawnCall>, observation: string): DrawnCall | undefined {
  if (!isAgentCall(observation)) return undefined; // the outcome
  const call = readAgentCall(observation);
  const before = call.parent === null ? undefined : calls.get(call.parent);
  const drawn = { call, depth: before ? before.depth + (continues(calls, call.parent) ? 1 : 0) : 0, reply: undefined };
  calls.set(call.call, drawn);
  return drawn;
}

/** True where another call continues the same parent already: this one begins a branch. */
function continues(calls: ReadonlyMap<number, DrawnCall>, parent: number | null): boolean {
  for (const { call } of calls.values()) if (call.parent === parent) return true;
  return false;
}

function showTree(calls: ReadonlyMap<number, DrawnCall>, newest: DrawnCall | undefined): string[] {
  return [...calls.values()].map((drawn) => {
    const { call, depth, reply } = drawn;
    const from = call.parent === null ? 'new' : `after ${call.parent}`;
    const what = reply ?? (drawn === newest ? 'waits' : '');
    return `${'  '.repeat(depth)}${call.call} (${from}) ${what}`;
  });
}

/** Messages and replies from the root to a call. */
function showConversation(calls: ReadonlyMap<number, DrawnCall>, newest: DrawnCall): string[] {
  const chain: DrawnCall[] = [];
  for (let at: DrawnCall | undefined = newest; at; ) {
    chain.unshift(at);
    at = at.call.parent === null ? undefined : calls.get(at.call.parent);
  }
  return chain.flatMap(({ call, reply }) => [
    ...(call.tools && call.tools.length > 0 ? [`tools: ${call.tools.map(({ name }) => name).join(', ')}`] : []),
    ...call.messages.flatMap(showMessage),
    ...(reply === undefined ? [] : [`assistant: ${reply}`]),
  ]);
}

function showMessage(message: ConversationMessage): string[] {
  const name = message.role === 'tool' ? `result${message.isError ? ' (error)' : ''}` : message.role;
  const calls = message.role === 'assistant' ? (message.calls ?? []) : [];
  const called = calls.map((call) => `${call.name}(${call.arguments})`);
  return `${name}: ${[message.content, ...called].filter((part) => part !== '').join(' ')}`.split('\n');
}

/** Reply in one line: its text, then its calls. */
function showReply(action: string): string {
  const { content, calls, finish } = readAgentReply(action);
  const called = calls.map((call) => `${call.name}(${call.arguments})`);
  const cut = finish === 'length' ? ['(cut by its length)'] : [];
  return [content, ...called, ...cut].filter((part) => part !== '').join(' ');
}

/** Newest lines, each cut. */
function bound(lines: readonly string[]): string[] {
  const shown = lines.slice(-MAX_LINES).map((line) => (line.length > MAX_LINE ? `${line.slice(0, MAX_LINE)}…` : line));
  return lines.length > MAX_LINES ? [`… ${lines.length - MAX_LINES} lines before`, ...shown] : shown;
}
