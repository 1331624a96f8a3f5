/** Turns and answers come out of their columns as they went in. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Acted, ActRequest } from '../../src/policy/policy.ts';
import { packActed, packRequests, unpackActed, unpackRequests } from '../../src/policy/turn-batch.ts';

const id = fc.nat(0x7fffffff);
const ids = fc.array(fc.integer(), { maxLength: 12 }).map((list) => Int32Array.from(list));
const context = fc.array(fc.nat(5000), { maxLength: 12 }).map((list) => Int32Array.from(list));
const number = fc.double({ noNaN: true });
const sampled = fc.array(fc.tuple(id, fc.float({ noNaN: true, max: 0 })), { maxLength: 5 });

const decision = fc.oneof(
  fc
    .record({ version: id, context, value: number, choice: id, logprob: number, likeliest: context })
    .map(({ likeliest, ...rest }) => ({
      ...rest,
      kind: 'choice' as const,
      ...(likeliest.length > 0 ? { likeliest } : {}),
    })),
  fc
    .record({ version: id, context, value: number, sampled, masked: fc.boolean() })
    .map(({ sampled: drawn, ...rest }) => ({
      ...rest,
      kind: 'tokens' as const,
      tokens: Int32Array.from(drawn, ([token]) => token),
      logprobs: Float32Array.from(drawn, ([, logprob]) => logprob),
      // Weights that changed in the middle: any pairs will do here.
      ...(drawn.length > 3 ? { versions: Int32Array.from(drawn, ([token]) => token) } : {}),
    })),
);

const request: fc.Arbitrary<ActRequest> = fc.record(
  {
    episode: id,
    group: id,
    member: id,
    groupSize: id,
    turn: id,
    observation: fc.string({ unit: 'binary' }),
    lastAction: fc.string(),
    world: fc.string({ minLength: 1 }),
    partial: fc.constant(true as const),
    actions: ids,
    newActions: fc.array(fc.string(), { maxLength: 4 }),
    samplingSeed: fc.nat(0xffffffff),
    temperature: number,
    sampling: fc.record({ topP: fc.constant(0.5) }),
    stop: fc.array(fc.string(), { maxLength: 2 }),
    history: fc.array(fc.record({ observation: fc.string(), action: fc.string() }), { maxLength: 2 }),
  },
  {
    requiredKeys: [
      ...['episode', 'group', 'member', 'groupSize', 'turn', 'observation', 'actions', 'newActions'],
      ...['samplingSeed', 'temperature'],
    ] as Exclude<
      keyof ActRequest,
      'given' | 'task' | 'lastAction' | 'history' | 'partial' | 'sampling' | 'stop' | 'world'
    >[],
  },
) as fc.Arbitrary<ActRequest>;

const acted: fc.Arbitrary<Acted> = fc.record(
  {
    episode: id,
    turn: id,
    action: fc.string({ unit: 'binary' }),
    decision,
    stages: fc.record({ waitMs: number, prefillMs: number, decodeMs: number }),
    response: fc.record({ text: fc.string(), promptTokens: id, completionTokens: id }),
  },
  { requiredKeys: ['episode', 'turn', 'action'] },
) as fc.Arbitrary<Acted>;

it('requests survive their columns, and a message between threads', () => {
  fc.assert(
    fc.property(fc.array(request, { maxLength: 8 }), (requests) => {
      expect(unpackRequests(structuredClone(packRequests(requests)))).toEqual(requests);
    }),
  );
});

it('a first request brings the name of its world along, in the columns', () => {
  const ids = { episode: 1, group: 2, member: 0, groupSize: 1, turn: 0, samplingSeed: 3, temperature: 1 };
  const plain = { ...ids, observation: 'o', actions: new Int32Array(0), newActions: [] };
  const requests: ActRequest[] = [
    { ...plain, world: 'a' },
    { ...plain, turn: 1, lastAction: 'go' },
    plain,
    { ...plain, world: 'b' },
  ];
  const packed = packRequests(requests);
  expect(packed.whole).toEqual([]);
  expect(unpackRequests(structuredClone(packed))).toEqual(requests);
});

it('answers survive theirs', () => {
  fc.assert(
    fc.property(fc.array(acted, { maxLength: 8 }), (turns) => {
      expect(unpackActed(structuredClone(packActed(turns)))).toEqual(turns);
    }),
  );
});

it('what an answer keeps does not carry its batch along', () => {
  const choice = { kind: 'choice', version: 1, context: Int32Array.of(1, 2), value: 0, choice: 0, logprob: 0 } as const;
  const turn: Acted = { episode: 1, turn: 0, action: 'a', decision: choice };
  for (const { decision: kept } of unpackActed(packActed(Array<Acted>(64).fill(turn)))) {
    expect(kept!.context.buffer.byteLength).toBe(8);
  }
});
