/** Viewer of runs: their sources, and the page that is served over them. */

import type { RunConfig } from '../config/run-config.ts';
import { hasWorlds } from '../config/worlds.ts';
import { AGENT } from '../core/agent-call.ts';
import { isMcpId } from '../core/tool-world.ts';
import type { World } from '../core/world.ts';
import { describeLoss } from '../storage/trace-store.ts';
import type { Codec } from '../text/reading/codec.ts';
import { codecOf } from '../text/reading/codec-of.ts';
import { RunSource, type WorldsOf, type WorldTools } from '../viewer/run-source.ts';
import { serveViewer, type ViewerServer } from '../viewer/server.ts';
import { isModulePath } from '../world/env-id.ts';
import { toolWorldParts } from '../world/open-world.ts';
import { findWorld } from './find-world.ts';
import { type ReadWorlds, readingOf, readWorlds } from './read-worlds.ts';
import { readRunConfig } from './run-folder.ts';

/**
 * Serves the viewer's page over runs on the loopback address, until `close`.
 * @param paths folders of runs, or traces
 * @param port 0 takes a free one
 * @param onNotice receives a line about each trace that has lost episodes
 * @throws {UserError} UNKNOWN_RUN, BAD_ARGUMENT for a port that cannot be had
 */
export function viewRuns(
  paths: readonly string[],
  port = 0,
  onNotice: (message: string) => void = () => {},
): Promise<ViewerServer> {
  const sources = runSources(paths);
  for (const loss of sources.flatMap(({ losses }) => losses)) onNotice(describeLoss(loss));
  return serveViewer(sources, port);
}

/** Sources of runs, as the viewer reads them. @throws {UserError} UNKNOWN_RUN */
export function runSources(paths: readonly string[]): RunSource[] {
  const worlds = worldTools();
  return paths.map((path, id) => {
    const config = configOf(path);
    if (config && hasWorlds(config)) return new RunSource(path, id, toolsOfWorlds(config));
    const module = config && isModulePath(config.env.id) ? config.env.id : undefined;
    return new RunSource(path, id, (env) => worlds(module ?? env));
  });
}

/** Tools of the worlds of a run of several: tokens are spelt in the vocabulary of all of them. */
function toolsOfWorlds(config: RunConfig): WorldsOf {
  let read: Promise<ReadWorlds | undefined> | undefined;
  return async (env) => {
    read ??= readWorlds(config).catch(() => undefined); // one that is not installed draws nothing
    const worlds = await read;
    const world = worlds?.find((one) => one.env.id === env)?.world;
    return worlds && world ? toolsOf(world, codecOf(readingOf(config, worlds))) : {};
  };
}

/** Tools of a world. */
function toolsOf({ draw, screenshot }: Pick<World, 'draw' | 'screenshot'>, codec: Codec): WorldTools {
  return {
    ...(draw ? { draw } : {}),
    ...(screenshot ? { screenshot } : {}),
    spell: (id: number) => codec.decode([id]),
  };
}

/** Configuration of a run; its episodes name a user's own world by its id alone. */
function configOf(path: string): RunConfig | undefined {
  try {
    return readRunConfig(path);
  } catch {
    return undefined; // a bare trace, or a configuration that this version does not read
  }
}

/** Drawings and spellings of worlds, each loaded once; one that is not installed draws nothing. */
export function worldTools(): WorldsOf {
  const known = new Map<string, Promise<WorldTools>>();
  const load = async (env: string): Promise<WorldTools> => {
    let world: Pick<World, 'view' | 'draw' | 'screenshot'>;
    try {
      // An agent's program or an MCP server is not started to draw what it did.
      world = env === AGENT || isMcpId(env) ? toolWorldParts : (await findWorld(env)).world;
    } catch {
      return {};
    }
    return toolsOf(world, codecOf(world));
  };
  return (env) => {
    let tools = known.get(env);
    if (!tools) known.set(env, (tools = load(env)));
    return tools;
  };
}
