/**
 * Oracle: plans low-level actions with full knowledge of the world and writes them in the text world's words, with
 * macro actions wherever one leads to the same place in no more steps.
 *
 * It claims every level. What it cannot solve cannot be solved: in GoToImpUnlock (7) and Unlock (24) the only key may
 * lie behind its own door. Under `fidelity: 'original'` it also gives up where that text world lacks the action
 * (opening boxes, closing doors), where Minigrid's verifier never reports success (ordered strict doors, level 16), and
 * where the original counts a success as none because it came late.
 */
import type { EnvOptions, Oracle } from '../../src/core/env.ts';
import { CorrectedText } from './corrected.ts';
import { fidelityOf } from './env.ts';
import { DROP, DX, DY, FORWARD, LEFT, PICKUP, RIGHT, TOGGLE } from './grid.ts';
import { generate } from './levels.ts';
import { OriginalText } from './original.ts';
import { plan } from './planner.ts';
import { nameOf } from './scene.ts';
import { levelOf, seedOf } from './tasks.ts';
import type { World } from './world.ts';

/** Text world of either kind, as far as the oracle needs it. */
interface TextGame {
  readonly world: World;
  available(): readonly string[];
  expand(action: string): readonly number[];
  step(action: string): unknown;
}

const PLAIN = new Map([
  [LEFT, 'turn left'],
  [RIGHT, 'turn right'],
  [FORWARD, 'move forward'],
  [DROP, 'drop'],
  [TOGGLE, 'toggle'],
]);

/** Creates the oracle. @throws {UserError} for options that BabyAI does not have */
export function createOracle(options: EnvOptions = {}): Oracle {
  const fidelity = fidelityOf(options);
  return ({ index }) => {
    let actions: readonly string[] | undefined;
    let turn = 0;
    return (step) => {
      actions ??= solve(index, fidelity) ?? [];
      return step.kind === 'terminated' ? undefined : actions[turn++];
    };
  };
}

/**
 * Text actions that solve a task within the level's step limit, or undefined.
 *
 * @param index task index
 */
export function solve(index: number, fidelity: 'original' | 'corrected' = 'corrected'): string[] | undefined {
  const corrected = fidelity === 'corrected';
  const fresh = () => {
    const world = generate(levelOf(index), seedOf(index), 2);
    world.forgiving = corrected;
    return world;
  };
  const low = plan(fresh, corrected);
  if (!low) return undefined;
  for (const useMacros of [true, false]) {
    const game = corrected ? new CorrectedText(index) : new OriginalText(index);
    const actions = translate(game, fresh(), low, useMacros);
    const isSolved = game instanceof CorrectedText ? game.answer.success : game.payload.done;
    if (isSolved && actions && game.world.stepCount <= game.world.maxSteps) return actions;
  }
  return undefined;
}

/** Pose: a place and a direction as one number. */
function pose(world: World): number {
  return (world.at(world.agentX, world.agentY) << 2) | world.agentDir;
}

/** Plays a plan in words. @returns the words, or undefined where one is missing */
function translate(game: TextGame, twin: World, low: readonly number[], useMacros: boolean): string[] | undefined {
  // Poses along the plan: pose k is the one before action k.
  const poses = low.map((action) => {
    const before = pose(twin);
    twin.step(action);
    return before;
  });
  poses.push(pose(twin));

  const actions: string[] = [];
  for (let k = 0; k < low.length && !game.world.terminated; ) {
    let best: string | undefined;
    let consumed = 0;
    const available = game.available();
    if (useMacros) {
      for (const action of available) {
        const reached = k + countMatched(game.world, game.expand(action), low, poses, k);
        if (reached > k + consumed) [best, consumed] = [action, reached - k];
      }
    }
    if (consumed <= 1) {
      const action = low[k]!;
      const ahead = game.world.codes[game.world.cells[game.world.front]!]!;
      best = action === PICKUP ? `pickup ${nameOf(ahead)} 1` : PLAIN.get(action);
      consumed = 1;
    }
    if (best === undefined || !available.includes(best)) return undefined;
    game.step(best);
    actions.push(best);
    k += consumed;
  }
  return actions;
}

/**
 * Number of actions of the plan, from `k` on, that a macro stands in for: it must end where they end, in no more
 * steps, and do the same there. 0 when it does not.
 */
function countMatched(
  world: World,
  macro: readonly number[],
  low: readonly number[],
  poses: readonly number[],
  k: number,
): number {
  const moves = macro.findIndex((action) => action > FORWARD);
  const walk = moves < 0 ? macro : macro.slice(0, moves);
  const ending = moves < 0 ? [] : macro.slice(moves);
  const end = walkFrom(world, walk);
  if (end === undefined) return 0;
  let best = 0;
  for (let j = k; j <= low.length; j++) {
    if (poses[j] === end && j - k >= walk.length && ending.every((action, n) => low[j + n] === action)) {
      best = j - k + ending.length;
    }
    if (low[j] === undefined || low[j]! > FORWARD) break;
  }
  return best;
}

/** Pose after a walk, undefined where something stands in the way. */
function walkFrom(world: World, actions: readonly number[]): number | undefined {
  let cell = world.at(world.agentX, world.agentY);
  let dir = world.agentDir;
  for (const action of actions) {
    if (action === LEFT) dir = (dir + 3) & 3;
    else if (action === RIGHT) dir = (dir + 1) & 3;
    else {
      cell += DY[dir]! * world.stride + DX[dir]!;
      if (!world.isOpen(cell)) return undefined;
    }
  }
  return (cell << 2) | dir;
}
