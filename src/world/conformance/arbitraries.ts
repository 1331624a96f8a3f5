/**
 * Arbitraries of tasks, moves and scripts, for property tests of a world with fast-check. The laws draw their own scripts
 * (script.ts); these are for properties of the caller's, and shrink by fast-check's own means.
 */
import type fastCheck from 'fast-check';
import type { Env } from '../../core/env.ts';
import { Rng } from '../../core/rng.ts';
import type { Task } from '../../core/task.ts';
import { drawAnyText, type Move, type Script } from './script.ts';

/** Longest script, in moves. */
const MAX_MOVES = 40;

/** Arbitraries of a world for fast-check: its tasks, and scripts of actions. */
export interface WorldArbitraries {
  /** Any task of the world's table. */
  readonly task: fastCheck.Arbitrary<Task>;
  /** Text that trips parsers, whatever the world. */
  readonly text: fastCheck.Arbitrary<string>;
  /** Listed action, a listed action garbled on its way, or a text. */
  readonly move: fastCheck.Arbitrary<Move>;
  /** Task with up to 40 moves, for `play`. */
  readonly script: fastCheck.Arbitrary<Script>;
}

/**
 * Arbitraries of a world, for fast-check: its tasks, and scripts of actions that may be listed, garbled or made up.
 * @param fc fast-check, of the caller's own version (3 or later): it is no dependency of this package
 * @param texts texts that a policy of this world might send, mixed in
 */
export function arbitraries(
  fc: typeof fastCheck,
  env: Pick<Env, 'id' | 'tasks'>,
  texts?: fastCheck.Arbitrary<string>,
): WorldArbitraries {
  const uint32 = fc.integer({ min: 0, max: 0xffff_ffff });
  const index = fc.integer({ min: 0, max: env.tasks.count - 1 });
  const text = fc.oneof(
    uint32.map((seed) => drawAnyText(Rng.fromSeed(seed))),
    texts ?? fc.string(),
  );
  const move: fastCheck.Arbitrary<Move> = fc.oneof(
    { weight: 6, arbitrary: fc.record({ pick: uint32 }) },
    { weight: 1, arbitrary: fc.record({ garble: uint32, how: uint32 }) },
    { weight: 3, arbitrary: fc.record({ say: text }) },
  );
  return {
    task: fc.record({ env: fc.constant(env.id), index, seed: uint32 }),
    text,
    move,
    script: fc.record({ index, seed: uint32, moves: fc.array(move, { maxLength: MAX_MOVES }) }),
  };
}
