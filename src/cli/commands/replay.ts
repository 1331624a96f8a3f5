/**
 * Command `longplay replay`: steps through recorded episodes, plays them again and shows where they differ, or goes on from their
 * turns with a policy.
 */
import { emitKeypressEvents } from 'node:readline';
import type { Command } from 'commander';
import { episodeFrame, episodeLines } from '../../console/episode-frame.ts';
import { Painter } from '../../console/painter.ts';
import { err, out } from '../../console/terminal.ts';
import type { Draw, Drawing } from '../../core/draw.ts';
import type { EnvOptions } from '../../core/env.ts';
import { UserError } from '../../core/errors.ts';
import { shorten } from '../../core/printable.ts';
import { taskName } from '../../core/task.ts';
import type { World } from '../../core/world.ts';
import { openChatModel } from '../../policy/remote/chat-model.ts';
import { findWorld } from '../../run/find-world.ts';
import { findTracedEnv, readTracedEnv } from '../../run/traced-env.ts';
import { type Difference, recheck } from '../../storage/recheck.ts';
import type { TraceLine } from '../../storage/trace.ts';
import { TraceStore } from '../../storage/trace-store.ts';
import { type ConfiguredEnv, moduleChange, resolveEnvId } from '../../world/env-id.ts';
import { type OpenWorld, openWorld } from '../../world/open-world.ts';
import { reportLosses, runCommand } from '../fail.ts';
import { collectFlag, MOST, number, refuseFlags, wholeNumber } from '../flags.ts';
import { type ContinueFlags, continueCommand } from './replay-continue.ts';

interface ReplayFlags extends ContinueFlags {
  readonly episode?: string;
  readonly check?: boolean;
  readonly env?: string;
}

/** Adds the command. */
export function replay(program: Command): void {
  program
    .command('replay')
    .description('step through recorded episodes, play them again in their env, or go on from a turn of one')
    .argument('<trace>', 'a run, its traces folder, or a trace file')
    .option('--episode <id>', 'start with this episode, check it alone, or go on from it')
    .option('--env <path>', "the world's module, where it is not at the path in the trace any more")
    .option('--check', 'play again and show where the env answers otherwise than recorded')
    .option(
      '--from-turn <k>',
      'keep k recorded actions and let --policy play on: the value of that state',
      wholeNumber(0, MOST.held),
    )
    .option('--every-turn', 'the same from each turn: where the episode was lost')
    .option(
      '--policy <openai|random|oracle|run>',
      "who plays on; openai: --base-url and --model; oracle: the world's solver; random; or a run's folder",
    )
    .option('--base-url <url>', 'of the OpenAI-compatible server, e.g. http://127.0.0.1:8000/v1')
    .option('--model <name>', 'as the server calls it; may be left out where it has only one')
    .option('--group <n>', 'continuations from a turn; 8 where it is left out', wholeNumber(1, MAX_GROUP))
    .option('--temperature <t>', '0 is greedy; 1, or evaluation.sampling.temperature, where it is left out', number(0))
    .option('--concurrency <n>', 'episodes at once', wholeNumber(1, MOST.held), 64)
    .option('--seed <n>', 'of sampling', wholeNumber(0, MOST.seed), 1)
    .option('--set <key=value>', 'a key of the configuration, e.g. policy.chat.format=code', collectFlag, [])
    .option('--out <folder>', 'write the continuations as a trace that names their parent')
    .option('--json', 'one JSON object')
    .action((path: string, flags: ReplayFlags, command: Command) =>
      runCommand(async () => {
        const goesOn = flags.fromTurn !== undefined || flags.everyTurn === true;
        if (goesOn) refuseFlags(command, ['check'], 'a continuation is checked anyway; give one of them');
        else refuseFlags(command, CONTINUED, 'it is about continuations; give --from-turn <k> or --every-turn');
        if (flags.fromTurn !== undefined)
          refuseFlags(command, ['everyTurn'], '--from-turn names one; give one of them');
        await replayCommand(path, flags);
      }),
    );
}

/** Continuations of one state: side by side they share what was computed of it. */
const MAX_GROUP = 1024;

/** Flags that are about continuations alone. */
const CONTINUED = ['policy', 'baseUrl', 'model', 'group', 'temperature', 'concurrency', 'seed', 'set', 'out', 'json'];

async function replayCommand(path: string, flags: ReplayFlags): Promise<void> {
  const store = TraceStore.open(path);
  reportLosses(store);
  const start = flags.episode === undefined ? 0 : find(store, flags.episode, path);
  if (store.size === 0) throw new UserError('BAD_TRACE', `${path}: no episode has been recorded yet`);
  const envOf = (named: string): ConfiguredEnv => {
    if (flags.env === undefined) return findTracedEnv(store.config, path, named);
    return { ...readTracedEnv(store.config, named), id: resolveEnvId(flags.env, process.cwd()) };
  };
  if (flags.fromTurn !== undefined || flags.everyTurn) {
    if (flags.episode === undefined && store.size > 1) {
      throw new UserError('BAD_ARGUMENT', `replay: ${path} holds ${store.size} episodes; name one: --episode <id>`);
    }
    const episode = store.read(start);
    await continueCommand(path, episode, envOf(episode.task.env), flags);
  } else if (flags.check) await check(store, envOf, flags.episode === undefined ? undefined : start);
  else if (out.isTTY && process.stdin.isTTY) await step(store, envOf, start);
  else out.writeStyled(episodeLines(store.read(start), out.isTTY ? out.columns : 100));
}

