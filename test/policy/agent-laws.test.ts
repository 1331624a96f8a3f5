/** Policies over trees of calls: the laws of every policy, and log-probabilities that the learner computes again. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { writeTinyChatModel } from '../../experiments/tiny-chat-model.ts';
import { createEpisodeCheck } from '../../src/cluster/episode-check.ts';
import type { Engine } from '../../src/compute/engine/engine.ts';
import { openEngine } from '../../src/compute/engine/open.ts';
import { drawParameters, parameterSpecs } from '../../src/compute/model/parameters.ts';
import { logprobsGraph } from '../../src/compute/model/programs.ts';
import { type AgentCall, type AgentReply, printAgentCall, readAgentReply } from '../../src/core/agent-call.ts';
import type { Tool } from '../../src/core/model-call.ts';
import type { TokensDecision, Trajectory, Turn } from '../../src/core/trajectory.ts';
import { measure } from '../../src/learning/learner/measure.ts';
import { decisionsOf, trainUnits } from '../../src/learning/learner/training-batch.ts';
import { CachedPolicy } from '../../src/policy/cached-policy.ts';
import { openGenerationClient } from '../../src/policy/generation/generation-client.ts';
import type { Acted, ActRequest } from '../../src/policy/policy.ts';
import { openModel } from '../../src/policy/pretrained/folder.ts';
import { freezeAs } from '../../src/policy/pretrained/quantize.ts';
import { OwnAdapters } from '../../src/policy/served-adapters.ts';
import { ServerPolicy } from '../../src/policy/server-policy.ts';
import type { ChatCodecSpec } from '../../src/text/reading/chat-codec.ts';
import { openModelCodec } from '../../src/text/reading/codec-of.ts';
import { AGENT_TEMPLATES } from '../support/agent-templates.ts';
import { createTreeEnv, TREE_TOOLS, TreeAgent } from '../support/agent-tree-env.ts';
import { FakeGenerationServer } from '../support/fake-generation-server.ts';
import { testPolicyLaws } from './laws.ts';

vi.setConfig({ hookTimeout: 120_000 });
const folder = mkdtempSync(join(tmpdir(), 'longplay-agent-laws-'));
const adapter = { rank: 4, alpha: 8, targets: ['q_proj', 'down_proj'] } as const;
let engine: Engine;

beforeAll(async () => {
  const learnt = TREE_TOOLS.map((tool) => JSON.stringify(tool).replaceAll('":', '": '));
  const config = { num_hidden_layers: 1, hidden_size: 32 };
  writeTinyChatModel(folder, { text: [...learnt, AGENT_TEMPLATES.hermes], merges: 200, config });
  writeFileSync(join(folder, 'chat_template.jinja'), AGENT_TEMPLATES.hermes);
  engine = await openEngine({ name: 'auto', device: 'cpu', threads: 1 });
});
afterAll(async () => {
  await engine.dispose();
  rmSync(folder, { recursive: true });
});

/** Policy of the tiny model, and what a learner needs of it. */
function setUp({ contextTokens = 3000, masked = false, maxTokens = 16 } = {}) {
  const { config, endTokens } = openModel(folder);
  const chat: ChatCodecSpec = {
    ...{ folder, vocabSize: config.vocabSize, endTokens, agent: true, contextTokens, answerTokens: 16 },
    ...{ world: { role: '', forms: [], hints: [], format: 'action' }, format: 'world', listActions: false },
  };
  const model = { ...freezeAs(openModel(folder), 'none', ''), adapter };
  const codec = openModelCodec(chat);
  const specs = parameterSpecs(model).map((spec) => ({ ...spec, init: { kind: 'normal', std: 0.2 } as const }));
  const params = { version: 0, values: drawParameters(specs, 3) };
  const options = { config: model, codec, decoder: 'tokens', masked, maxTokens } as const;
  const open = (maxBatch = 64) =>
    CachedPolicy.create(engine, { ...options, cacheOnUpdate: 'recompute', maxBatch }, params);
  return { model, codec, chat, params, open };
}

testPolicyLaws('checkpoint (calls of agents)', () => {
  const { open, model } = setUp();
  const weights = { version: 1, values: drawParameters(parameterSpecs(model), 5) };
  return { open, env: createTreeEnv(99), writesFreely: true, groupSize: 2, weights };
});

const nothing = { actions: new Int32Array(0), newActions: [] };

