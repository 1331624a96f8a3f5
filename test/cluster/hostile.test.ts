/**
 * Results from a stranger: honest ones of a real run, mutated. None may crash the learner's side or be trained on. What no
 * check can see is left out of the mutations: the policy's own numbers (log-probability, value, version within the lag),
 * times, counts of attempts, and the worker's name. Lies about the world are found by playing again (`--verify`).
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { deflateRawSync, deflateSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createVerifier } from '../../actors/cluster/verifier.ts';
import { createEpisodeCheck, type EpisodeCheck } from '../../src/cluster/episode-check.ts';
import { decodeResult, encodeResult, type GroupResult } from '../../src/cluster/result.ts';
import { TicketDispatcher } from '../../src/cluster/ticket-dispatcher.ts';
import type { RunConfigInput } from '../../src/config/run-config.ts';
import { SimulatedClock } from '../../src/core/clock.ts';
import type { Env } from '../../src/core/env.ts';
import { LongplayError } from '../../src/core/errors.ts';
import { Rng } from '../../src/core/rng.ts';
import type { GroupTicket } from '../../src/core/ticket.ts';
import type { TokensDecision, Trajectory } from '../../src/core/trajectory.ts';
import { trainingFeeds, trainUnits } from '../../src/learning/learner/training-batch.ts';
import { setUpLocalPolicy } from '../../src/policy/setup.ts';
import { startRun } from '../../src/run/start-run.ts';
import { plainTrajectory } from '../../src/storage/trace.ts';
import { loadWorld } from '../../src/world/open-world.ts';
import { MemoryServer } from '../support/memory-broker.ts';
import { smallConfig, temporaryFolder, textcraftUrl } from '../support/small-run.ts';

const folder = temporaryFolder('hostile');
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Honest {
  readonly result: GroupResult;
  readonly vocabSize: number;
  readonly check: EpisodeCheck;
  readonly env: Env;
  /** Reads trajectories as the learner does. @throws what would end it */
  readonly train: (trajectories: readonly Trajectory[]) => void;
}
let honest: Honest[];

/** Decoders, and what an honest worker of each sends. */
const POLICIES: readonly RunConfigInput['policy'][] = [
  {},
  { decoder: 'tokens', maxTokens: 12 },
  { decoder: 'tokens', masked: false, maxTokens: 4 },
];

beforeAll(async () => {
  honest = [];
  for (const [n, policy] of POLICIES.entries()) honest.push(...(await playedBy(policy, join(folder, String(n)))));
}, 120_000);

async function playedBy(policy: RunConfigInput['policy'], dir: string): Promise<Honest[]> {
  const { policy: small } = smallConfig({});
  const config = smallConfig({
    rollout: { groupSize: 2, concurrentGroups: 4, maxBatch: 16 },
    policy: { ...small, ...policy },
  });
  const groups = new Map<number, readonly Trajectory[]>();
  const run = await startRun({
    config,
    dir,
    mode: 'serial',
    envModule: textcraftUrl,
    learn: true,
    onEpisodes: (trajectories) => groups.set(trajectories[0]!.group, trajectories),
  });
  await run.train();
  await run.stop();
  const world = await loadWorld(textcraftUrl);
  const { codec, model } = setUpLocalPolicy(config, world.view, undefined);
  const env = world.createEnv!(config.env.options);
  const { decoder, masked } = config.policy;
  const check = createEpisodeCheck({ env, codec, maxPositions: model.maxPositions, decoder, masked });
  return [...groups.values()].slice(0, 6).map((trajectories) => {
    const { group, task, horizon } = trajectories[0]!;
    const purpose = { name: 'train', temperature: 1, seed: 1 };
    const ticket: GroupTicket = { group, task, horizon, size: trajectories.length, purpose, version: 0 };
    const digests = Object.fromEntries([0, 1, 2, 3, 4, 5].map((version) => [version, 'd'.repeat(64)]));
    const result = { ticket, worker: 'w', delivery: 1, digests, failed: [], trajectories };
    const train: Honest['train'] = (own) =>
      void trainingFeeds(model, codec, { decoder }, trainUnits(codec, own, 0).flat());
    return { result, vocabSize: model.vocabSize, check, env, train };
  });
}

/**
 * Returns why a result is refused, as the dispatcher does; undefined where it counts. @throws what would crash the
 * learner
 */
