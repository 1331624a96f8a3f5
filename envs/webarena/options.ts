/** Options of the world, checked. */

import { describeValue } from '../../src/core/describe-value.ts';
import type { EnvOptions } from '../../src/core/env.ts';
import { UserError } from '../../src/core/errors.ts';
import type { Fidelity } from './grammar.ts';
import type { Dialect } from './tree.ts';

/** Options of the world. */
export interface WebArenaOptions {
  /** `corrected` (default) or `original`, see README.md. */
  readonly fidelity: Fidelity;
  /** `2023` (default): no addresses at links, `img` for images; `chromium`: all that today's Chromium prints. */
  readonly dialect: Dialect;
  /** `in-process` (default) or `chromium`: what drives the sites of our own. */
  readonly driver: 'in-process' | 'chromium';
  /** `embedded` (default): the sites of our own; `live`: sites at the addresses of the environment variables. */
  readonly sites: 'embedded' | 'live';
  /** Live sites: folder of the task configurations, one JSON object a file. */
  readonly configs: string | undefined;
  /** Live sites: true where no task changes anything, so that sessions may share a site. */
  readonly readOnly: boolean;
  /** Live sites: longest wait for a page, in milliseconds; a page that takes longer fails its episode. */
  readonly loadMs: number;
  /** Folder that keeps a screenshot a turn; none are taken where absent. */
  readonly screenshots: string | undefined;
}

/** Below the ten seconds that a host gives a step by default, so that a slow page fails its own episode alone. */
const LOAD_MS = 8000;

const CHOICES = {
  fidelity: ['corrected', 'original'],
  dialect: ['2023', 'chromium'],
  driver: ['in-process', 'chromium'],
  sites: ['embedded', 'live'],
} as const;
const KNOWN = [...Object.keys(CHOICES), 'configs', 'readOnly', 'loadMs', 'screenshots'];

/**
 * Checks the options and fills in the defaults. @throws {UserError} BAD_CONFIG for an unknown option or value
 * of these
 */
export function webArenaOptions(options: EnvOptions = {}): WebArenaOptions {
  for (const key of Object.keys(options)) {
    if (!KNOWN.includes(key))
      throw new UserError('BAD_CONFIG', `webarena has no option "${key}"; it has: ${KNOWN.join(', ')}`);
  }
  const choice = <K extends keyof typeof CHOICES>(key: K): (typeof CHOICES)[K][number] => {
    const allowed: readonly string[] = CHOICES[key];
    const value = options[key] === undefined ? allowed[0] : String(options[key]);
    if (allowed.includes(value!)) return value as (typeof CHOICES)[K][number];
    throw new UserError(
      'BAD_CONFIG',
      `webarena: ${key} must be ${allowed.map((one) => `"${one}"`).join(' or ')}, got ${describeValue(options[key])}`,
    );
  };
  const { configs, readOnly = false, loadMs = LOAD_MS, screenshots } = options;
  if (configs !== undefined && typeof configs !== 'string')
    throw new UserError('BAD_CONFIG', `webarena: configs must be the path of a folder, got ${describeValue(configs)}`);
  if (typeof readOnly !== 'boolean')
    throw new UserError('BAD_CONFIG', `webarena: readOnly must be true or false, got ${describeValue(readOnly)}`);
  if (!(typeof loadMs === 'number' && loadMs >= 100 && loadMs <= 600_000)) {
    throw new UserError(
      'BAD_CONFIG',
      `webarena: loadMs must be milliseconds in [100, 600000], got ${describeValue(loadMs)}`,
    );
  }
  const sites = choice('sites');
  if (sites === 'live' && configs === undefined)
    throw new UserError('BAD_CONFIG', 'webarena: sites: live needs configs, the folder with the task configurations');
  const driver = choice('driver');
  if (screenshots !== undefined && (typeof screenshots !== 'string' || screenshots === '')) {
    throw new UserError(
      'BAD_CONFIG',
      `webarena: screenshots must be the path of a folder, got ${describeValue(screenshots)}`,
    );
  }
  if (screenshots !== undefined && sites === 'embedded' && driver === 'in-process') {
    throw new UserError(
      'BAD_CONFIG',
      'webarena: screenshots need a browser, and sites in process have none; add driver: chromium',
    );
  }
  return {
    fidelity: choice('fidelity'),
    dialect: choice('dialect'),
    driver,
    sites,
    configs,
    readOnly,
    loadMs,
    screenshots,
  };
}