function requestOf(episode: number, turns: readonly Turn[], observation: string, member = episode): ActRequest {
  const last = turns.at(-1);
  return {
    ...{ episode, group: 0, member, groupSize: 3, turn: turns.length, observation, ...nothing },
    ...{ samplingSeed: 7 + episode, temperature: 1 },
    ...(last ? { lastAction: last.action } : {}),
  };
}

it('samples trees whose log-probabilities the learner computes again', async () => {
  const { model, codec, params, open } = setUp();
  const policy = await open();
  const seats = [0, 1, 2].map((episode) => ({ agent: new TreeAgent(episode, 7), turns: [] as Turn[] }));
  for (let turn = 0; turn < 7; turn++) {
    // Their first calls differ, though they are of one group.
    const refused = policy.submit(seats.map(({ agent, turns }, e) => requestOf(e, turns, agent.observation)));
    expect(refused).toEqual([]);
    for (let answered = 0; answered < seats.length; ) {
      for (const { episode, action, decision } of await policy.step()) {
        const { agent, turns } = seats[episode]!;
        const { observation } = agent;
        turns.push({
          observation,
          actions: nothing.actions,
          action,
          decision: decision!,
          reward: 0,
          actMs: 0,
          envMs: 0,
        });
        agent.take(action);
        answered++;
      }
    }
  }
  await policy.dispose();
  const trajectories = seats.map(
    ({ turns }, episode): Trajectory => ({
      ...{ episode, group: 0, task: { env: 'tree', index: 0, seed: 0 }, horizon: 7, attempt: 1, actionTable: [] },
      ...{ turns, finalObservation: '', end: 'terminated', success: true },
    }),
  );
  expect(new Set(seats.map(({ agent }) => agent.calls[0]!.observation)).size).toBeGreaterThan(1);
  expect(seats.some(({ agent }) => agent.calls.some(({ parent }, call) => call > 0 && parent !== call - 1))).toBe(true);
  const decoding = { decoder: 'tokens', masked: false } as const;
  const program = await engine.compile(logprobsGraph(model, decoding));
  const units = trainUnits(codec, trajectories, 0);
  const measured = await measure({ model, codec, ...decoding, program }, params, units);
  const decisions = decisionsOf(units.flat());
  expect(decisions.length).toBeGreaterThan(50);
  // A learner takes them from a worker, also where it masks the calls that ask for it.
  for (const masked of [false, true]) {
    const facts = {
      env: createTreeEnv(7),
      codec,
      maxPositions: model.maxPositions,
      decoder: 'tokens',
      masked,
    } as const;
    expect(createEpisodeCheck(facts)(trajectories, true)).toBeUndefined();
  }
  decisions.forEach(({ logprob }, i) => {
    expect(measured.logprobs[i]).toBeCloseTo(logprob, 3);
  });
});

const schema = {
  type: 'object',
  properties: { answer: { enum: ['yes', 'no'] }, why: { type: 'string', maxLength: 6 }, n: { type: 'integer' } },
  required: ['answer', 'why'],
};
const [look, go] = TREE_TOOLS;
const narrow: Tool = {
  ...go!,
  parameters: { type: 'object', properties: { place: { enum: ['north', 'south'] }, steps: { type: 'integer' } } },
};
/** Calls that ask for a form, and what their replies then are. */
const forms: readonly (readonly [string, Partial<AgentCall>, (reply: AgentReply) => void])[] = [
  [
    'a tool',
    { toolChoice: 'required', tools: [look!, narrow], parallelCalls: false },
    ({ calls, content }) => {
      expect([calls.length, content]).toEqual([1, '']);
      expect(['look', 'go']).toContain(calls[0]!.name);
      const args = JSON.parse(calls[0]!.arguments) as { place?: string };
      if (args.place !== undefined) expect(['north', 'south']).toContain(args.place);
    },
  ],
  [
    'a named tool',
    { toolChoice: { name: 'go' }, tools: [look!, narrow] },
    ({ calls }) => expect(calls.map(({ name }) => name)).toEqual(['go']),
  ],
  [
    'JSON of a schema',
    { format: { type: 'json-schema', name: 'a', schema }, tools: [] },
    ({ content, calls }) => {
      expect(calls).toEqual([]);
      const value = JSON.parse(content) as { answer: string; why: string };
      expect(['yes', 'no']).toContain(value.answer);
      expect([...value.why].length).toBeLessThanOrEqual(6);
    },
  ],
  [
    'any JSON object',
    { format: { type: 'json' }, tools: [] },
    ({ content }) => expect(JSON.parse(content)).toBeTypeOf('object'),
  ],
];

