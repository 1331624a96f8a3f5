/** ATIF: what is exported comes back as it was, token ids and log-probabilities by ATIF's own fields. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { callId, printAgentCall, printAgentReply } from '../../../src/core/agent-call.ts';
import { listConversations } from '../../../src/core/call-episode.ts';
import type { ConversationMessage, Tool } from '../../../src/core/model-call.ts';
import type { TokensDecision, Turn } from '../../../src/core/trajectory.ts';
import { atifDocument, restoreEpisode } from '../../../src/run/atif-episode.ts';
import { readAtif } from '../../../src/run/import/atif.ts';
import { Losses } from '../../../src/run/import/losses.ts';
import { createTrajectory } from '../../../src/run/import/read-episode.ts';
import { parseLine, type TraceLine, traceLine } from '../../../src/storage/trace.ts';
import { trajectoryOf } from '../../support/traces.ts';

const folder = mkdtempSync(join(tmpdir(), 'longplay-atif-'));
afterAll(() => rmSync(folder, { recursive: true }));

const tool: Tool = { name: 'look', description: 'Looks.', parameters: { type: 'object', properties: { at: {} } } };

const ids = fc.array(fc.integer({ min: 0, max: 99 }), { minLength: 1, maxLength: 4 });
/** One call of an episode, as numbers that are read below. */
const callPlan = fc.record({
  /** Which earlier call it continues; beyond them none. */
  parent: fc.nat(8),
  words: fc.string({ maxLength: 6, unit: 'binary' }),
  reasoning: fc.option(fc.string({ maxLength: 4 }), { nil: undefined }),
  calls: fc.array(fc.constantFrom<string[]>('{"at":"door"}', '{ "at": 1 }', '{broken', '[]', '{}'), { maxLength: 3 }),
  reversed: fc.boolean(),
  lacksResult: fc.boolean(),
  isError: fc.boolean(),
  user: fc.boolean(),
  foreign: fc.boolean(),
  context: ids,
  tokens: ids,
  logprob: fc.oneof(fc.float({ max: 0, noNaN: true, noDefaultInfinity: true }), fc.constant(Number.NaN)),
  decided: fc.constantFrom('tokens', 'none'),
  reward: fc.double({ noNaN: true, noDefaultInfinity: true }),
  untrained: fc.boolean(),
  sampling: fc.boolean(),
});
type CallPlan = typeof callPlan extends fc.Arbitrary<infer T> ? T : never;

/** Episode of calls: a tree with parallel calls, results in another order or lacking, broken arguments. */
function episodeOfCalls(plans: readonly CallPlan[], success: boolean): TraceLine {
  const turns = plans.map((plan, n): Turn => {
    const parent = plan.parent < n ? plan.parent : null;
    const asked = parent === null ? [] : plans[parent]!.calls;
    const results = asked.map(
      (_, i): ConversationMessage => ({
        role: 'tool',
        callId: callId(parent!, i),
        content: `result ${i}`,
        ...(plan.isError ? { isError: true } : {}),
      }),
    );
    if (plan.reversed) results.reverse();
    if (plan.lacksResult) results.pop();
    const messages: ConversationMessage[] = [
      ...(parent === null ? [{ role: 'system', content: 'Be brief.' } as const] : []),
      ...results,
      ...(plan.foreign ? [{ role: 'assistant', content: 'I said.' } as const] : []),
      ...(plan.user || results.length === 0 ? [{ role: 'user', content: plan.words } as const] : []),
    ];
    const decision: TokensDecision = {
      kind: 'tokens',
      version: n,
      value: 0.5,
      context: Int32Array.from(plan.context),
      tokens: Int32Array.from(plan.tokens),
      logprobs: Float32Array.from(plan.tokens, () => plan.logprob),
      masked: n % 2 === 0,
    };
    return {
      observation: printAgentCall({
        call: n,
        parent,
        messages,
        ...(parent === null ? { tools: [tool] } : {}),
        ...(plan.sampling ? { sampling: { temperature: 0.5 }, maxTokens: 9 } : {}),
      }),
      actions: new Int32Array(0),
      action: printAgentReply({
        content: plan.words,
        reasoning: plan.reasoning,
        calls: plan.calls.map((args) => ({ name: 'look', arguments: args })),
        finish: plan.calls.length > 0 ? 'calls' : 'stop',
        usage: { promptTokens: n, completionTokens: 2 },
      }),
      ...(plan.decided === 'tokens' ? { decision } : {}),
      ...(plan.untrained ? { untrained: true as const } : {}),
      reward: plan.reward,
      actMs: 1.25,
      envMs: 0,
    };
  });
  return {
    ...trajectoryOf({ episode: 3, group: 2, success }),
    task: { env: 'agent', index: 4, seed: 9 },
    actionTable: [],
    turns,
    purpose: 'train',
    label: 'some',
  };
}

