/** Continuations of `longplay replay`: a policy plays on from a turn of a saved episode, or from each of its turns. */
import { existsSync } from 'node:fs';
import { loadRunConfig } from '../../config/load.ts';
import type { RunConfig } from '../../config/run-config.ts';
import { requireOneWorld } from '../../config/worlds.ts';
import { compact, estimate, shareBar, shareScale, sparkline, whole } from '../../console/numbers.ts';
import { err, out } from '../../console/terminal.ts';
import { UserError } from '../../core/errors.ts';
import { shorten } from '../../core/printable.ts';
import { taskName } from '../../core/task.ts';
import { episodeReturn } from '../../core/trajectory.ts';
import { columns, percent } from '../../learning/evaluation/table.ts';
import {
  type Continued,
  type ContinueOptions,
  continueEpisode,
  writeContinuations,
} from '../../run/continue/continue-episode.ts';
import { findLargestFall, type StateValue } from '../../run/continue/state-values.ts';
import { readRunConfig } from '../../run/run-folder.ts';
import type { TraceLine } from '../../storage/trace.ts';
import { type ConfiguredEnv, isModulePath, moduleChange } from '../../world/env-id.ts';
import { firstSignal } from '../interrupt.ts';
import { type PolicyFlags, policyRunOf, policySettings } from '../policy-flags.ts';
import { ProgressLine } from '../progress-line.ts';

export interface ContinueFlags extends Omit<PolicyFlags, 'policy'> {
  readonly fromTurn?: number;
  readonly everyTurn?: boolean;
  readonly policy?: string;
  readonly group?: number;
  readonly temperature?: number;
  readonly seed: number;
  readonly set: readonly string[];
  readonly out?: string;
  readonly json?: boolean;
}

/** Continuations from each state where nothing else is asked for. */
const GROUP = 8;

/**
 * Goes on from an episode and prints the values of its states.
 * @param env world of the episode
 */
export async function continueCommand(
  path: string,
  episode: TraceLine,
  env: ConfiguredEnv,
  flags: ContinueFlags,
): Promise<void> {
  const { policy } = flags;
  if (policy === undefined) {
    throw new UserError('BAD_ARGUMENT', 'replay: name who plays on: --policy openai, random, oracle, or a run');
  }
  if (flags.out !== undefined && existsSync(flags.out)) {
    throw new UserError('RUN_EXISTS', `--out ${flags.out} exists already; name a new folder`);
  }
  const turns = turnsOf(episode, flags);
  const group = flags.group ?? (flags.temperature === 0 ? 1 : GROUP);
  if (flags.temperature === 0 && group > 1) {
    throw new UserError(
      'BAD_ARGUMENT',
      'replay: --temperature 0 plays one and the same continuation: leave out --group',
    );
  }
  const config = configOf(episode, env, { ...flags, policy }, group);
  const changed = moduleChange(config.env);
  if (changed !== undefined) err.line(changed);
  const line = new ProgressLine();
  const signal = firstSignal();
  const options: ContinueOptions = {
    episode,
    turns,
    config,
    policyRun: policyRunOf(policy),
    group,
    temperature: flags.temperature,
    seed: flags.seed,
    onNotice: (text) => err.line(text),
    onProgress: (done, of) => line.show(() => `${whole(done)} of ${whole(of)} turns, ${group} continuations each`),
    interrupted: signal.signal,
  };
  try {
    const continued = await continueEpisode(options);
    line.end();
    const written = flags.out === undefined ? 0 : writeContinuations(continued, options, path, flags.out);
    if (flags.json) out.json(describeJson(path, continued, options, { ...flags, policy }));
    else print(continued, options, { ...flags, policy }, written);
    reportMissing(continued, options);
  } finally {
    signal.stop();
    line.end();
  }
}

/** Recorded turns to keep. @throws {UserError} BAD_ARGUMENT for a turn that the episode has not */
function turnsOf({ episode, turns }: TraceLine, { fromTurn }: ContinueFlags): readonly number[] {
  const last = turns.length - 1;
  if (last < 0) throw new UserError('BAD_ARGUMENT', `replay: episode ${episode} has no turn`);
  if (fromTurn !== undefined) {
    if (fromTurn <= last) return [fromTurn];
    const range = `it has ${turns.length}, and 0 to ${last} of them can be kept`;
    throw new UserError(
      'BAD_ARGUMENT',
      `replay: --from-turn ${fromTurn}: episode ${episode} goes not so far: ${range}`,
    );
  }
  // Between the stages of an action nothing has happened yet.
  return turns.flatMap((_, t) => (t > 0 && turns[t - 1]!.partial ? [] : [t]));
}