async function refusal({ result, vocabSize, check, env }: Honest, bytes: Uint8Array): Promise<string | undefined> {
  try {
    const decoded = decodeResult(bytes, result.ticket, vocabSize);
    return check(decoded.trajectories, true) ?? (await createVerifier(1, async () => env)(decoded));
  } catch (thrown) {
    if (thrown instanceof LongplayError) return thrown.message;
    throw thrown;
  }
}

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/**
 * Keys whose values cannot be checked: the policy's own numbers, times and counts, and what the learner numbers anew.
 */
const UNSEEN: ReadonlySet<string> = new Set([
  ...[
    'logprob',
    'logprobs',
    'value',
    'likeliest',
    'versions',
    'actMs',
    'envMs',
    'stages',
    'attempt',
    'episode',
    'view',
  ],
  ...['worker', 'delivery', 'digests', 'failed', 'version'],
]);

/** Places of a value, as chains of keys. */
function placesOf(value: Json, path: readonly string[] = []): (readonly string[])[] {
  if (typeof value !== 'object' || value === null) return [path];
  return [
    path,
    ...Object.keys(value).flatMap((key) =>
      UNSEEN.has(key) ? [] : placesOf((value as Record<string, Json>)[key]!, [...path, key]),
    ),
  ];
}

const STRANGE: readonly (string | number | boolean | null | object)[] = [
  ...[null, true, false, '', 'x', '__proto__', -1, 0.5, 2 ** 31, 2 ** 53, 1e308, [], {}, [[]], '\u0000', '\ud800'],
  { __proto__: null, constructor: 1 },
];

/** One change somewhere in the JSON; undefined where it changed nothing. */
function mutatedJson(text: string, places: readonly (readonly string[])[], rng: Rng): string {
  const whole = JSON.parse(text) as Json;
  const path = places[1 + rng.int(places.length - 1)]!;
  let at = whole as Record<string, Json>;
  for (const key of path.slice(0, -1)) at = at[key] as Record<string, Json>;
  const key = path.at(-1)!;
  const now = at[key]!;
  const kinds = [
    () => (Array.isArray(at) ? at.splice(Number(key), 1) : delete at[key]),
    () => {
      at[key] = STRANGE[rng.int(STRANGE.length)] as Json;
    },
    () => {
      if (typeof now === 'number') at[key] = now + [1, -1, 0.25, 1e9, -1e9][rng.int(5)]!;
      else if (typeof now === 'string') at[key] = rng.int(2) === 0 ? `${now}.` : now.slice(1);
      else if (typeof now === 'boolean') at[key] = !now;
      else if (Array.isArray(now) && now.length > 0) {
        if (rng.int(2) === 0) now.push(now[rng.int(now.length)]!);
        else now.reverse();
      }
    },
  ];
  kinds[rng.int(kinds.length)]!();
  const changed = JSON.stringify(whole);
  // Numbers that JSON can write and no computer hold.
  return rng.int(50) === 0 ? changed.replace(/"reward":-?[\d.]+/, '"reward":1e999') : changed;
}

function mutatedBytes(bytes: Uint8Array, rng: Rng): Uint8Array {
  const copy = Buffer.from(bytes);
  const at = rng.int(copy.length);
  switch (rng.int(4)) {
    case 0:
      copy[at]! ^= 1 + rng.int(255);
      return copy;
    case 1:
      return copy.subarray(0, at);
    case 2:
      return Buffer.concat([copy.subarray(0, at), Buffer.from([rng.int(256)]), copy.subarray(at)]);
    default:
      return Buffer.concat([copy.subarray(0, at), copy.subarray(Math.min(copy.length, at + 1 + rng.int(20)))]);
  }
}

/** Where two texts begin to differ. */
function changeOf(before: string, after: string): string {
  let at = 0;
  while (before[at] === after[at] && at < before.length) at++;
  const around = (text: string) => text.slice(Math.max(0, at - 200), at + 60);
  return `${around(before)} >>> ${around(after)}`;
}

/**
 * What of a result is trained on, or changes a book. The members of a group have no order, nor has the table of actions. Tokens that were
 * sampled freely are the policy's own word where others spell the same action.
 */
function essence({ ticket, gaveUp, trajectories }: GroupResult, isSkipping = false): unknown {
  const episodes = trajectories.map(({ turns, actionTable, ...one }) => {
    const all = turns.map(({ actions, decision, ...turn }) => ({
      ...turn,
      decision: decision?.kind === 'tokens' && !decision.masked ? { ...decision, tokens: undefined } : decision,
      texts: Array.from(actions, (at) => actionTable[at]),
    }));
    // One that was cut at its horizon has all its turns.
    const isShorter = isSkipping && one.end !== 'truncated';
    const read = all.filter((turn, t) => !isShorter || !isSeenAlike(turn, all[t + 1]));
    return JSON.stringify({ ...plainTrajectory({ ...one, actionTable: [], turns: [] }), read }, (key, value) =>
      UNSEEN.has(key) ? undefined : value,
    );
  });
  return { ticket, gaveUp, episodes: episodes.sort() };
}