/** Line of a trace: equal for equal episodes. */
function lineOf({ purpose, label, ...trajectory }: TraceLine): string {
  return traceLine(trajectory, purpose, label);
}

function sameEpisode(given: TraceLine): void {
  // As a trace holds it.
  const episode = parseLine(lineOf(given).trimEnd()).episode!;
  const document = JSON.parse(JSON.stringify(atifDocument(episode, '1.0.0')));
  expect(JSON.parse(lineOf(restoreEpisode(document)!))).toEqual(JSON.parse(lineOf(episode)));
}

describe('an episode that is exported and imported is the same', () => {
  it('one of calls: branches, parallel calls, broken arguments, token ids', () => {
    fc.assert(
      fc.property(fc.array(callPlan, { minLength: 1, maxLength: 7 }), fc.boolean(), (plans, success) =>
        sameEpisode(episodeOfCalls(plans, success)),
      ),
      { numRuns: 300 },
    );
  });
  it('one of a text world, whose decisions are choices or runs of tokens', () => {
    for (const kind of ['choice', 'tokens'] as const) {
      for (const actions of [[], ['look'], ['look', 'go', 'look']]) {
        sameEpisode({ ...trajectoryOf({ kind, actions, success: true }), purpose: 'train' });
      }
    }
  });
});

const plan: CallPlan = {
  ...{ parent: 0, words: 'w', reasoning: undefined, calls: ['{"at":"door"}', '{"at":"sky"}'], reversed: true },
  ...{ lacksResult: false, isError: false, user: false, foreign: false, context: [7, 8], tokens: [1, 2] },
  ...{ logprob: -0.25, decided: 'tokens' as const, reward: 0, untrained: false, sampling: false },
};
const linear = [{ ...plan, parent: 9 }, plan, { ...plan, parent: 1, calls: [] }];

