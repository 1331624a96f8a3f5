/** WebArena: sites of our own, in process or in Chromium; the original's sites by adapter; AgentGym's server either way. */
import type { Env, EnvOptions, Oracle } from '../../src/core/env.ts';
import { UserError } from '../../src/core/errors.ts';
import type { Screenshot } from '../../src/core/screenshot.ts';
import type { Resources } from '../../src/core/world.ts';
import { EmbeddedBrowser } from './drivers/embedded-browser.ts';
import { EmbeddedWebArena } from './env.ts';
import { LiveBrowser, LiveWebArena } from './live/live-env.ts';
import { webArenaOptions } from './options.ts';
import { oracle } from './oracle.ts';
import { openScreenshots, screenshotFile } from './screenshots.ts';

export { agentgym } from './agentgym.ts';
export { draw } from './draw.ts';
export { parity } from './parity.ts';
export { prompt } from './prompt.ts';
export { view } from './view.ts';

/**
 * Starts what the options need: a Chromium, or nothing. @throws {UserError} without a Chromium where one is configured
 */
export async function start(options: EnvOptions): Promise<Resources> {
  const { sites, driver, screenshots } = webArenaOptions(options);
  if (screenshots !== undefined) openScreenshots(screenshots);
  if (sites === 'live') return LiveBrowser.start();
  return driver === 'chromium' ? EmbeddedBrowser.start() : { dispose() {} };
}

/**
 * Makes the world: sites of our own, or the ones that the user runs (`sites: live`). @throws {UserError} BAD_CONFIG
 * for an option or a value that the world does not have
 */
export function createEnv(options: EnvOptions = {}, resources?: Resources): Env {
  const checked = webArenaOptions(options);
  if (checked.sites === 'live')
    return new LiveWebArena(checked, resources instanceof LiveBrowser ? resources : undefined);
  if (checked.driver === 'in-process') return new EmbeddedWebArena(checked);
  const browser = resources instanceof EmbeddedBrowser ? resources : undefined;
  return new EmbeddedWebArena(checked, (episode, focusesOpened) => {
    if (!browser)
      throw new UserError('MISSING_ENGINE', 'webarena: driver: chromium needs its host to have started the browser');
    return browser.openDriver(episode, focusesOpened);
  });
}

/** Path of the screenshot that a run's option `screenshots` has kept of an observation. */
export const screenshot: Screenshot = (task, observation, options) => {
  const { screenshots } = options;
  return typeof screenshots === 'string' ? screenshotFile(screenshots, task, observation) : undefined;
};

/** The scripted solver of the sites of our own; the same for every option. */
export function createOracle(_options?: EnvOptions): Oracle {
  return oracle;
}