interface Seen {
  readonly observation: string;
  readonly texts: readonly (string | undefined)[];
}

/** True where the turn after a turn shows just what the turn itself showed, as after the same `get` repeated. */
function isSeenAlike({ observation, texts }: Seen, next: Seen | undefined): boolean {
  return next !== undefined && next.observation === observation && isDeepStrictEqual(next.texts, texts);
}

const turnCount = ({ trajectories }: GroupResult) => trajectories.reduce((sum, { turns }) => sum + turns.length, 0);

/**
 * True for what counts as another result does. An episode that lacks a turn after which everything looked as before could have been
 * played as it stands (it was played again): which of the possible actions were drawn is the worker's word.
 */
function isSame(one: GroupResult, other: GroupResult): boolean {
  const isSkipping = turnCount(one) < turnCount(other);
  return isDeepStrictEqual(essence(one, isSkipping), essence(other, isSkipping));
}

describe('a result from a stranger', () => {
  it('that is honest counts', async () => {
    expect(honest.length).toBeGreaterThan(3);
    for (const one of honest) expect(await refusal(one, encodeResult(one.result))).toBeUndefined();
  });

  const count = process.env.LONGPLAY_LONG === '1' ? 100_000 : 2000;
  it(`that was changed does not, nor does it harm: ${count} mutations`, async () => {
    const rng = Rng.fromSeed(Number(process.env.LONGPLAY_ATTACK_SEED ?? 1));
    const tally = { refused: 0, same: 0, reasons: new Map<string, number>() };
    const texts = honest.map(({ result }) =>
      JSON.stringify({ ...result, trajectories: result.trajectories.map(plainTrajectory) }),
    );
    const encoded = honest.map(({ result }) => encodeResult(result));
    const places = texts.map((text) => placesOf(JSON.parse(text) as Json));
    for (let n = 0; n < count; n++) {
      const which = rng.int(honest.length);
      const one = honest[which]!;
      const byBytes = rng.int(3) === 0;
      const text = byBytes ? undefined : mutatedJson(texts[which]!, places[which]!, rng);
      const bytes = text === undefined ? mutatedBytes(encoded[which]!, rng) : deflateSync(text, { level: 1 });
      const why = await refusal(one, bytes);
      if (why === undefined) {
        // Nothing of what counts may differ, and the learner can read it.
        const decoded = decodeResult(bytes, one.result.ticket, one.vocabSize);
        one.train(decoded.trajectories);
        if (!isSame(decoded, one.result)) {
          throw new Error(`mutation ${n} counts: ${text === undefined ? 'bytes' : changeOf(texts[which]!, text)}`);
        }
        tally.same++;
      } else {
        tally.refused++;
        const kind = why.replace(/[\d.]+/g, 'n').slice(0, 40);
        tally.reasons.set(kind, (tally.reasons.get(kind) ?? 0) + 1);
      }
    }
    console.log(
      `${count} hostile results: ${tally.refused} refused for ${tally.reasons.size} reasons, ${tally.same} the same as before, 0 trained`,
    );
    expect(tally.refused).toBeGreaterThan(0.9 * count);
    expect(tally.reasons.size).toBeGreaterThan(40);
  }, 1_200_000);

  it('that is a bomb, or no bytes of ours, is refused before it is large', async () => {
    const one = honest[0]!;
    const bomb = deflateSync(Buffer.alloc(300 * 2 ** 20), { level: 1 });
    expect(bomb.length).toBeLessThan(2 ** 22);
    expect(await refusal(one, bomb)).toMatch(/cannot be inflated/);
    expect(await refusal(one, new Uint8Array(9 * 2 ** 20))).toMatch(/expected at most 8388608/);
    expect(await refusal(one, deflateRawSync('{}'))).toMatch(/cannot be inflated/);
    expect(await refusal(one, deflateSync('['.repeat(1_000_000)))).toMatch(/not JSON/);
  });

  const lies: readonly (readonly [string, (one: Trajectory) => Trajectory, RegExp])[] = [
    ['a reward', (one) => withLast(one, (turn) => ({ ...turn, reward: turn.reward === 0 ? 1 : 0 })), /another reward/],
    ['an observation', (one) => ({ ...one, finalObservation: `${one.finalObservation}!` }), /another observation/],
    [
      'the end',
      (one) => ({ ...one, end: one.end === 'truncated' ? 'terminated' : 'truncated' }),
      /another end|cut after/,
    ],
    ['success', (one) => ({ ...one, success: !one.success }), /success/],
  ];
  for (const [what, lie, pattern] of lies) {
    it(`that lies about ${what} is found out by playing again`, async () => {
      const one = honest[0]!;
      const [first, ...rest] = one.result.trajectories;
      const bytes = encodeResult({ ...one.result, trajectories: [lie(first!), ...rest] });
      expect(await refusal(one, bytes)).toMatch(pattern);
    });
  }
});