it.each(forms)(
  'holds replies to %s, and the learner computes their log-probabilities again',
  async (_, asked, check) => {
    const { model, codec, params, open } = setUp({ masked: true, maxTokens: 400 });
    const messages = [{ role: 'user', content: 'go' }] as const;
    const observation = printAgentCall({ call: 0, parent: null, messages, tools: [], ...asked });
    const requests = [0, 1, 2].map((episode) => requestOf(episode, [], observation));
    const acted = await answersTo(await open(), requests);
    let whole = 0;
    const trajectories = acted.map(({ episode, action, decision }): Trajectory => {
      const reply = readAgentReply(action);
      if (reply.finish !== 'length') {
        whole++;
        check(reply);
      }
      const turn = {
        observation,
        actions: nothing.actions,
        action,
        decision: decision!,
        reward: 0,
        actMs: 0,
        envMs: 0,
      };
      return {
        ...{ episode, group: 0, task: { env: 'tree', index: 0, seed: 0 }, horizon: 7, attempt: 1, actionTable: [] },
        ...{ turns: [turn], finalObservation: '', end: 'terminated', success: true },
      };
    });
    expect(whole).toBeGreaterThan(0);
    const decoding = { decoder: 'tokens', masked: true } as const;
    const program = await engine.compile(logprobsGraph(model, decoding));
    const units = trainUnits(codec, trajectories, 0);
    const measured = await measure({ model, codec, ...decoding, program }, params, units);
    const decisions = decisionsOf(units.flat());
    const facts = { env: createTreeEnv(7), codec, maxPositions: model.maxPositions, ...decoding };
    expect(createEpisodeCheck(facts)(trajectories, true)).toBeUndefined();
    expect(createEpisodeCheck({ ...facts, masked: false })(trajectories, true)).toContain('under a mask');
    const choices = decisions.filter(({ allowed }) => allowed!.length > 1);
    expect(choices.length).toBeGreaterThan(5);
    decisions.forEach(({ logprob, allowed, chosen }, i) => {
      expect(allowed).toContain(chosen);
      expect(measured.logprobs[i]).toBeCloseTo(logprob, 3);
    });
  },
);

it('refuses a call for a form where sampling is free, or where no form can be kept', async () => {
  const messages = [{ role: 'user', content: 'go' }] as const;
  const refusal = async (asked: Partial<AgentCall>, masked = true) => {
    const policy = await setUp({ masked }).open();
    const observation = printAgentCall({ call: 0, parent: null, messages, tools: TREE_TOOLS, ...asked });
    const [refused] = policy.submit([requestOf(0, [], observation)]);
    await policy.dispose();
    return refused?.message;
  };
  expect(await refusal({ toolChoice: 'required' }, false)).toContain('policy.masked');
  expect(await refusal({ toolChoice: 'required' })).toBeUndefined();
  expect(await refusal({ toolChoice: { name: 'fly' } })).toContain('the tool fly');
  expect(await refusal({ toolChoice: 'required', tools: [] })).toContain('no tools');
  const patterned = { ...look!, parameters: { type: 'object', properties: { a: { type: 'string', pattern: 'x' } } } };
  expect(await refusal({ toolChoice: 'required', tools: [patterned] })).toContain('pattern at #/properties/a');
  const endless = { type: 'json-schema', name: 'a', schema: { $ref: '#' } } as const;
  expect(await refusal({ format: endless, tools: [] })).toContain('no text can be');
});

/** Plays one turn of each request. */
async function answersTo(policy: CachedPolicy, requests: readonly ActRequest[]): Promise<Acted[]> {
  expect(policy.submit(requests)).toEqual([]);
  const acted: Acted[] = [];
  while (acted.length < requests.length) acted.push(...(await policy.step()));
  await policy.dispose();
  return acted.sort((a, b) => a.episode - b.episode);
}

it('reads each first call of a group as it is, where they differ', async () => {
  const { open } = setUp();
  const call = (content: string) =>
    printAgentCall({ call: 0, parent: null, messages: [{ role: 'user', content }], tools: [] });
  const requests = ['It is Monday.', 'It is Tuesday.', 'It is Monday.'].map((text, e) => requestOf(e, [], call(text)));
  const together = await answersTo(await open(), requests);
  for (const [e, request] of requests.entries()) {
    const [alone] = await answersTo(await open(), [request]);
    const [a, b] = [together[e]!.decision!, alone!.decision!];
    if (a.kind !== 'tokens' || b.kind !== 'tokens') throw new Error('a choice');
    expect([...a.tokens]).toEqual([...b.tokens]);
    a.logprobs.forEach((logprob, i) => {
      expect(logprob).toBeCloseTo(b.logprobs[i]!, 4);
    });
  }
});

