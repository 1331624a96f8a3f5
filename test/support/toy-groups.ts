/** Groups of a toy world as a rollout would have made them, with made-up behaviour log-probabilities and values. */

import type { DecoderKind } from '../../src/compute/model/programs.ts';
import type { EnvStep, Session } from '../../src/core/env.ts';
import type { EpisodeEnd } from '../../src/core/horizon.ts';
import { withHorizon } from '../../src/core/horizon.ts';
import { Rng } from '../../src/core/rng.ts';
import type { Decision, Group, Trajectory, Turn } from '../../src/core/trajectory.ts';
import type { Codec } from '../../src/text/reading/codec.ts';
import type { Transcript } from '../../src/text/reading/transcript.ts';
import { createEnv, type ToyWorld } from './toy-worlds.ts';

export interface ToyGroupsOptions {
  readonly world: ToyWorld;
  readonly codec: Codec;
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
  { world, codec, decoder, horizon, version = 0 }: ToyGroupsOptions,
  rng: Rng,
  group: number,
  episode: number,
  task: Trajectory['task'],
): Trajectory {
  const session = createEnv({ world }).open(task) as Session;
  const table: string[] = [];
  const turns: Turn[] = [];
  let transcript: Transcript | undefined;
  let { observation } = session.first;
  for (;;) {
    const listed = session.actions();
    const known = table.length;
    for (const text of listed) if (!table.includes(text)) table.push(text);
    const actions = Int32Array.from(listed, (text) => table.indexOf(text));
    const observed = { observation, actions, newActions: table.slice(known) };
    if (transcript) transcript.observe(turns.at(-1)!.action, observed);
    else transcript = codec.open(observed);
    const choice = rng.int(listed.length);
    const action = listed[choice]!;
    const base = { version, context: transcript.takeContext(), value: Math.fround(rng.normal() / 4) };
    const ids = [...codec.spell(action), codec.end];
    const logprob = () => Math.fround(-Math.log(listed.length) + rng.normal() / 10);
    const decision: Decision =
      decoder === 'choice'
        ? { ...base, kind: 'choice', choice, logprob: logprob() }
        : {
            ...base,
            kind: 'tokens',
            tokens: Int32Array.from(ids),
            logprobs: Float32Array.from(ids, (id) => (id === codec.end ? -0.01 : logprob())),
            masked: true,
          };
    const answered = session.step(action) as EnvStep; // these worlds answer at once
    if (decision.kind === 'tokens') transcript.write(ids);
    turns.push({ observation, actions, action, decision, reward: answered.reward, actMs: 0, envMs: 0 });
    observation = answered.observation;
    const step = withHorizon(answered, turns.length, horizon);
    if (step.kind === 'mid') continue;
    const end: EpisodeEnd = step.kind === 'truncated' ? 'truncated' : 'terminated';
    const success = step.kind === 'terminated' && step.success;
    const rest = { horizon, attempt: 1, actionTable: table, turns, finalObservation: observation, end, success };
    return { episode, group, task, ...rest };
  }
}
