/** Batches between pool and hosts come out as they went in, whichever form they take. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { packCommands, packEvents, unpackCommands, unpackEvents } from '../../actors/env/batch.ts';
import type { EnvCommand, EnvEvent } from '../../actors/env/protocol.ts';

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