it('obeys the tokens that a call asks for, and reports how its reply ended', async () => {
  const { open } = setUp();
  const messages = [{ role: 'user', content: 'hi' }] as const;
  const observation = printAgentCall({ call: 0, parent: null, messages, tools: [], maxTokens: 3 });
  const [acted] = await answersTo(await open(), [requestOf(0, [], observation)]);
  const { tokens, context } = acted!.decision as { tokens: Int32Array; context: Int32Array } & Acted['decision'] &
    object;
  expect(tokens.length).toBeLessThanOrEqual(3);
  const reply = JSON.parse(acted!.action) as { readonly finish: string; readonly usage: object };
  expect(reply.usage).toEqual({ promptTokens: context.length, completionTokens: tokens.length });
  expect(acted!.response).toMatchObject({ promptTokens: context.length, completionTokens: tokens.length });
  expect(['stop', 'length']).toContain(reply.finish);
});

it('refuses a call that leaves no room, which ends its episode alone, and answers the others', async () => {
  const { open } = setUp({ contextTokens: 120 });
  const policy = await open();
  const call = (content: string) =>
    printAgentCall({ call: 0, parent: null, messages: [{ role: 'user', content }], tools: [] });
  const requests = ['hi', 'word '.repeat(200), 'hi'].map((text, e) => requestOf(e, [], call(text)));
  expect(policy.submit(requests)).toEqual([{ episode: 1, message: expect.stringContaining('no room'), ends: true }]);
  policy.release([1]);
  const acted: Acted[] = [];
  while (acted.length < 2) acted.push(...(await policy.step()));
  expect(acted.map(({ episode }) => episode).sort()).toEqual([0, 2]);
  await policy.dispose();
});

it('cuts what a server wrote on behind a stop text, and sends it no call for a form', async () => {
  const { codec, chat, model } = setUp();
  const server = await FakeGenerationServer.start('vllm', chat, adapter);
  const client = openGenerationClient({ api: 'vllm', url: server.url, model: 'base', attemptMs: 20_000 });
  const limits = { maxTokens: 40, maxLag: 1, attempts: 2, retryMs: 1, endTokens: chat.endTokens };
  const shared = { config: model, codec, baseModel: folder, client, ...limits };
  const params = { version: 0, values: drawParameters(parameterSpecs(model), 3) };
  const adapters = new OwnAdapters({ ...shared, adapters: mkdtempSync(join(folder, 'adapters-')) }, params);
  const policy = new ServerPolicy({ ...shared, adapters, maxPositions: 3000, maxBatch: 4 });
  const stop = ['a', 'e', '<', 'n'];
  const call = (asked: Partial<AgentCall>) =>
    printAgentCall({ call: 0, parent: null, messages: [{ role: 'user', content: 'hi' }], tools: TREE_TOOLS, ...asked });
  expect(policy.submit([requestOf(3, [], call({ toolChoice: 'required' }))])).toEqual([
    { episode: 3, message: expect.stringContaining('samples freely') },
  ]);
  policy.release([3]);
  expect(policy.submit([requestOf(0, [], call({ stop }))])).toEqual([]);
  const acted: Acted[] = [];
  while (acted.length < 1) acted.push(...(await policy.step()));
  const reply = readAgentReply(acted[0]!.action);
  const { tokens, logprobs } = acted[0]!.decision as TokensDecision;
  expect(logprobs.length).toBe(tokens.length);
  expect(tokens.length).toBeLessThan(server.answers[0]!.tokens.length);
  expect([...server.answers[0]!.tokens].slice(0, tokens.length)).toEqual([...tokens]);
  expect(reply).toMatchObject({ finish: 'stop', usage: { completionTokens: tokens.length } });
  expect(stop.some((one) => reply.content.includes(one))).toBe(false);
  // Its last token has the stop text: up to the one before there is none.
  const before = codec.decode(tokens.subarray(0, -1));
  expect(stop.some((one) => acted[0]!.response!.text.includes(one) && !before.includes(one))).toBe(true);
  await policy.dispose();
  await server.stop();
});
