/** Command `longplay view`: a page over runs, served on this machine or written as one file. */
import { writeFileSync } from 'node:fs';
import type { Command } from 'commander';
import { out } from '../../console/terminal.ts';
import { messageOf, UserError } from '../../core/errors.ts';
import type { World } from '../../core/world.ts';
import { codecOf } from '../../reading/codec-of.ts';
import { findWorld } from '../../run/find-world.ts';
import { reportHtml } from '../../viewer/report.ts';
import { RunSource, type WorldsOf, type WorldTools } from '../../viewer/run-source.ts';
import { serveViewer } from '../../viewer/server.ts';
import { runCommand } from '../fail.ts';
import { port, wholeNumber } from '../flags.ts';

interface ViewFlags {
  readonly port: number;
  readonly out?: string;
  readonly episodes: number;
}

/** Adds the command. */
export function view(program: Command): void {
  program
    .command('view')
    .description('look at runs: curves, episodes turn by turn, groups side by side, where the time went')
    .argument('<run...>', 'runs, or trace files')
    .option('--port <port>', 'of the loopback address; 0 picks a free one', port, 7333)
    .option('--out <file>', 'write one HTML file instead, to keep or to send')
    .option('--episodes <n>', 'with --out: episodes of a run that are in it with their turns', wholeNumber(0), 200)
    .action((paths: string[], flags: ViewFlags) => runCommand(() => viewCommand(paths, flags)));
}

async function viewCommand(paths: readonly string[], flags: ViewFlags): Promise<void> {
  const worlds = worldTools();
  const sources = paths.map((path, id) => new RunSource(path, id, worlds));
  if (flags.out !== undefined) {
    const html = await reportHtml(sources, { episodes: flags.episodes });
    try {
      writeFileSync(flags.out, html);
    } catch (thrown) {
      throw new UserError('NO_PERMISSION', `cannot write ${flags.out}: ${messageOf(thrown)}`);
    }
    out.line(`${flags.out} (${(Buffer.byteLength(html) / 1e6).toFixed(1)} MB)`);
    return;
  }
  const server = await serveViewer(sources, flags.port);
  out.line(`${server.url}  (Ctrl-C ends it)`);
  const end = () => void server.close();
  process.once('SIGINT', end);
  process.once('SIGTERM', end);
}

/** Drawings and spellings of worlds, each loaded once; one that is not installed draws nothing. */
export function worldTools(): WorldsOf {
  const known = new Map<string, Promise<WorldTools>>();
  const load = async (env: string): Promise<WorldTools> => {
    let world: World;
    try {
      ({ world } = await findWorld(env));
    } catch {
      return {};
    }
    const { draw } = world;
    const codec = codecOf(world);
    return {
      ...(draw ? { draw } : {}),
      spell: (id: number) => codec.decode([id]),
    };
  };
  return (env) => {
    let tools = known.get(env);
    if (!tools) known.set(env, (tools = load(env)));
    return tools;
  };
}
