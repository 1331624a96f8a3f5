/** Laws of every policy, whatever computes it. `testPolicyLaws` holds a policy to all of them. */
import { deepStrictEqual } from 'node:assert/strict';
import { describe, it } from 'vitest';
import type { ParamSet } from '../../src/compute/model/parameters.ts';
import type { Env, MaybePromise, Session } from '../../src/core/env.ts';
import { Rng } from '../../src/core/rng.ts';
import type { Decision } from '../../src/core/trajectory.ts';
import type { Acted, ActRequest, Policy } from '../../src/policy/policy.ts';

/** Policy under test. */
export interface PolicySubject {
  /** A fresh policy, always with the same weights. @param maxBatch default 64 */
  open(maxBatch?: number): MaybePromise<Policy>;
  /** World that lists its actions. */
  readonly env: Env;
  /** True where the policy writes freely: what it plays need not be listed. Absent: false. */
  readonly writesFreely?: boolean;
  /** True where it chooses among listed actions without reporting its decision. Absent: read from its decisions. */
  readonly chooses?: boolean;
  /** Members of a group, ≥ 1. */
  readonly groupSize: number;
  /** Other weights, of a version of their own, where the policy takes some. */
  readonly weights?: ParamSet;
}

export interface PolicyLaw {
  readonly name: string;
  /** @throws where it does not hold */
  readonly holds: (subject: PolicySubject, seed: number) => Promise<void>;
}

/** Seeds that every law is tried with. */
const SEEDS = process.env.LONGPLAY_LONG === '1' ? [1, 2, 3, 4] : [1];
const GROUPS = 3;
const TURNS = 4;

/** One episode as the rollouts keep it. */
class Seat {
  readonly table: string[] = [];
  readonly past: { observation: string; action: string; actions: Int32Array; decision?: Decision }[] = [];
  readonly episode: number;
  readonly group: number;
  readonly member: number;
  readonly size: number;
  readonly session: Session;
  readonly free: boolean;
  observation: string;
  listed: Int32Array = new Int32Array(0);
  waiting = false;
  over = false;

  constructor(episode: number, size: number, session: Session, free: boolean) {
    this.free = free;
    this.episode = episode;
    this.group = Math.floor(episode / size);
    this.member = episode % size;
    this.size = size;
    this.session = session;
    this.observation = session.first.observation;
  }

  /** The next turn. @param recall send it with the whole history */
  request(recall = false): ActRequest {
    const known = this.table.length;
    this.listed = Int32Array.from(this.session.actions(), (text) => {
      const at = this.table.indexOf(text);
      return at >= 0 ? at : this.table.push(text) - 1;
    });
    this.waiting = true;
    const last = this.past.at(-1);
    return {
      episode: this.episode,
      group: this.group,
      member: this.member,
      groupSize: this.size,
      turn: this.past.length,
      observation: this.observation,
      actions: this.listed,
      newActions: recall ? [...this.table] : this.table.slice(known),
      samplingSeed: 1000 + this.episode,
      temperature: 1,
      ...(last ? { lastAction: last.action } : {}),
      ...(recall && last ? { history: [...this.past] } : {}),
    };
  }

  async take({ turn, action, decision }: Acted): Promise<void> {
    need(
      this.waiting && turn === this.past.length,
      `turn ${turn} of episode ${this.episode} is answered without a request`,
    );
    if (this.free) need(decision?.kind === 'tokens', `episode ${this.episode} is answered without its tokens`);
    else {
      need(
        [...this.listed].some((at) => this.table[at] === action),
        `'${action}' of episode ${this.episode} is not listed`,
      );
    }
    this.waiting = false;
    const { observation, listed: actions } = this;
    this.past.push({ observation, action, actions, ...(decision ? { decision } : {}) });
    const step = await this.session.step(action);
    this.observation = step.observation;
    this.over = step.kind === 'terminated' || this.past.length === TURNS;
  }
}

