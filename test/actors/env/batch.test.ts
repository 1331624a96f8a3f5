/** Batches between pool and hosts come out as they went in, whichever form they take. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  packCommands,
  packEvents,
  portions,
  readEvents,
  unpackCommands,
  unpackEvents,
} from '../../../actors/env/batch.ts';
import type { EnvCommand, EnvEvent } from '../../../actors/env/protocol.ts';

const number = fc.nat(0x7fffffff);
const text = fc.string({ unit: 'binary', maxLength: 40 });
const reward = fc.double({ noNaN: true, min: -1e6, max: 1e6 }).filter((value) => !Object.is(value, -0));

const step = fc.record({ type: fc.constant('step' as const), episode: number, turn: number, action: text });
const open = fc.record({
  type: fc.constant('open' as const),
  episode: number,
  attempt: fc.nat(9),
  task: fc.record({ env: text, index: number, seed: number }),
});
const close = fc.record({ type: fc.constant('close' as const), episode: number });
const command: fc.Arbitrary<EnvCommand> = fc.oneof({ weight: 6, arbitrary: step }, open, close);

const answer = fc.oneof(
  fc.record({ kind: fc.constant('first' as const), observation: text }),
  fc.record({ kind: fc.constant('mid' as const), observation: text, reward }),
  fc.record({ kind: fc.constant('terminated' as const), observation: text, reward, success: fc.boolean() }),
);
const observed = (listed: fc.Arbitrary<number[]>, added: fc.Arbitrary<string[]>) =>
  fc.record({
    type: fc.constant('observed' as const),
    episode: number,
    turn: number,
    step: answer,
    actions: listed.map((indices) => Int32Array.from(indices)),
    newActions: added,
    envMs: reward,
  });
const none = <T>() => fc.constant<T[]>([]);
const failed = fc.record({
  type: fc.constant('failed' as const),
  episode: number,
  failure: fc.record({ cause: fc.constant('threw' as const), where: text, message: text }),
});
const event: fc.Arbitrary<EnvEvent> = fc.oneof(
  { weight: 6, arbitrary: observed(none(), none()) },
  observed(fc.array(number), fc.array(text)),
  failed,
);

const sent = <T>(batch: T): T => structuredClone(batch);

it('commands', () => {
  fc.assert(
    fc.property(fc.array(command, { maxLength: 20 }), (commands) => {
      expect(unpackCommands(sent(packCommands(commands)))).toEqual(commands);
    }),
  );
});

it('events', () => {
  fc.assert(
    fc.property(fc.array(event, { maxLength: 20 }), (events) => {
      expect(unpackEvents(sent(packEvents(events)))).toEqual(events);
    }),
  );
});

it('a few plain steps travel without typed arrays', () => {
  const one: EnvCommand = { type: 'step', episode: 3, turn: 1, action: 'look' };
  expect(Array.isArray(packCommands([one]))).toBe(true);
  expect(Array.isArray(packCommands(Array.from({ length: 50 }, () => one)))).toBe(false);
});

describe('a batch that came out of a host', () => {
  const listing = fc
    .record({ texts: fc.array(text), event: observed(none(), none()) })
    .map(({ texts, event: one }) => ({
      ...one,
      newActions: texts,
      actions: Int32Array.from(texts, (_, i) => i),
    }));
  const honest: fc.Arbitrary<EnvEvent> = fc.oneof(event, listing);

  it('is read as it was sent, in messages of any size', () => {
    let compared = 0;
    fc.assert(
      fc.property(fc.array(honest, { maxLength: 20 }), (events) => {
        const received = [...portions(events)].flatMap((some) => readEvents(sent(packEvents(some))) ?? []);
        if (events.length > 0) expect(received).toEqual(events);
        compared += events.length;
      }),
    );
    expect(compared).toBeGreaterThan(100);
    const long: EnvEvent = {
      type: 'observed',
      episode: 1,
      turn: 0,
      step: { kind: 'first', observation: 'x'.repeat(3_000_000) },
      actions: new Int32Array(0),
      newActions: [],
      envMs: 0,
    };
    expect([...portions([long, long, long, long, long])].map(({ length }) => length)).toEqual([2, 2, 1]);
    expect([...portions(Array(40_000).fill({ ...long, step: { kind: 'first', observation: '' } }))]).toHaveLength(3);
  });

  const columns = {
    heads: Int32Array.of(1, 5, 1, 0, 0),
    numbers: Float64Array.of(0.5, 1),
    observations: ['seen'],
    actions: new Int32Array(0),
    newActions: [] as unknown[],
    failures: [] as unknown[],
  };
  const failure = { cause: 'threw', where: '/x', message: 'why' };
  const failing = {
    ...columns,
    heads: Int32Array.of(4, 5, 0, 0, 0),
    observations: [],
    failures: [{ type: 'failed', episode: 5, failure }],
  };
  const hollow: unknown[] = [];
  hollow.length = 4e9;

  it('keeps of a failure what one has', () => {
    expect(readEvents(columns)).toHaveLength(1);
    const more = { type: 'failed', episode: 5, failure: { ...failure, more: 1 }, more: 2 };
    expect(readEvents({ ...failing, failures: [more] })).toEqual([{ type: 'failed', episode: 5, failure }]);
  });

  it.each([
    ['nothing', null],
    ['a text', 'batch'],
    ['a hollow list', hollow],
    ['an empty list', []],
    ['a list of no events', [1, 2]],
    ['more than a few in a list', Array(6 * 9).fill(0)],
    ['a kind that is none', [9, 5, 1, 0, 0, 'seen']],
    ['a failure in a list', [4, 5, 1, 0, 0, 'seen']],
    ['a reward that is no number', [1, 5, 1, '1', 0, 'seen']],
    ['a reward that is not finite', [1, 5, 1, Number.NaN, 0, 'seen']],
    ['an observation that is no text', [1, 5, 1, 0, 0, 7]],
    ['columns of other types', { ...columns, heads: [1, 5, 1, 0, 0] }],
    ['columns cut off', { ...columns, heads: Int32Array.of(1, 5, 1) }],
    ['no observation', { ...columns, observations: [] }],
    ['a hollow column', { ...columns, observations: hollow }],
    ['hollow actions', { ...columns, heads: Int32Array.of(1, 5, 1, 0, 2e9), newActions: hollow }],
    ['actions that are no texts', { ...columns, heads: Int32Array.of(1, 5, 1, 0, 1), newActions: [7] }],
    ['actions that are not there', { ...columns, heads: Int32Array.of(1, 5, 1, 3, 0) }],
    ['actions below none', { ...columns, heads: Int32Array.of(1, 5, 1, -1, 0) }],
    [
      'a cause that is none',
      { ...failing, failures: [{ type: 'failed', episode: 5, failure: { ...failure, cause: '__proto__' } }] },
    ],
    [
      'a long message',
      { ...failing, failures: [{ type: 'failed', episode: 5, failure: { ...failure, message: 'x'.repeat(20_000) } }] },
    ],
    ['a failure without one', { ...failing, failures: [{ type: 'failed', episode: 5 }] }],
    ['failures that are not there', { ...failing, failures: [] }],
  ])('is not read with %s', (_, batch) => {
    expect(readEvents(batch)).toBeUndefined();
  });
});
