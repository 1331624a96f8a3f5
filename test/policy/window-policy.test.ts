import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createEnv, view } from '../../envs/babyai/index.ts';
import type { Engine } from '../../src/compute/engine/engine.ts';
import { openEngine } from '../../src/compute/engine/open.ts';
import { smallModel } from '../../src/compute/model/config.ts';
import { initialParams } from '../../src/compute/model/parameters.ts';
import type { Session } from '../../src/core/env.ts';
import { CachedPolicy } from '../../src/policy/cached-policy.ts';
import type { Acted, ActRequest, Policy } from '../../src/policy/policy.ts';
import { WindowPolicy } from '../../src/policy/window-policy.ts';
import { ViewCodec } from '../../src/text/reading/view-codec.ts';

const env = createEnv();
const codec = new ViewCodec(view);
const config = smallModel(codec.vocabSize, {
  layers: 2,
  hiddenSize: 32,
  sameTokenBias: 2,
  sameLineBias: { bias: 2, newline: codec.spell('\n')[0]! },
});
const params = initialParams(config, 7);
let engine: Engine;

beforeAll(async () => {
  engine = await openEngine({ name: 'auto', device: 'cpu', threads: 1 });
});
afterAll(() => engine.dispose());

const windowPolicy = (maxBatch = 64) => WindowPolicy.create(engine, { config, codec, maxBatch }, params);
const cachedPolicy = () =>
  CachedPolicy.create(
    engine,
    {
      config,
      codec,
      decoder: 'choice',
      masked: true,
      maxTokens: 8,
      maxBatch: 64,
      cacheOnUpdate: 'keep',
    },
    params,
  );

/** Episodes of different levels, all waiting for their action at once. */
class Table {
  readonly table: string[] = [];
  readonly history: { observation: string; action: string }[] = [];
  readonly session: Session;
  observation: string;
  readonly episode: number;

  constructor(episode: number, index: number) {
    this.episode = episode;
    this.session = env.open({ env: env.id, index, seed: 0 }) as Session;
    this.observation = this.session.first.observation;
  }

  request(temperature = 1): ActRequest {
    const known = this.table.length;
    const actions = Int32Array.from(this.session.actions(), (text) => {
      const at = this.table.indexOf(text);
      return at >= 0 ? at : this.table.push(text) - 1;
    });
    const last = this.history.at(-1);
    return {
      episode: this.episode,
      group: this.episode,
      member: 0,
      groupSize: 1,
      turn: this.history.length,
      observation: this.observation,
      ...(last ? { lastAction: last.action } : {}),
      actions,
      newActions: this.table.slice(known),
      samplingSeed: 40 + this.episode,
      temperature,
    };
  }

  async take({ action }: Acted): Promise<boolean> {
    this.history.push({ observation: this.observation, action });
    const step = await this.session.step(action);
    this.observation = step.observation;
    return step.kind === 'mid';
  }
}

async function play(policy: Policy, turns: number, episodes = 6): Promise<Acted[]> {
  const all: Acted[] = [];
  const tables = new Map(Array.from({ length: episodes }, (_, i) => [i, new Table(i, 40 * i + 3 * i)]));
  for (let turn = 0; turn < turns; turn++) {
    policy.submit([...tables.values()].map((table) => table.request()));
    while (policy.waiting > 0) {
      for (const acted of await policy.step()) {
        all.push(acted);
        if (await tables.get(acted.episode)!.take(acted)) continue;
        policy.release([acted.episode]);
        tables.delete(acted.episode);
      }
    }
  }
  policy.release([...tables.keys()]);
  return all.sort((a, b) => a.episode - b.episode || a.turn - b.turn);
}

function expectAlike(found: readonly Acted[], expected: readonly Acted[]): void {
  expect(found.map(({ episode, turn, action }) => [episode, turn, action])).toEqual(
    expected.map(({ episode, turn, action }) => [episode, turn, action]),
  );
  found.forEach(({ decision }, i) => {
    const other = expected[i]!.decision!;
    if (decision!.kind !== 'choice' || other.kind !== 'choice') throw new Error('expected choices');
    expect(decision!.context).toEqual(other.context);
    expect(decision!.choice).toBe(other.choice);
    expect(decision!.logprob).toBeCloseTo(other.logprob, 4);
    expect(decision!.value).toBeCloseTo(other.value, 4);
  });
}

describe('the window policy', { timeout: 60_000 }, () => {
  it('decides as the caching policy does under the same view', async () => {
    expectAlike(await play(await windowPolicy(), 5), await play(await cachedPolicy(), 5));
  });

  it('decides the same in whatever batches the turns are read', async () => {
    expectAlike(await play(await windowPolicy(2), 4), await play(await windowPolicy(64), 4));
  });

  it('takes up an episode in the middle', async () => {
    const policy = await windowPolicy();
    const table = new Table(0, 123);
    for (let turn = 0; turn < 3; turn++) {
      policy.submit([table.request()]);
      await table.take((await policy.step())[0]!);
    }
    const request = table.request();
    policy.submit([request]);
    const [whole] = await policy.step();
    const fresh = await windowPolicy();
    fresh.submit([{ ...request, newActions: table.table, history: table.history }]);
    expectAlike(await fresh.step(), [whole!]);
  });

  it('counts waiting turns, and drops released episodes', async () => {
    const policy = await windowPolicy();
    const [one, two] = [new Table(0, 0), new Table(1, 1)];
    policy.submit([one.request(0), two.request(0)]);
    expect([policy.waiting, policy.complete]).toEqual([2, true]);
    policy.release([0, 99]);
    expect(policy.waiting).toBe(1);
    expect((await policy.step()).map(({ episode }) => episode)).toEqual([1]);
    expect([policy.waiting, policy.complete]).toEqual([0, false]);
    policy.forget();
    expect(await policy.step()).toEqual([]);
  });

  it('refuses a turn without a list, and weights of another model', async () => {
    const policy = await windowPolicy();
    const [refused] = policy.submit([{ ...new Table(0, 0).request(), actions: new Int32Array(0) }]);
    expect(refused).toMatchObject({ episode: 0, message: expect.stringMatching(/lists no action/) });
    expect(policy.waiting).toBe(0);
    const wider = initialParams(smallModel(codec.vocabSize, { layers: 2, hiddenSize: 64 }), 1);
    expect(() => policy.load(wider)).toThrow();
  });
});