async function seats(
  { env, groupSize, writesFreely = false }: PolicySubject,
  seed: number,
): Promise<Map<number, Seat>> {
  const all = new Map<number, Seat>();
  for (let episode = 0; episode < GROUPS * groupSize; episode++) {
    const group = Math.floor(episode / groupSize);
    const index = (seed + 7 * group) % env.tasks.count;
    const session = await env.open({ env: env.id, index, seed: seed + group });
    all.set(episode, new Seat(episode, groupSize, session, writesFreely));
  }
  return all;
}

/**
 * Plays episodes to their end or by `until` turns: again and again some that are idle send their turn, or the policy
 * makes a call.
 * @param order draws which episodes send and when; absent: all at once, before every call
 */
async function play(policy: Policy, table: Map<number, Seat>, order?: Rng, until = TURNS): Promise<void> {
  for (;;) {
    const idle = [...table.values()].filter(({ waiting, over, past }) => !waiting && !over && past.length < until);
    const send = order ? order.shuffle(idle).slice(0, order.int(idle.length + 1)) : idle;
    if (send.length > 0) policy.submit(send.map((seat) => seat.request()));
    const waiting = [...table.values()].filter((seat) => seat.waiting).length;
    need(policy.waiting === waiting, `${waiting} turns wait, and it reports ${policy.waiting}`);
    if (waiting === 0 && idle.length === 0) return;
    if (waiting === 0) continue;
    await call(policy, table);
  }
}

async function call(policy: Policy, table: ReadonlyMap<number, Seat>): Promise<void> {
  for (const acted of await policy.step()) {
    const seat = table.get(acted.episode);
    need(seat, `episode ${acted.episode} is answered without a request`);
    await seat!.take(acted);
  }
}

/**
 * Plays episodes to their end with two calls under way where the policy overlaps them: some that are idle send their turn, then
 * a call begins beside the one before it.
 * @param meanwhile called each time a call has begun
 */
async function playOverlapping(policy: Policy, table: Map<number, Seat>, order: Rng, meanwhile = () => {}) {
  const calls: Promise<readonly Acted[]>[] = [];
  for (;;) {
    const idle = [...table.values()].filter(({ waiting, over }) => !waiting && !over);
    const send = order.shuffle(idle).slice(0, order.int(idle.length + 1));
    if (send.length > 0) policy.submit(send.map((seat) => seat.request()));
    if (policy.waiting > 0 && calls.length < 2) {
      calls.push(Promise.resolve(policy.step()));
      meanwhile();
      if (policy.overlaps && calls.length < 2) continue;
    }
    const first = calls.shift();
    for (const acted of (await first) ?? []) {
      const seat = table.get(acted.episode);
      need(seat, `episode ${acted.episode} is answered without a request`);
      await seat!.take(acted);
    }
    if (!first && ![...table.values()].some(({ over }) => !over)) return;
  }
}

const decided = (table: ReadonlyMap<number, Seat>) => new Map([...table].map(([id, { past }]) => [id, past]));

/** Equal but for the last bits of numbers, which the make-up of a batch moves. */
function needAlike(found: ReturnType<typeof decided>, expected: ReturnType<typeof decided>): void {
  const rounded = (table: ReturnType<typeof decided>) =>
    [...table].map(([episode, past]) => ({
      episode,
      past: past.map(({ observation, action, decision }) => {
        if (!decision) return { observation, action };
        const { logprob, logprobs, value, likeliest, ...rest } = {
          ...{ logprob: 0, logprobs: [], likeliest: undefined },
          ...decision,
        };
        return { observation, action, decision: rest };
      }),
    }));
  deepStrictEqual(rounded(found), rounded(expected));
  for (const [episode, past] of found) {
    past.forEach(({ decision }, t) => {
      const other = numbers(expected.get(episode)![t]!.decision);
      for (const [i, number] of numbers(decision).entries()) {
        need(Math.abs(number - other[i]!) < 1e-4, `episode ${episode}, turn ${t}: ${number} instead of ${other[i]}`);
      }
      const [own, others] = [shares(decision), shares(expected.get(episode)![t]!.decision)];
      const near = own.length === others.length && own.every((share, i) => Math.abs(share - others[i]!) <= 2);
      need(near, `episode ${episode}, turn ${t}: likeliest ${own} instead of ${others}`);
    });
  }
}

