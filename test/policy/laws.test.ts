/** Policies of this process under the laws, and planted bugs that the laws must notice. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import * as babyai from '../../envs/babyai/index.ts';
import * as textcraft from '../../envs/textcraft/index.ts';
import type { Engine } from '../../src/compute/engine/engine.ts';
import { openEngine } from '../../src/compute/engine/open.ts';
import { smallModel } from '../../src/compute/model/config.ts';
import { initialParams } from '../../src/compute/model/parameters.ts';
import type { DecoderKind } from '../../src/compute/model/programs.ts';
import type { View } from '../../src/core/view.ts';
import { CachedPolicy } from '../../src/policy/cached-policy.ts';
import { EngineThread } from '../../src/policy/engine-thread.ts';
import type { Acted, ActRequest, Policy, Unanswered } from '../../src/policy/policy.ts';
import { RandomPolicy } from '../../src/policy/random-policy.ts';
import { RulePolicy } from '../../src/policy/rule-policy.ts';
import { WindowPolicy } from '../../src/policy/window-policy.ts';
import type { Codec } from '../../src/text/reading/codec.ts';
import { codecOf } from '../../src/text/reading/codec-of.ts';
import { OverflowingCodec } from '../support/overflowing-codec.ts';
import { type PolicySubject, policyLaws, testPolicyLaws } from './laws.ts';

let engine: Engine;
beforeAll(async () => {
  engine = await openEngine({ name: 'auto', device: 'cpu', threads: 1 });
});
afterAll(() => engine.dispose());

const random = {
  open: (maxBatch = 64) => new RandomPolicy(maxBatch),
  env: textcraft.createEnv(),
  groupSize: 2,
  chooses: true,
};

/** A local policy with a tiny model. */
function local(
  world: { readonly createEnv: () => PolicySubject['env']; readonly view?: View },
  groupSize: number,
  open: 'cached' | 'window' | 'engine thread',
  decoder: DecoderKind = 'choice',
  codec: Codec = codecOf(world),
): PolicySubject {
  const config = smallModel(codec.vocabSize, {
    layers: 1,
    hiddenSize: 16,
    sameTokenBias: 2,
    sameLineBias: { bias: 2, newline: codec.spell('\n')[0]! },
    choiceHead: decoder === 'choice',
  });
  const params = initialParams(config, 3);
  const rest = { decoder, masked: true, maxTokens: 24, cacheOnUpdate: 'recompute' } as const;
  return {
    async open(maxBatch = 64) {
      const options = { config, codec, maxBatch };
      if (open === 'window') return WindowPolicy.create(engine, options, params);
      if (open === 'cached') return CachedPolicy.create(engine, { ...options, ...rest }, params);
      const thread = await EngineThread.open({ engine: { name: 'auto', device: 'cpu', threads: 1 }, config, decoder });
      return CachedPolicy.over(thread, { ...options, ...rest }, params);
    },
    env: world.createEnv(),
    groupSize,
    weights: { ...initialParams(config, 4), version: 1 },
  };
}

const { createEnv } = textcraft;
testPolicyLaws('random', () => random);
testPolicyLaws('rule (same)', () => ({ ...random, open: (maxBatch = 64) => new RulePolicy(maxBatch, 'same') }));
testPolicyLaws('cached (append view, choices)', () => local(textcraft, 3, 'cached'));
testPolicyLaws('cached (append view, spelt actions)', () => local(textcraft, 2, 'cached', 'tokens'));
testPolicyLaws('cached (window view)', () => local(babyai, 2, 'cached'));
testPolicyLaws('cached (a context that fills up)', () =>
  local(textcraft, 3, 'cached', 'choice', new OverflowingCodec(codecOf(textcraft), 12)),
);
testPolicyLaws('engine in a thread (choices)', () => local(textcraft, 3, 'engine thread'));
testPolicyLaws('engine in a thread (spelt actions)', () => local(textcraft, 2, 'engine thread', 'tokens'));
testPolicyLaws('engine in a thread (window view)', () => local(babyai, 2, 'engine thread'));
testPolicyLaws('engine in a thread (a context that fills up)', () =>
  local(textcraft, 3, 'engine thread', 'choice', new OverflowingCodec(codecOf(textcraft), 12)),
);
testPolicyLaws('window', () => local(babyai, 2, 'window'));
testPolicyLaws('window (default view)', () => local({ createEnv }, 2, 'window'));

/** A random policy with one bug. */
class Planted extends RandomPolicy {
  readonly bug: string;
  #last: readonly ActRequest[] = [];
  #turns = 0;

  constructor(bug: string, maxBatch: number) {
    super(maxBatch);
    this.bug = bug;
  }

  override submit(requests: readonly ActRequest[]): readonly Unanswered[] {
    const { bug } = this;
    this.#last = requests;
    this.#turns += requests.length;
    if (bug === 'seeds by arrival') return super.submit(requests.map((one) => ({ ...one, samplingSeed: this.#turns })));
    if (bug === 'ignores the history') return super.submit(requests.map((one) => this.#offset(one)));
    return super.submit(requests);
  }

  /** Draws otherwise for what it has not seen from the start. */
  #offset(request: ActRequest): ActRequest {
    return request.history ? { ...request, samplingSeed: request.samplingSeed + 1 } : request;
  }

  override step(): readonly Acted[] {
    const acted = super.step();
    if (this.bug === 'answers twice') return [...acted, ...acted.slice(0, 1)];
    if (this.bug === 'answers what is not listed') return acted.map((one) => ({ ...one, action: 'x' }));
    if (this.bug === 'loses a turn') return acted.slice(1);
    if (this.bug === 'batch decides' && this.maxBatch === 2)
      return acted.map((one) => ({ ...one, action: this.#first(one) }));
    return acted;
  }

  #first({ episode, action }: Acted): string {
    const request = this.#last.find((one) => one.episode === episode);
    return request?.newActions[0] ?? action;
  }

  override release(episodes: readonly number[]): void {
    if (this.bug === 'release is for those it knows' && episodes.includes(10_000)) throw new Error('unknown');
    if (this.bug !== 'never releases') super.release(episodes);
  }

  override forget(): void {
    if (this.bug !== 'remembers') super.forget();
  }

  override get complete(): boolean {
    return this.bug !== 'never complete';
  }
}

describe('the laws', () => {
  it.each([
    'answers twice',
    'answers what is not listed',
    'loses a turn',
    'seeds by arrival',
    'batch decides',
    'ignores the history',
    'release is for those it knows',
    'never releases',
    'remembers',
    'never complete',
  ])('notice a policy that %s', { timeout: 30_000 }, async (bug) => {
    const planted = { ...random, open: (maxBatch = 64): Policy => new Planted(bug, maxBatch) };
    const verdicts = await Promise.allSettled(
      policyLaws.filter(({ name }) => !name.includes('weights')).map(({ holds }) => holds(planted, 1)),
    );
    expect(verdicts.filter(({ status }) => status === 'rejected')).not.toEqual([]);
  });
});
