/**
 * Language models under the laws of every policy: one that computes here, over a frozen base and an adapter, and one whose
 * tokens a server samples.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import * as textcraft from '../../envs/textcraft/index.ts';
import { writeTinyChatModel } from '../../experiments/tiny-chat-model.ts';
import type { Engine } from '../../src/compute/engine/engine.ts';
import { openEngine } from '../../src/compute/engine/open.ts';
import type { LoraConfig, ModelConfig } from '../../src/compute/model/config.ts';
import { drawParameters, type ParamSet, parameterSpecs } from '../../src/compute/model/parameters.ts';
import { seedFrom } from '../../src/core/rng.ts';
import { CachedPolicy } from '../../src/policy/cached-policy.ts';
import { openGenerationClient } from '../../src/policy/generation/generation-client.ts';
import { openModel } from '../../src/policy/pretrained/folder.ts';
import { freezeAs, type Quantize } from '../../src/policy/pretrained/quantize.ts';
import { OwnAdapters } from '../../src/policy/served-adapters.ts';
import { ServerPolicy } from '../../src/policy/server-policy.ts';
import { type ChatCodecSpec, openChatCodec } from '../../src/text/reading/chat-codec.ts';
import { FakeGenerationServer } from '../support/fake-generation-server.ts';
import { type PolicySubject, testPolicyLaws } from './laws.ts';

vi.setConfig({ hookTimeout: 120_000 });
const folder = mkdtempSync(join(tmpdir(), 'longplay-chat-laws-'));
/** The same model under a template that leaves reasoning out of earlier turns: its conversations are rendered anew. */
const forgetful = join(folder, 'forgetful');
const adapter: LoraConfig = { rank: 4, alpha: 8, targets: ['q_proj', 'v_proj', 'down_proj'] };
const env = textcraft.createEnv();
let engine: Engine;

beforeAll(async () => {
  writeTinyChatModel(folder, { text: openings(), merges: 200, config: { num_hidden_layers: 1, hidden_size: 32 } });
  writeTinyChatModel(forgetful, { text: openings(), merges: 200, config: { num_hidden_layers: 1, hidden_size: 32 } });
  writeFileSync(
    join(forgetful, 'chat_template.jinja'),
    "{%- for message in messages %}{{- '<|im_start|>' + message.role + '\\n' }}{%- if message.role == 'assistant' %}" +
      "{{- message.content.split('Action:')[-1] }}{%- else %}{{- message.content }}{%- endif %}" +
      "{{- '<|im_end|>' + '\\n' }}{%- endfor %}{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}",
  );
  engine = await openEngine({ name: 'auto', device: 'cpu', threads: 1 });
});
afterAll(async () => {
  await engine.dispose();
  rmSync(folder, { recursive: true });
});

/** Openings of some tasks: what the tokenizer learns its merges from. */
function openings(): string[] {
  return [0, 7, 14].map((index) => {
    const opened = textcraft.createEnv().open({ env: 'textcraft', index, seed: 1 });
    return opened.first.observation;
  });
}

function reading(change: Partial<ChatCodecSpec> = {}): ChatCodecSpec {
  const { config, endTokens } = openModel(change.folder ?? folder);
  return {
    folder,
    vocabSize: config.vocabSize,
    endTokens,
    // In a few words, so that the laws take seconds; the goal and its recipes are TextCraft's own.
    world: { ...textcraft.prompt, role: 'Craft the goal.', forms: [], hints: [], format: 'action' },
    format: 'world',
    listActions: false,
    contextTokens: 1500,
    answerTokens: 24,
    ...change,
  };
}

/** An adapter whose B is not zero: it changes every number. */
function drawn(config: ModelConfig, version: number): ParamSet {
  const values = drawParameters(parameterSpecs(config), 1);
  for (const [name, data] of Object.entries(values)) {
    if (name.includes('lora_B')) {
      for (let i = 0; i < data.length; i++) data[i] = 0.2 * (seedFrom(version, i) / 2 ** 32 - 0.5);
    }
  }
  return { version, values };
}

/** A model in this process that spells listed actions. */
function checkpoint(quantize: Quantize, change: Partial<ChatCodecSpec> = {}): PolicySubject {
  const chat = reading(change);
  const config = { ...freezeAs(openModel(chat.folder), quantize, join(folder, 'quantised')), adapter };
  const codec = openChatCodec(chat);
  const common = { config, codec, decoder: 'tokens', masked: true, maxTokens: 24, cacheOnUpdate: 'recompute' } as const;
  return {
    // Small batches read prompts in small parts: the laws compare them with large ones, which read them whole.
    open: (maxBatch = 64) =>
      CachedPolicy.create(engine, { ...common, maxBatch, promptTokensPerCall: 40 * maxBatch }, drawn(config, 0)),
    env,
    groupSize: 2,
    weights: drawn(config, 1),
  };
}