describe('a document', () => {
  const document = JSON.parse(JSON.stringify(atifDocument(episodeOfCalls(linear, true), '1.0.0')));
  const foreign = { ...document, extra: undefined };

  it('carries token ids and log-probabilities in the fields of ATIF', () => {
    const { calls } = readAtif(foreign, { losses: new Losses() });
    const decisions = calls.map(({ facts }) => facts.decision as TokensDecision);
    expect(decisions.map(({ context, tokens, logprobs }) => [[...context], [...tokens], [...logprobs]])).toEqual(
      linear.map(() => [
        [7, 8],
        [1, 2],
        [-0.25, -0.25],
      ]),
    );
    const steps = document.steps.filter((step: { source: string }) => step.source === 'agent');
    expect(steps[1].metrics.prompt_token_ids).toEqual([7, 8, 1, 2, 7, 8]);
  });

  it('of another program puts results beside their calls, whatever their order', () => {
    const read = readAtif(foreign, { losses: new Losses() });
    const { turns } = createTrajectory(read, { episode: 0, index: 0, score: 1 });
    const [conversation] = listConversations(turns);
    const results = conversation!.messages.flatMap((message) => (message.role === 'tool' ? [message] : []));
    expect(results.slice(0, 2).map(({ callId: id, content }) => [id, content])).toEqual([
      ['call_0_1', 'result 1'],
      ['call_0_0', 'result 0'],
    ]);
  });

  it('has the conversations of sub-agents, which come back as conversations of their own', () => {
    const plans = [linear[0]!, { ...plan, parent: 9 }, { ...plan, parent: 1 }, { ...plan, parent: 0 }];
    const whole = JSON.parse(JSON.stringify(atifDocument(episodeOfCalls(plans, true), '1.0.0')));
    expect(whole.subagent_trajectories).toHaveLength(1);
    const { calls } = readAtif({ ...whole, extra: undefined }, { losses: new Losses() });
    expect(calls.map(({ parent }) => parent)).toEqual([null, null, 1, 0]);
  });

  it('counts what has no place in a trace', () => {
    const losses = new Losses();
    const image = { type: 'image', source: { media_type: 'image/png', path: 'x.png' } };
    const steps = [
      {
        step_id: 1,
        source: 'user',
        message: [{ type: 'text', text: 'see' }, image],
        timestamp: '2026-01-01T00:00:00Z',
      },
      { step_id: 2, source: 'agent', message: 'a', model_name: 'm', metrics: { cost_usd: 1, logprobs: [-1] } },
      { step_id: 3, source: 'agent', message: 'dispatch', llm_call_count: 0 },
      {
        step_id: 4,
        source: 'agent',
        message: 'b',
        observation: { results: [{ subagent_trajectory_ref: [{ trajectory_path: 'gone.json' }] }] },
      },
    ];
    const read = readAtif(
      { schema_version: 'ATIF-v1.8', agent: { name: 'x', version: '1' }, notes: 'n', steps },
      { losses },
    );
    expect(losses.list()).toEqual({
      notes: 1,
      'steps[].message[type=image]': 1,
      'steps[].metrics.cost_usd': 1,
      'steps[].metrics.logprobs (without token ids)': 1,
      'steps[].model_name': 1,
      'steps[].observation.results[].subagent_trajectory_ref (not found)': 1,
      'steps[].timestamp': 1,
    });
    expect(read.calls.map(({ messages }) => messages.map(({ content }) => content))).toEqual([['see'], ['dispatch']]);
  });

  const python = process.env.LONGPLAY_HARBOR_PYTHON ?? 'python3';
  const has = spawnSync(python, ['-c', 'import harbor.utils.trajectory_validator']).status === 0;
  if (!has) console.log('skipped: no harbor for Python (LONGPLAY_HARBOR_PYTHON names an interpreter that has it)');
  it.skipIf(!has)("passes Harbor's own validator", () => {
    const samples = fc.sample(fc.array(callPlan, { minLength: 1, maxLength: 6 }), { numRuns: 60, seed: 1 });
    const episodes: TraceLine[] = [
      ...samples.map((plans) => episodeOfCalls(plans, true)),
      { ...trajectoryOf({ kind: 'tokens' }), purpose: 'train' },
      { ...trajectoryOf({ actions: [] }), purpose: 'train' },
    ];
    const path = join(folder, 'all.jsonl');
    writeFileSync(path, episodes.map((one) => JSON.stringify(atifDocument(one, '1.0.0'))).join('\n'));
    const script = [
      'import json, sys',
      'from harbor.utils.trajectory_validator import TrajectoryValidator',
      'n = 0',
      'for line in open(sys.argv[1], encoding="utf-8"):',
      '    v = TrajectoryValidator()',
      '    assert v.validate(json.loads(line)), v.errors',
      '    n += 1',
      'print(n)',
    ].join('\n');
    const { stdout, stderr } = spawnSync(python, ['-c', script, path], { encoding: 'utf8' });
    expect(stdout.trim(), stderr).toBe(String(episodes.length));
  });
});