/** Configuration of the policy in the world of the episode. @throws {UserError} for a run that was trained on another one */
function configOf(
  { task, horizon }: TraceLine,
  env: ConfiguredEnv,
  flags: ContinueFlags & { readonly policy: string },
  group: number,
): RunConfig {
  const policyRun = policyRunOf(flags.policy);
  const trained = policyRun === undefined ? undefined : readRunConfig(policyRun);
  if (trained) requireOneWorld(trained, 'replay --policy');
  if (trained && trained.env.id !== env.id && !(isModulePath(trained.env.id) && isModulePath(env.id))) {
    throw new UserError('BAD_ARGUMENT', `replay: ${policyRun} was trained on ${trained.env.id}, not on ${env.id}`);
  }
  // A checkpoint holds the state of its run's schedule, and is refused under another one; the plan says how long to play.
  const raw = trained
    ? { ...trained, env }
    : { env, horizon: { type: 'fixed', rounds: horizon }, stop: { updates: 1 } };
  const settings = [
    ...policySettings(flags),
    `rollout.concurrentGroups=${Math.max(1, Math.floor(flags.concurrency / group))}`,
    // Room for a group: that of an evaluation, which a continuation is.
    `evaluation.episodesPerTask=${group}`,
    `evaluation.tasks=[${task.index}]`,
    ...flags.set,
  ];
  return loadRunConfig(JSON.stringify(raw), 'replay', settings);
}

/** Reports what is missing: the result is not the whole. */
function reportMissing({ values }: Continued, { turns, group }: ContinueOptions): void {
  const failed = values.reduce((sum, one) => sum + one.failed, 0) + (turns.length - values.length) * group;
  if (failed === 0) return;
  process.exitCode = 1;
  err.line(
    `longplay: ${failed} of ${turns.length * group} continuations are missing: they failed, or were not reached`,
  );
}

function describeJson(
  path: string,
  { values, temperature }: Continued,
  { episode, group, seed }: ContinueOptions,
  flags: ContinueFlags & { readonly policy: string },
): object {
  const { task, horizon, success, turns } = episode;
  return {
    format: 1,
    trace: path,
    episode: episode.episode,
    task,
    horizon,
    recorded: { turns: turns.length, success, return: episodeReturn(episode) },
    policy: flags.policy,
    group,
    temperature,
    seed,
    turns: values,
    fall: flags.everyTurn ? findLargestFall(values) : undefined,
    out: flags.out,
  };
}

function print(
  { values }: Continued,
  { episode, group, seed }: ContinueOptions,
  flags: ContinueFlags & { readonly policy: string },
  written: number,
): void {
  const { turns, success } = episode;
  const outcome = `${success ? 'solved' : 'not solved'}, return ${compact(episodeReturn(episode))}`;
  out.line(`episode ${episode.episode} (${taskName(episode.task)}): ${turns.length} turns, ${outcome}`);
  out.line(
    `${flags.policy} goes on: ${group} ${group === 1 ? 'continuation' : 'continuations'} a turn, seed ${seed}\n`,
  );
  const head = ['turns kept', 'success % [95 %]', 'return from here [95 %]', shareScale(WIDTH)];
  const lines = columns([head, ...values.map(rowOf)]);
  out.line(lines[0]!);
  for (const [i, one] of values.entries()) out.line(`${lines[i + 1]!}  then: ${shortAction(one.action)}`);
  if (flags.everyTurn && values.length > 1) {
    const rates = values.map((one) => one.success.value);
    out.line(`\nsuccess  ${sparkline(rates, 1)}  behind ${values[0]!.turn} to ${values.at(-1)!.turn} turns`);
    const fall = findLargestFall(values);
    if (fall) {
      const level = (value: number) => (fall.what === 'success' ? `${Math.round(100 * value)} %` : compact(value));
      const change = `${fall.what} from ${level(fall.from)} to ${level(fall.to)}`;
      const doubt = fall.isClear ? '' : ' (the intervals overlap: a larger --group would tell)';
      out.line(`largest fall: ${change} by turn ${fall.turn}: ${shortAction(fall.action)}${doubt}`);
    }
  }
  if (flags.out !== undefined) out.line(`${written} episodes → ${flags.out}: longplay view ${flags.out}`);
}

function rowOf({ turn, success, value }: StateValue): string[] {
  return [String(turn), percent(success), estimate(value), shareBar(success, WIDTH)];
}

/** Characters of a bar, and of an action beside it. */
const WIDTH = 24;
const ACTION_CHARS = 60;

function shortAction(action: string): string {
  return shorten(action.replace(/\s+/g, ' '), ACTION_CHARS);
}