testPolicyLaws('checkpoint (chat, spelt actions)', () => checkpoint('none'));
testPolicyLaws('checkpoint (chat, int8 base)', () => checkpoint('int8'));
testPolicyLaws('checkpoint (chat, a context that fills up)', () => checkpoint('none', { contextTokens: 420 }));
testPolicyLaws('checkpoint (chat, a template that renders anew)', () =>
  checkpoint('none', { folder: forgetful, format: 'react' }),
);

it('the forgetful template and the short context do render conversations anew', () => {
  expect(openChatCodec(reading({ folder: forgetful, format: 'react' })).rendersAnew).toBe(true);
  const codec = openChatCodec(reading({ contextTokens: 420 }));
  const opened = env.open({ env: 'textcraft', index: 1, seed: 1 });
  const transcript = codec.open({
    observation: opened.first.observation,
    actions: new Int32Array(0),
    newActions: [],
  });
  const { prompt } = transcript;
  const nothing = { actions: new Int32Array(0), newActions: [] };
  for (let turn = 0; turn < 4 && transcript.prompt === prompt; turn++) {
    transcript.observe('inventory', { observation: `Inventory: ${'[stick] (1) '.repeat(8)}`, ...nothing });
  }
  expect(transcript.prompt).not.toBe(prompt);
});

describe.each(['vllm', 'sglang'] as const)('a %s server', (api) => {
  let server: FakeGenerationServer;
  beforeAll(async () => {
    server = await FakeGenerationServer.start(api, reading(), adapter);
  });
  afterAll(async () => {
    expect(server.loaded.size).toBe(0); // every policy took its adapters away again
    await server.stop();
  });

  /** @param faults spoils what the server answers first */
  function served(faults: () => void = () => {}): PolicySubject {
    const chat = reading();
    const config = { ...freezeAs(openModel(folder), 'none', ''), adapter };
    const { endTokens } = chat;
    const limits = { maxTokens: 6, maxLag: 1, attempts: 8, retryMs: 1 };
    const shared = { config, codec: openChatCodec(chat), baseModel: folder, endTokens, ...limits };
    const zero = drawn(config, 0);
    for (const [name, data] of Object.entries(zero.values)) if (name.includes('lora_B')) data.fill(0);
    return {
      open: (maxBatch = 64) => {
        faults();
        const client = openGenerationClient({ api, url: server.url, model: 'base', attemptMs: 20_000 }); // closed with it
        const options = { ...shared, client };
        const adapters = mkdtempSync(join(folder, 'adapters-'));
        const own = new OwnAdapters({ ...options, adapters }, zero);
        return new ServerPolicy({ ...options, adapters: own, maxPositions: config.maxPositions, maxBatch });
      },
      env,
      writesFreely: true,
      groupSize: 2,
      weights: drawn(config, 1),
    };
  }

  testPolicyLaws('server', () => served());
  testPolicyLaws('server (that breaks answers off, fails, and loads badly)', () =>
    served(() => Object.assign(server.faults, { aborts: 3, errors: 3, failLoads: 1, lateLoads: 1 })),
  );
});

it('what prompts have in common is read once, until the weights change', async () => {
  const subject = checkpoint('none');
  const policy = await subject.open();
  const ask = (episode: number, index: number) => {
    const { first } = env.open({ env: 'textcraft', index, seed: 1 });
    const place = { episode, group: episode, member: 0, groupSize: 1, turn: 0, samplingSeed: 1, temperature: 0 };
    return { ...place, observation: first.observation, actions: Int32Array.of(0), newActions: ['inventory'] };
  };
  const decideFirst = async (on: typeof policy, episode: number, index: number) => {
    const before = on.tokens;
    expect(on.submit([ask(episode, index)])).toEqual([]);
    for (;;) {
      const [acted] = await on.step();
      if (acted) return { tokens: on.tokens - before, value: acted.decision! };
    }
  };
  const first = await decideFirst(policy, 1, 0);
  const other = await decideFirst(policy, 2, 7);
  const fresh = await subject.open();
  const alone = await decideFirst(fresh, 2, 7);
  // Role, format and the beginning of the observation are the same.
  expect(alone.tokens - other.tokens).toBeGreaterThan(30);
  expect(other.value).toEqual(alone.value);
  const same = await decideFirst(policy, 3, 7);
  expect(same.tokens).toBeLessThan(10); // the last of the prompt, and what decides
  policy.load(subject.weights!);
  expect((await decideFirst(policy, 4, 0)).tokens).toBe(first.tokens);
  await policy.dispose();
  await fresh.dispose();
});