function numbers(decision: Decision | undefined): number[] {
  if (!decision) return [];
  return [...(decision.kind === 'choice' ? [decision.logprob] : decision.logprobs), decision.value];
}

/** Shares of the likeliest actions, in ten-thousandths. */
function shares(decision: Decision | undefined): number[] {
  return decision?.kind === 'choice' ? [...(decision.likeliest ?? [])].filter((_, i) => i % 2 === 1) : [];
}

/** Holds a choice to the actions that it calls likeliest. */
function needLikeliest(decision: Decision | undefined, listed: number, where: string): void {
  if (decision?.kind !== 'choice' || !decision.likeliest) return;
  const places = [...decision.likeliest].filter((_, i) => i % 2 === 0);
  const parts = shares(decision);
  need(places.length === Math.min(8, listed), `${where}: ${places.length} likeliest of ${listed} actions`);
  need(new Set(places).size === places.length && places.every((at) => at < listed), `${where}: places ${places}`);
  need(
    parts.every((share, i) => i === 0 || share <= parts[i - 1]!),
    `${where}: shares ${parts} do not descend`,
  );
  const own = places.indexOf(decision.choice);
  const taken = 10_000 * Math.exp(decision.logprob);
  const fits = own < 0 ? taken <= parts.at(-1)! + 1 : Math.abs(parts[own]! - taken) <= 1;
  need(
    fits,
    `${where}: likeliest ${decision.likeliest}, and log π of action ${decision.choice} is ${decision.logprob}`,
  );
}

function need(ok: unknown, message: string): void {
  if (!ok) throw new Error(message);
}

/** Decisions of an undisturbed policy. */
async function undisturbed(subject: PolicySubject, seed: number): Promise<ReturnType<typeof decided>> {
  return withPolicy(subject, async (policy) => {
    const table = await seats(subject, seed);
    await play(policy, table);
    return decided(table);
  });
}

async function withPolicy<T>(
  subject: PolicySubject,
  use: (policy: Policy) => Promise<T>,
  maxBatch?: number,
): Promise<T> {
  const policy = await subject.open(maxBatch);
  try {
    return await use(policy);
  } finally {
    await policy.dispose();
  }
}