describe('a run of tokens from a stranger', () => {
  type Change = (turn: Trajectory['turns'][number], run: TokensDecision) => Partial<Trajectory['turns'][number]>;
  const lies: readonly (readonly [string, Change, RegExp])[] = [
    ['under another mask', (_, run) => ({ decision: { ...run, masked: !run.masked } }), /unlike this policy's/],
    ['that spells another action', ({ action }) => ({ action: `${action} more` }), /do not spell/],
    [
      'of what is never sampled',
      (_, run) => ({ decision: { ...run, tokens: run.tokens.map(() => 0) } }),
      /never sampled|not possible/,
    ],
  ];
  for (const [what, lie, pattern] of lies) {
    it(`${what} is refused`, async () => {
      const kinds = new Set<boolean>();
      for (const one of honest) {
        const [first, ...rest] = one.result.trajectories;
        const changed = withLast(first!, (turn) =>
          turn.decision?.kind === 'tokens' ? { ...turn, ...lie(turn, turn.decision) } : turn,
        );
        const { decision } = first!.turns.at(-1)!;
        if (decision?.kind !== 'tokens') continue;
        kinds.add(decision.masked);
        expect(await refusal(one, encodeResult({ ...one.result, trajectories: [changed, ...rest] }))).toMatch(pattern);
      }
      expect(kinds.size).toBe(2);
    });
  }
});

function withLast(
  one: Trajectory,
  change: (turn: Trajectory['turns'][number]) => Trajectory['turns'][number],
): Trajectory {
  return { ...one, turns: one.turns.map((turn, t) => (t === one.turns.length - 1 ? change(turn) : turn)) };
}

describe('a worker whose results are refused', () => {
  it('three times in a row is banned, once, and honest ones go on', async () => {
    const clock = new SimulatedClock();
    const server = new MemoryServer(clock, Rng.fromSeed(1), 1000);
    const { result, vocabSize } = honest[0]!;
    const seen = { results: [] as string[], refused: [] as string[], banned: [] as string[] };
    const dispatcher = new TicketDispatcher({
      broker: server.connect(),
      clock,
      vocabSize,
      digestOf: () => undefined,
      verify: ({ worker }) => Promise.resolve(worker === 'liar' ? 'a lie' : undefined),
      onResult: ({ worker }) => seen.results.push(worker),
      onRefused: (_, worker, why) => seen.refused.push(`${worker}: ${why}`),
      onBanned: (worker) => seen.banned.push(worker),
      onError: (thrown) => {
        throw thrown;
      },
    });
    dispatcher.dispatch([result.ticket]);
    dispatcher.start();
    const pass = async () => {
      for (let n = 0; n < 300; n++) {
        for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
        clock.advance(clock.untilNext ?? 1);
      }
    };
    const worker = server.connect();
    for (let n = 0; n < 5; n++) {
      await pass();
      const [name] = await worker.tickets.list().then((names) => [...names].slice(-1));
      await worker.results.put(name!, encodeResult({ ...result, worker: 'liar' }));
      await pass();
    }
    expect(seen.refused.length).toBe(5);
    expect(seen.refused[2]).toBe('liar: a lie');
    expect(seen.refused[4]).toMatch(/results in a row were refused/);
    expect(seen.banned).toEqual(['liar']);
    const [name] = await worker.tickets.list().then((names) => [...names].slice(-1));
    await worker.results.put(name!, encodeResult({ ...result, worker: 'honest' }));
    await pass();
    expect(seen.results).toEqual(['honest']);
    expect(dispatcher.counts).toMatchObject({ outstanding: 0, refused: 5, results: 1 });
    dispatcher.stop();
  }, 60_000);
});
