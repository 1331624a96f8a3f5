/** Groups of a toy world as a rollout would have made them, with made-up behaviour log-probabilities and values. */

import type { EnvStep, Session } from '../../src/core/env.ts';
import type { EpisodeEnd } from '../../src/core/horizon.ts';
import { withHorizon } from '../../src/core/horizon.ts';
import { Rng } from '../../src/core/rng.ts';
import type { Decision, Group, Trajectory, Turn } from '../../src/core/trajectory.ts';
import type { View } from '../../src/core/view.ts';
import type { DecoderKind } from '../../src/model/programs.ts';
import { readRendered, readTurn } from '../../src/policy/reading.ts';
import { ACT, END, type Tokenizer } from '../../src/policy/tokenizer.ts';
import { createEnv, type ToyWorld } from './toy-worlds.ts';

export interface ToyGroupsOptions {
  readonly world: ToyWorld;
  readonly view: View;
  readonly tokenizer: Tokenizer;
  readonly decoder: DecoderKind;
  readonly groups: number;
  readonly size: number;
  readonly horizon: number;
  readonly seed: number;
  /** Version of every decision; 0 where absent. */
  readonly version?: number;
}

export function toyGroups(options: ToyGroupsOptions): Group[] {
  const rng = Rng.fromSeed(options.seed);
  return Array.from({ length: options.groups }, (_, group) => {
    const task = { env: 'toy', index: group % 4, seed: rng.next() };
    const trajectories = Array.from({ length: options.size }, (_, member) =>
      play(options, rng, group, group * options.size + member, task),
    );
    return { group, task, horizon: options.horizon, trajectories };
  });
}

function play(
  { world, view, tokenizer, decoder, horizon, version = 0 }: ToyGroupsOptions,
  rng: Rng,
  group: number,
  episode: number,
  task: Trajectory['task'],
): Trajectory {
  const session = createEnv({ world }).open(task) as Session;
  const table: string[] = [];
  const turns: Turn[] = [];
  const seen: { action: string; observation: string }[] = [];
  let { observation } = session.first;
  for (;;) {
    const listed = session.actions();
    for (const text of listed) if (!table.includes(text)) table.push(text);
    const choice = rng.int(listed.length);
    const action = listed[choice]!;
    const last = seen.at(-1);
    const prompt = () =>
      readRendered(tokenizer, view.mode === 'append' ? view.prompt(session.first) : view.render(session.first, seen));
    const whole = turns.length === 0 || view.mode === 'window';
    const context = whole
      ? Int32Array.from([...prompt().tokens, ACT])
      : readTurn(tokenizer, view as View & { mode: 'append' }, last!);
    const base = { version, context, value: Math.fround(rng.normal() / 4) };
    const ids = [...tokenizer.encode(action), END];
    const logprob = () => Math.fround(-Math.log(listed.length) + rng.normal() / 10);
    const decision: Decision =
      decoder === 'choice'
        ? { ...base, kind: 'choice', choice, logprob: logprob() }
        : {
            ...base,
            kind: 'tokens',
            tokens: Int32Array.from(ids),
            logprobs: Float32Array.from(ids, (id) => (id === END ? -0.01 : logprob())),
            masked: true,
          };
    const answered = session.step(action) as EnvStep; // these worlds answer at once
    const actions = Int32Array.from(listed, (text) => table.indexOf(text));
    turns.push({ observation, actions, action, decision, reward: answered.reward, actMs: 0, envMs: 0 });
    seen.push({ action, observation: answered.observation });
    observation = answered.observation;
    const step = withHorizon(answered, turns.length, horizon);
    if (step.kind === 'mid') continue;
    const end: EpisodeEnd = step.kind === 'truncated' ? 'truncated' : 'terminated';
    const success = step.kind === 'terminated' && step.success;
    const rest = { horizon, attempt: 1, actionTable: table, turns, finalObservation: observation, end, success };
    return { episode, group, task, ...rest };
  }
}
