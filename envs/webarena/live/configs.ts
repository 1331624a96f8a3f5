/** Task configurations in WebArena's format, from the user's own copy; sites from the original's environment variables. */

import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { MAX_DATA_BYTES, readJsonFile, readText } from '../../../src/core/bounded-file.ts';
import { describeValue } from '../../../src/core/describe-value.ts';
import { messageOf, UserError } from '../../../src/core/errors.ts';
import { largestOf } from '../../../src/core/extremes.ts';
import { parseJson } from '../../../src/core/json-text.ts';
import type { TaskConfig } from '../server-episode.ts';
import type { SiteBases, SiteId } from '../urls.ts';

/** Variables that name the sites, as in the original. */
const VARIABLES: Readonly<Record<SiteId, string>> = {
  reddit: 'REDDIT',
  shopping: 'SHOPPING',
  shopping_admin: 'SHOPPING_ADMIN',
  gitlab: 'GITLAB',
  wikipedia: 'WIKIPEDIA',
  map: 'MAP',
  homepage: 'HOMEPAGE',
};

/** Task configuration as a file of the user's holds it. */
export interface LiveTask extends TaskConfig {
  /** File with cookies and local storage, of Playwright's form; null without a login. */
  readonly storage_state: string | null;
}

/** Configurations that can be played, and how many cannot and why. */
export interface LiveTasks {
  readonly tasks: readonly LiveTask[];
  readonly withoutSite: number;
  readonly withoutJudge: number;
}

const EVALUATORS = ['string_match', 'url_match', 'program_html'];
const LOCATOR = /^(\s*$|document\.|\[\.\.\.document\.|func:)/;

/**
 * Base addresses of the sites, from the original's environment variables (`SHOPPING`, `REDDIT`, …). @throws
 * {UserError} BAD_CONFIG for a variable that is no address
 */
export function siteBases(env: NodeJS.ProcessEnv = process.env): SiteBases {
  const bases: Partial<Record<SiteId, string>> = {};
  for (const [site, variable] of Object.entries(VARIABLES) as [SiteId, string][]) {
    const value = env[variable];
    if (value === undefined || value === '') continue;
    if (!/^https?:\/\//.test(value) || !URL.canParse(value)) {
      throw new UserError(
        'BAD_CONFIG',
        `webarena: ${variable} must be the http address of the site, got ${describeValue(value)}`,
      );
    }
    bases[site] = value.replace(/\/+$/, '');
  }
  return bases;
}

/**
 * Reads every `<number>.json` of a folder, or a file that holds a list of them.
 * @throws {UserError} BAD_CONFIG for what cannot be read, an unknown evaluator or locator, a login that is not there
 */
export function readTasks(folder: string, bases: SiteBases): LiveTasks {
  const all = configsOf(folder).map(({ file, text }) => checkTask(file, substituteBases(text, bases), folder));
  if (all.length === 0)
    throw new UserError(
      'BAD_CONFIG',
      `webarena: no task configuration in ${folder}: expected files like 0.json, or a .json file with a list`,
    );
  const reachable = all.filter(({ sites }) => sites.every((site) => bases[site as SiteId] !== undefined));
  const tasks = reachable.filter(({ eval: { reference_answers: answers } }) => !Array.isArray(answers?.fuzzy_match));
  if (tasks.length === 0) {
    const wanted = [...new Set(all.flatMap(({ sites }) => sites))].map((site) => VARIABLES[site as SiteId] ?? site);
    throw new UserError(
      'BAD_CONFIG',
      `webarena: none of the ${all.length} tasks in ${folder} can be played: set ${wanted.join(', ')} to the sites' addresses`,
    );
  }
  tasks.sort((a, b) => a.task_id - b.task_id);
  return { tasks, withoutSite: all.length - reachable.length, withoutJudge: reachable.length - tasks.length };
}

function configsOf(folder: string): { file: string; text: string }[] {
  try {
    if (folder.endsWith('.json')) {
      const list = readJsonFile(folder, MAX_DATA_BYTES) as unknown[];
      return list.map((one, i) => ({ file: `${folder}, entry ${i}`, text: JSON.stringify(one) }));
    }
    return readdirSync(folder)
      .filter((name) => /^\d+\.json$/.test(name))
      .map((name) => ({ file: join(folder, name), text: readText(join(folder, name)) }));
  } catch (thrown) {
    throw new UserError(
      'BAD_CONFIG',
      `webarena: the task configurations ${folder} cannot be read: ${messageOf(thrown)}`,
    );
  }
}

function substituteBases(text: string, bases: SiteBases): string {
  let out = text;
  for (const [site, base] of Object.entries(bases)) out = out.replaceAll(`__${VARIABLES[site as SiteId]}__`, base);
  return out;
}

function checkTask(file: string, text: string, folder: string): LiveTask {
  const fail = (expected: string, got: unknown): never => {
    throw new UserError('BAD_CONFIG', `webarena: ${file}: expected ${expected}, got ${describeValue(got)}`);
  };
  let raw: LiveTask;
  try {
    raw = parseJson(text) as LiveTask;
  } catch (thrown) {
    throw new UserError('BAD_CONFIG', `webarena: ${file} is no JSON: ${messageOf(thrown)}`);
  }
  if (typeof raw?.task_id !== 'number') fail('a task_id', raw?.task_id);
  if (typeof raw.intent !== 'string' || typeof raw.start_url !== 'string')
    fail('intent and start_url', [raw.intent, raw.start_url]);
  if (!Array.isArray(raw.sites)) fail('a list of sites', raw.sites);
  for (const site of raw.sites)
    if (!Object.hasOwn(VARIABLES, site)) fail(`a site among ${Object.keys(VARIABLES).join(', ')}`, site);
  for (const type of raw.eval?.eval_types ?? [fail('eval.eval_types', raw.eval)]) {
    if (!EVALUATORS.includes(type)) fail(`an evaluator among ${EVALUATORS.join(', ')}`, type);
  }
  for (const { locator } of raw.eval.program_html ?? [])
    if (!LOCATOR.test(locator)) fail('a locator that begins with document. or func:', locator);
  const state = raw.storage_state ? join(folder, '..', raw.storage_state) : null;
  if (state !== null) checkLogin(state, file);
  return { ...raw, storage_state: state };
}

/** @throws {UserError} BAD_CONFIG for a login that is missing, invalid or expired */
function checkLogin(state: string, file: string): void {
  const fail = (why: string): never => {
    throw new UserError(
      'BAD_CONFIG',
      `webarena: ${file} needs the login ${state}, which ${why}; make it with the original's auto_login.py`,
    );
  };
  if (!existsSync(state)) fail('is not there');
  let cookies: readonly { readonly expires?: number }[] | undefined;
  try {
    cookies = (readJsonFile(state) as { cookies?: { expires?: number }[] }).cookies;
  } catch {
    fail('is no JSON');
  }
  if (!Array.isArray(cookies)) fail('holds no cookies');
  const ends = cookies!.map(({ expires = -1 }) => expires).filter((seconds) => seconds > 0);
  if (ends.length > 0 && largestOf(ends) * 1000 < Date.now())
    fail(`expired on ${new Date(largestOf(ends) * 1000).toISOString().slice(0, 10)}`);
}