/** World of the episodes of a task's env. */
type EnvOf = (named: string) => ConfiguredEnv;

function find(store: TraceStore, id: string, path: string): number {
  const at = store.episodes.findIndex(({ episode }) => String(episode) === id);
  if (at >= 0) return at;
  const [first, last] = [store.episodes[0], store.episodes.at(-1)];
  const range = first && last ? `; it holds ${store.size}, the first ${first.episode}, the last ${last.episode}` : '';
  throw new UserError('BAD_TRACE', `${path} has no episode ${id}${range}`);
}

/**
 * Checks episodes: prints the first differences and a last line with the counts. Sets the exit code to 1 when there is
 * one.
 */
async function check(store: TraceStore, envOf: EnvOf, only: number | undefined): Promise<void> {
  let differing = 0;
  let steps = 0;
  const all = only === undefined ? store.episodes.map(({ at }) => at) : [only];
  const worlds = new Map<string, OpenWorld>();
  try {
    for (const at of all) {
      const episode = store.read(at);
      let opened = worlds.get(episode.task.env);
      if (!opened) {
        const env = envOf(episode.task.env);
        const changed = moduleChange(env);
        if (changed !== undefined) err.line(changed);
        const { id, options } = env;
        const { world } = await findWorld(id, options);
        worlds.set(episode.task.env, (opened = await openWorld(world, id, options, 'replay', { openChatModel })));
      }
      steps += episode.turns.length;
      const difference = await recheck(opened.env, episode);
      if (difference && differing++ < 5) out.line(describeDifference(episode, difference));
    }
  } finally {
    for (const opened of worlds.values()) await opened.dispose();
  }
  out.line(`episodes ${all.length}, steps ${steps}, differing ${differing}`);
  if (differing > 0) process.exitCode = 1;
}

function describeDifference({ episode, task }: TraceLine, { turn, what, recorded, now }: Difference): string {
  return [
    `episode ${episode} (${taskName(task)}), turn ${turn}: another ${what}`,
    `  recorded ${quoteValue(recorded)}`,
    `  now      ${quoteValue(now)}`,
  ].join('\n');
}

/** Characters of an observation that are shown. */
const SHOWN_CHARS = 1000;

function quoteValue(value: unknown): string {
  return shorten(JSON.stringify(value) ?? 'nothing', SHOWN_CHARS);
}

/** Draws the state before turn `turn` of an episode; nothing where the world draws nothing or the drawing fails. */
function drawingOf(draw: Draw | undefined, episode: TraceLine, turn: number, options: EnvOptions): Drawing | undefined {
  if (!draw) return undefined;
  const { turns, finalObservation, task } = episode;
  const first = { kind: 'first', observation: turns[0]?.observation ?? finalObservation } as const;
  const seen = turns
    .slice(0, turn)
    .map(({ action }, t) => ({ action, observation: turns[t + 1]?.observation ?? finalObservation }));
  try {
    return draw(task, first, seen, options);
  } catch {
    return undefined; // a trace of another version of the world: the text is still there
  }
}

async function step(store: TraceStore, envOf: EnvOf, start: number): Promise<void> {
  const painter = new Painter(out, out.colors);
  const worlds = new Map<string, World | undefined>();
  let at = start;
  let turn = 0;
  let episode = store.read(at);
  const show = async () => {
    const { env } = episode.task;
    const { id, options } = envOf(env);
    if (!worlds.has(env)) {
      const found = await findWorld(id, options).then(
        ({ world }) => world,
        () => undefined,
      );
      worlds.set(env, found);
    }
    const drawing = drawingOf(worlds.get(env)?.draw, episode, turn, options);
    const { columns: width, rows: height } = out;
    painter.paint(episodeFrame(episode, turn, drawing, { width, height }));
  };
  const move = (to: number) => {
    at = Math.min(store.size - 1, Math.max(0, to));
    episode = store.read(at);
    turn = 0;
  };
  const { stdin } = process;
  let unlisten = () => {};
  emitKeypressEvents(stdin);
  stdin.setRawMode(true);
  try {
    await new Promise<void>((resolve, reject) => {
      stdin.on('keypress', (_: string, key: { name?: string; ctrl?: boolean }) => {
        if (key.name === 'q' || key.name === 'escape' || (key.ctrl && key.name === 'c')) return resolve();
        if (key.name === 'right' || key.name === 'n' || key.name === 'space') {
          turn = Math.min(episode.turns.length, turn + 1);
        } else if (key.name === 'left' || key.name === 'p') turn = Math.max(0, turn - 1);
        else if (key.name === 'home') turn = 0;
        else if (key.name === 'end') turn = episode.turns.length;
        else if (key.name === 'down' || key.name === 'pagedown') move(at + 1);
        else if (key.name === 'up' || key.name === 'pageup') move(at - 1);
        else return;
        show().catch(reject);
      });
      unlisten = out.onResize(() => void show().catch(reject));
      show().catch(reject);
    });
  } finally {
    painter.close();
    stdin.setRawMode(false);
    stdin.pause();
    stdin.removeAllListeners('keypress');
    unlisten();
  }
}
