/** Command `longplay rollout`. */
import { existsSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import type { Command } from 'commander';
import { Subject } from 'rxjs';
import { checkRunConfig, loadRunConfig } from '../../config/load.ts';
import { requireOneWorld } from '../../config/worlds.ts';
import { openConsole } from '../../console/console.ts';
import { err, out } from '../../console/terminal.ts';
import { AGENT } from '../../core/agent-call.ts';
import { isUserMistake, UserError } from '../../core/errors.ts';
import { evaluationTable } from '../../learning/evaluation/table.ts';
import type { MetricsRow } from '../../metrics/metric-table.ts';
import { misreadNotice } from '../../policy/remote/usage.ts';
import { worldIds, worldUrl } from '../../run/find-world.ts';
import { PLAN_FILE, type PreparedRollout, playRollout, startFolder } from '../../run/rollout.ts';
import { type RolloutPlan, readPlan, samplingOf } from '../../run/rollout-plan.ts';
import { discard, freeRunName, readRunConfig, runDir } from '../../run/run-folder.ts';
import { envLabel, isModulePath, locateEnv, moduleChange, resolveEnvId } from '../../world/env-id.ts';
import { runCommand } from '../fail.ts';
import { collectFlag, MOST, number, oneOf, refuseFlags, wholeNumber } from '../flags.ts';
import { firstSignal } from '../interrupt.ts';
import { policyRunOf, policySettings } from '../policy-flags.ts';
import { tasksIn } from '../task-ids.ts';

interface RolloutFlags {
  readonly env?: string;
  readonly agent?: string;
  readonly policy: string;
  readonly baseUrl?: string;
  readonly model?: string;
  readonly episodes: number;
  readonly concurrency: number;
  readonly horizon: number;
  readonly temperature?: number;
  readonly split: 'train' | 'test';
  readonly tasks?: string;
  readonly seed: number;
  readonly name?: string;
  readonly runs: string;
  readonly resume?: string;
  readonly set: readonly string[];
  readonly json?: boolean;
}

/** Adds the command. */
export function rollout(program: Command): void {
  program
    .command('rollout')
    .description(
      "play episodes with a model behind a server, a trained policy, the world's solver or at random, and keep their traces",
    )
    .option('--env <id>', 'world')
    .option(
      '--agent <module|command|url>',
      'in place of a world: a program of yours that calls a model, as a module, a command line or a service',
    )
    .option(
      '--policy <openai|random|oracle|run>',
      "openai: --base-url and --model; oracle: the world's solver; random; or a run's folder",
      'openai',
    )
    .option('--base-url <url>', 'of the OpenAI-compatible server, e.g. http://127.0.0.1:8000/v1')
    .option('--model <name>', 'as the server calls it; may be left out where it has only one')
    .option('--episodes <n>', 'episodes in all, spread over the tasks', wholeNumber(1, MOST.repeats), 100)
    .option('--concurrency <n>', 'episodes at once', wholeNumber(1, MOST.held), 64)
    .option('--horizon <turns>', 'turns an episode may take', wholeNumber(1, MOST.held), 20)
    .option('--temperature <t>', '0 is greedy; 1, or evaluation.sampling.temperature, where it is left out', number(0))
    .option(
      '--split <split>',
      'train or test; episodes of test tasks are not learnt from',
      oneOf(['train', 'test']),
      'train',
    )
    .option('--tasks <set|file>', "instead of a split: a named set of the world's tasks, or a file of task ids")
    .option('--seed <n>', 'of tasks and sampling', wholeNumber(0, MOST.seed), 1)
    .option('--set <key=value>', 'a key of the configuration, e.g. policy.chat.format=code', collectFlag, [])
    .option('--name <name>', "the run's name; by default rollout-<env>")
    .option('--runs <folder>', 'where runs live', 'runs')
    .option('--resume <run>', 'go on where a rollout stopped; finished episodes are not repeated')
    .option('--json', 'one JSON object per line, the result last')
    .action((flags: RolloutFlags, command: Command) =>
      runCommand(async () => {
        if (flags.resume !== undefined) refuseFlags(command, PLANNED, AS_PLANNED);
        if (flags.agent !== undefined)
          refuseFlags(command, ['env'], '--agent is played in its place; give one of them');
        if (flags.tasks !== undefined) refuseFlags(command, ['split'], '--tasks names what to play; give one of them');
        refuseTrainingKeys(flags.set);
        await rolloutCommand(flags);
      }),
    );
}

/** Flags that a rollout keeps from its start. */
const PLANNED = [
  ...['env', 'agent', 'policy', 'baseUrl', 'model', 'episodes', 'concurrency', 'horizon', 'temperature'],
  ...['split', 'tasks', 'seed', 'name', 'runs'],
];
const AS_PLANNED =
  'a rollout goes on as it was begun; for another server: --set policy.openai.baseUrl=…, for more episodes: a new rollout';

async function rolloutCommand(flags: RolloutFlags): Promise<void> {
  const prepared = flags.resume === undefined ? fresh(flags) : resumeRollout(flags.resume, flags.set);
  const { dir, config, plan } = prepared;
  const metrics$ = new Subject<MetricsRow>();
  const horizon = { type: 'fixed', rounds: plan.horizon } as const;
  const display = openConsole(metrics$, {
    out,
    notices: err,
    json: flags.json === true,
    config: { ...config, horizon, episodes: plan.episodes },
    name: basename(dir),
  });
  const notify = (line: string) => display.notice(line);
  const interrupted = firstSignal();
  try {
    const { summary, usage, finished } = await playRollout(prepared, {
      onNotice: notify,
      display,
      metrics$,
      interrupted: interrupted.signal,
    });
    display.close();
    if (flags.json) out.json({ format: 1, run: dir, finished, summary, usage });
    else {
      if (summary.all.episodes > 0) out.line(evaluationTable([summary]).join('\n'));
      out.line(`run ${dir}: longplay view ${dir}`);
    }
    const misread = usage && misreadNotice(usage);
    if (misread) notify(misread);
    if (usage && usage.requests > 0 && usage.formatErrors >= usage.requests) process.exitCode = 1;
    const missing = plan.episodes - finished;
    if (missing > 0) {
      notify(`${missing} episodes are missing; go on with: longplay rollout --resume ${dir}`);
      process.exitCode = 1;
    }
  } catch (thrown) {
    const begun = existsSync(join(dir, 'traces'));
    // A fresh rollout that the user's mistake kept from starting leaves nothing behind.
    if (isUserMistake(thrown)) {
      if (flags.resume === undefined && !begun) discard(dir);
    } else if (begun) notify(`finished episodes are kept; go on with: longplay rollout --resume ${dir}`);
    throw thrown;
  } finally {
    interrupted.stop();
    display.close();
  }
}

function fresh(flags: RolloutFlags): PreparedRollout {
  const policyRun = policyRunOf(flags.policy);
  const trained = policyRun === undefined ? undefined : readRunConfig(policyRun);
  if (trained) requireOneWorld(trained, 'rollout');
  const agent = flags.agent === undefined ? undefined : readAgent(flags.agent);
  const named = flags.env === undefined ? trained?.env.id : resolveEnvId(flags.env, process.cwd());
  const id = agent ? AGENT : named;
  if (id === undefined) {
    const known = worldIds().join(', ');
    throw new UserError(
      'BAD_ARGUMENT',
      `rollout: name the world: --env ${known}, or the path of a module; or a program: --agent ./agent.mjs`,
    );
  }
  const bothModules = trained !== undefined && isModulePath(trained.env.id) && isModulePath(id);
  if (trained && trained.env.id !== id && !bothModules) {
    throw new UserError('BAD_ARGUMENT', `rollout: ${policyRun} was trained on ${trained.env.id}, not on ${id}`);
  }
  const changed = trained && moduleChange({ ...trained.env, id });
  if (changed !== undefined) err.line(changed);
  const raw = (trained && { ...trained, env: { ...trained.env, id, ...(agent ? { options: agent } : {}) } }) ?? {
    ...(agent ? { agent } : { env: { id } }),
    horizon: { type: 'fixed', rounds: flags.horizon },
    stop: { updates: 1 },
  };
  const settings = [
    ...policySettings(flags),
    `rollout.concurrentGroups=${flags.concurrency}`,
    `seed=${flags.seed}`,
    ...flags.set,
  ];
  const loaded = loadRunConfig(JSON.stringify(raw), 'rollout', settings);
  const config = { ...loaded, env: locateEnv(loaded.env, process.cwd()) };
  const name = flags.name ?? freeRunName(flags.runs, `rollout-${envLabel(id)}`);
  const dir = runDir(flags.runs, name);
  worldUrl(id, config.env.options);
  const plan: RolloutPlan = {
    format: 1,
    episodes: flags.episodes,
    split: flags.split,
    tasks: flags.tasks === undefined ? undefined : tasksIn(flags.tasks),
    horizon: flags.horizon,
    ...samplingOf(config, flags.temperature),
    seed: flags.seed,
    policyRun: policyRun === undefined ? undefined : resolve(policyRun),
  };
  return startFolder({ dir, config, plan });
}

/** Agent of the flag: a module by its ending, else a command line, its words between blanks. */
function readAgent(
  given: string,
): { readonly module: string } | { readonly url: string } | { readonly command: readonly string[] } {
  if (/^https?:\/\/\S+$/.test(given)) return { url: given };
  const words = given.trim().split(/\s+/);
  return words.length === 1 && /\.[cm]?[jt]s$/.test(given) ? { module: given } : { command: words };
}

/**
 * Refuses settings that a rollout does not heed and has flags for.
 * @throws {UserError} BAD_ARGUMENT
 */
function refuseTrainingKeys(set: readonly string[]): void {
  for (const [section, flag] of Object.entries({ tasks: '--tasks or --split', horizon: '--horizon' })) {
    const typed = set.find((setting) => setting.split(/[.=]/, 1)[0]!.trim() === section);
    if (typed === undefined) continue;
    throw new UserError('BAD_ARGUMENT', `rollout: ${typed.split('=', 1)[0]} is for training; give ${flag} instead`);
  }
}

function resumeRollout(dir: string, set: readonly string[]): PreparedRollout {
  const config = checkRunConfig(readRunConfig(dir, set), dir);
  const changed = moduleChange(config.env);
  if (changed !== undefined) err.line(changed);
  const path = join(dir, PLAN_FILE);
  if (!existsSync(path)) throw new UserError('UNKNOWN_RUN', `${dir} is no rollout: it has no ${PLAN_FILE}`);
  return { dir, config, plan: readPlan(path) };
}