export const policyLaws: readonly PolicyLaw[] = [
  {
    name: 'answers every submitted turn once, with a listed action',
    holds: (subject, seed) =>
      withPolicy(subject, async (policy) => {
        const table = await seats(subject, seed);
        await play(policy, table, Rng.fromSeed(seed));
        need(policy.waiting === 0, 'turns are left over');
        deepStrictEqual([...(await policy.step())], [], 'without a waiting turn it answers some');
        need(
          [...table.values()].every(({ over }) => over),
          'an episode never ended',
        );
      }),
  },
  {
    name: 'reports the likeliest actions of a choice in agreement with its log-probability, where it reports them',
    async holds(subject, seed) {
      for (const [episode, past] of await undisturbed(subject, seed)) {
        past.forEach(({ decision, actions }, t) =>
          needLikeliest(decision, actions.length, `episode ${episode}, turn ${t}`),
        );
      }
    },
  },
  {
    name: 'decides alike whatever comes together, in whatever batches',
    async holds(subject, seed) {
      const expected = await undisturbed(subject, seed);
      for (const maxBatch of [1, 2, 64]) {
        await withPolicy(
          subject,
          async (policy) => {
            const table = await seats(subject, seed);
            await play(policy, table, Rng.fromSeed(seed + maxBatch));
            needAlike(decided(table), expected);
          },
          maxBatch,
        );
      }
    },
  },
  {
    name: 'refuses a turn that lists nothing where it chooses, and decides the others as if there were none',
    async holds(subject, seed) {
      const expected = await undisturbed(subject, seed);
      const [, first] = [...expected][0]!;
      await withPolicy(subject, async (policy) => {
        const table = await seats(subject, seed);
        const requests = [...table.values()].map((seat) => seat.request());
        const [empty, ...rest] = requests;
        const refused = policy.submit([...rest, { ...empty!, actions: new Int32Array(0) }]);
        const chooses = subject.chooses ?? first[0]!.decision?.kind === 'choice';
        need(refused.length === 1 || (refused.length === 0 && !chooses), `${refused.length} turns are refused`);
        for (const { episode, message } of refused) {
          need(episode === empty!.episode && /lists no action on turn 0/.test(message), `refused: ${message}`);
        }
        policy.release([empty!.episode]);
        table.delete(empty!.episode);
        expected.delete(empty!.episode);
        await play(policy, table);
        needAlike(decided(table), expected);
      });
    },
  },
  {
    name: 'is complete when no episode is left that could join the call',
    holds: (subject, seed) =>
      withPolicy(subject, async (policy) => {
        const table = await seats(subject, seed);
        policy.submit([...table.values()].map((seat) => seat.request()));
        need(policy.complete, 'everyone waits, and it is not complete');
        await play(policy, table);
      }),
  },
  {
    name: 'drops released episodes, twice or unknown alike, without effect on others',
    async holds(subject, seed) {
      const expected = await undisturbed(subject, seed);
      await withPolicy(subject, async (policy) => {
        const table = await seats(subject, seed);
        const rng = Rng.fromSeed(seed);
        await play(policy, table, undefined, 1 + rng.int(TURNS - 2));
        policy.submit([...table.values()].filter(({ over }) => !over).map((seat) => seat.request()));
        const gone = rng.shuffle([...table.keys()]).slice(0, 1 + rng.int(table.size - 1));
        policy.release([...gone, 10_000]);
        policy.release(gone);
        for (const episode of gone) table.delete(episode);
        await play(policy, table);
        for (const episode of gone) expected.delete(episode);
        needAlike(decided(table), expected);
      });
    },
  },
  {
    name: 'is as a fresh one once it has forgotten everything',
    async holds(subject, seed) {
      const expected = await undisturbed(subject, seed);
      await withPolicy(subject, async (policy) => {
        const before = await seats(subject, seed + 1);
        await play(policy, before, undefined, 2);
        policy.submit([...before.values()].filter(({ over }) => !over).map((seat) => seat.request()));
        policy.forget();
        need(policy.waiting === 0, 'turns still wait');
        const table = await seats(subject, seed);
        await play(policy, table);
        needAlike(decided(table), expected);
      });
    },
  },
  {
    name: 'goes on with an episode that comes with its history as if it had never left',
    async holds(subject, seed) {
      const expected = await undisturbed(subject, seed);
      await withPolicy(subject, async (first) => {
        const table = await seats(subject, seed);
        await play(first, table, undefined, 1 + Rng.fromSeed(seed).int(TURNS - 2));
        await withPolicy(subject, async (second) => {
          second.submit([...table.values()].filter(({ over }) => !over).map((seat) => seat.request(true)));
          await play(second, table);
          needAlike(decided(table), expected);
        });
      });
    },
  },
  {
    name: 'decides by new weights from the next call on, and reports their version',
    async holds(subject, seed) {
      const weights = subject.weights!;
      const expected = await undisturbed(subject, seed);
      await withPolicy(subject, async (policy) => {
        const table = await seats(subject, seed);
        await play(policy, table, undefined, 1);
        const old = policy.version;
        policy.load(weights);
        need(policy.version === weights.version && old !== weights.version, `its version is ${policy.version}`);
        await play(policy, table);
        for (const { past } of table.values()) {
          past.forEach(({ decision }, t) => {
            need(
              decision!.version === (t === 0 ? old : weights.version),
              `turn ${t} reports version ${decision!.version}`,
            );
          });
        }
        const moved = [...table].some(([episode, { past }]) => {
          const [now, before] = [past[1]?.decision, expected.get(episode)![1]?.decision];
          return numbers(now).some((number, i) => number !== numbers(before)[i]);
        });
        need(moved, 'no number of a later turn has changed');
      });
    },
  },
  {
    name: 'decides alike with one call under way or two',
    async holds(subject, seed) {
      const expected = await undisturbed(subject, seed);
      for (const maxBatch of [1, subject.groupSize, 64]) {
        await withPolicy(
          subject,
          async (policy) => {
            const table = await seats(subject, seed);
            await playOverlapping(policy, table, Rng.fromSeed(seed + maxBatch));
            needAlike(decided(table), expected);
          },
          maxBatch,
        );
      }
    },
  },
  {
    name: 'answers nothing that was released while a call was under way, and goes on with the others',
    async holds(subject, seed) {
      const expected = await undisturbed(subject, seed);
      await withPolicy(subject, async (policy) => {
        if (!policy.overlaps) return;
        const table = await seats(subject, seed);
        const order = Rng.fromSeed(seed);
        let calls = 0;
        await playOverlapping(policy, table, order, () => {
          if (++calls % 2 === 0 || table.size === 2) return;
          const [gone] = order.shuffle([...table.values()].filter(({ waiting }) => waiting));
          policy.release([gone!.episode]);
          // It comes back at once, into the row that the call under way writes, or not at all.
          if (calls % 4 === 1) return void policy.submit([gone!.request(true)]);
          table.delete(gone!.episode);
          expected.delete(gone!.episode);
        });
        need(calls > 2 && table.size < GROUPS * subject.groupSize, 'nothing was released');
        needAlike(decided(table), expected);
      });
    },
  },
  {
    name: 'forgets a call under way, too',
    async holds(subject, seed) {
      const expected = await undisturbed(subject, seed);
      await withPolicy(subject, async (policy) => {
        if (!policy.overlaps) return;
        const before = await seats(subject, seed + 1);
        policy.submit([...before.values()].map((seat) => seat.request()));
        const call = policy.step();
        policy.forget();
        need(policy.waiting === 0, 'turns still wait');
        const table = await seats(subject, seed);
        policy.submit([...table.values()].map((seat) => seat.request()));
        deepStrictEqual([...(await call)], [], 'what was forgotten is answered');
        await play(policy, table);
        needAlike(decided(table), expected);
      });
    },
  },
  {
    name: 'keeps nothing of a call that new weights have overtaken',
    async holds(subject, seed) {
      const run = (overtakes: boolean) =>
        withPolicy(subject, async (policy) => {
          const table = await seats(subject, seed);
          await play(policy, table, undefined, 1);
          policy.submit([...table.values()].filter(({ over }) => !over).map((seat) => seat.request()));
          const call = Promise.resolve(policy.step());
          if (!overtakes) await call;
          policy.load(subject.weights!);
          for (const acted of await call) await table.get(acted.episode)!.take(acted);
          await play(policy, table);
          return { overlaps: policy.overlaps, table: decided(table) };
        });
      const ordered = await run(false);
      if (ordered.overlaps) needAlike((await run(true)).table, ordered.table);
    },
  },
];

/** Tests of all laws for one policy. */
export function testPolicyLaws(name: string, subject: () => MaybePromise<PolicySubject>): void {
  describe(`${name} policy`, { timeout: 240_000 }, () => {
    for (const { name: law, holds } of policyLaws) {
      it(law, async ({ skip }) => {
        const opened = await subject();
        if (law.includes('weights') && !opened.weights) skip('it takes no weights');
        for (const seed of SEEDS) await holds(opened, seed);
      });
    }
  });
}
