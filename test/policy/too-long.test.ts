/** An episode that has grown beyond what the model reads is refused alone; the others of its call are decided. */
import { expect, it } from 'vitest';
import { openEngine } from '../../src/compute/engine/open.ts';
import { smallModel } from '../../src/compute/model/config.ts';
import { initialParams } from '../../src/compute/model/parameters.ts';
import type { DecoderKind } from '../../src/compute/model/programs.ts';
import { CachedPolicy } from '../../src/policy/cached-policy.ts';
import type { ActRequest } from '../../src/policy/policy.ts';
import { ViewCodec } from '../../src/text/reading/view-codec.ts';
import { view } from '../support/toy-worlds.ts';

const codec = new ViewCodec(view);
const MOST = 16;

function request(episode: number, observation: string): ActRequest {
  return {
    episode,
    group: episode,
    member: 0,
    groupSize: 1,
    turn: 0,
    observation,
    actions: Int32Array.of(0, 1),
    newActions: ['left', 'right'],
    samplingSeed: 9,
    temperature: 1,
  };
}

it.each<DecoderKind>(['choice', 'tokens'])('is refused with its length: %s', async (decoder) => {
  const config = smallModel(codec.vocabSize, { layers: 1, hiddenSize: 16, maxPositions: MOST });
  const engine = await openEngine({ name: 'reference' });
  const options = { config, codec, decoder, masked: true, maxTokens: 3, maxBatch: 4, cacheOnUpdate: 'keep' } as const;
  const policy = await CachedPolicy.create(engine, options, initialParams(config, 3));

  const refused = policy.submit([request(1, 'at 0'), request(2, 'at 0 '.repeat(MOST))]);

  expect(refused).toEqual([
    { episode: 2, message: expect.stringMatching(/^the episode is \d+ tokens long and the model reads 16 /) },
  ]);
  policy.release([2]);
  const decided: number[] = [];
  while (decided.length === 0) decided.push(...(await policy.step()).map(({ episode }) => episode));
  expect(decided).toEqual([1]);
  engine.dispose();
});
