import { describe, expect, it } from 'vitest';
import { printAgentCall, printAgentOutcome, printAgentReply } from '../../src/core/agent-call.ts';
import type { ConversationMessage } from '../../src/core/model-call.ts';
import { NO_TOOL_COUNTS } from '../../src/core/tool-counts.ts';
import { draw } from '../../src/world/tool-draw.ts';

const task = { env: 'agent', index: 0, seed: 0 };
const tools = [{ name: 'search', parameters: { type: 'object', properties: {} } }];
const call = (number: number, parent: number | null, ...messages: ConversationMessage[]) =>
  printAgentCall({ call: number, parent, messages, ...(parent === null ? { tools } : {}) });
const user = (content: string): ConversationMessage => ({ role: 'user', content });
const usage = { promptTokens: 0, completionTokens: 0 };
const searched = printAgentReply({ content: '', calls: [{ name: 'search', arguments: '{}' }], finish: 'calls', usage });

describe('the drawing of calls', () => {
  it('shows the tree of calls, and the conversation of the newest', () => {
    const first = { kind: 'first', observation: call(0, null, user('lead')) } as const;
    const turns = [
      { action: searched, observation: call(1, null, user('sub')) },
      { action: 'stage', observation: '', partial: true as const },
      { action: 'hi', observation: call(2, 0, { role: 'tool', callId: 'call_0_0', content: 'found' }) },
      { action: 'left', observation: call(3, 0, user('again')), partial: true as const },
    ];
    const { panels } = draw(task, first, turns);
    expect(panels.map((panel) => panel.kind === 'text' && panel.lines)).toEqual([
      ['0 (new) search({})', '1 (new) stage hi', '2 (after 0) reached nobody', '  3 (after 0) waits'],
      ['tools: search', 'user: lead', 'assistant: search({})', 'user: again'],
    ]);
  });
  it('shows what was measured: parts of the reward and valid calls, or the metrics of an agent', () => {
    const first = { kind: 'first', observation: call(0, null, user('lead')) } as const;
    const report = { metrics: { DB: 1 }, tools: { ...NO_TOOL_COUNTS, replies: 1, calls: 3, valid: 2, errors: 1 } };
    const observation = printAgentCall({ call: 1, parent: 0, messages: [user('Bye.')], report });
    const linesOf = (turns: Parameters<typeof draw>[2]) =>
      draw(task, first, turns).panels.map((panel) => panel.kind === 'text' && [panel.title, panel.lines]);
    const stage = { action: 'stage', observation: '', partial: true as const };
    expect(linesOf([{ action: searched, observation }, stage])[2]).toEqual([
      'Measured',
      ['DB 1', 'valid calls 2 of 3, errors 1'],
    ]);
    const outcome = printAgentOutcome({ reward: 1, success: true, metrics: { tone: 0.5 } });
    expect(linesOf([{ action: 'bye', observation: outcome }])[2]).toEqual(['Measured', ['tone 0.5']]);
    expect(linesOf([])).toHaveLength(2);
  });
  it('stays at the last conversation when the program has ended, and is bounded', () => {
    const first = { kind: 'first', observation: call(0, null, user('line\n'.repeat(200))) } as const;
    const { panels } = draw(task, first, [{ action: 'bye', observation: '{"reward":1}' }]);
    const [calls, conversation] = panels.map((panel) => (panel.kind === 'text' ? panel.lines : []));
    expect([calls, conversation!.at(-1), conversation!.length]).toEqual([['0 (new) bye'], 'assistant: bye', 81]);
  });
});
