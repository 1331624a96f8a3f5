/** Loads configurations: YAML text, overrides from the command line, the schema, and messages a person can act on. */

import { isMap, isScalar, isSeq, LineCounter, parseDocument } from 'yaml';
import { filtersGroups, maxGroups } from '../algo/dynamic-sampling.ts';
import { estimatorOf } from '../algo/estimators.ts';
import { messageOf, UserError } from '../core/errors.ts';
import { append, largestOf } from '../core/extremes.ts';
import { firstLineOf } from '../core/first-line.ts';
import { printable } from '../core/printable.ts';
import { cutText, describeValue } from './describe-value.ts';
import { countMistakes, explain } from './explain.ts';
import { POLICY_KIND_NAMES, POLICY_KINDS, policyKindOf } from './policy-kinds.ts';
import { dropRemovedKeys } from './removed-keys.ts';
import { type RunConfig, runConfigSchema } from './run-config.ts';
import { fillUnionDefaults } from './union-defaults.ts';

/**
 * Reads a configuration from YAML, with overrides, checks it and fills in its defaults.
 * @param text YAML
 * @param source where it came from, for messages
 * @param overrides `key.path=value` strings; values are YAML
 * @throws {UserError} BAD_CONFIG: one line per mistake
 */
export function loadRunConfig(text: string, source: string, overrides: readonly string[] = []): RunConfig {
  if (text.length > MAX_CHARS) {
    const message = `${source}: expected at most ${MAX_CHARS} characters, got ${text.length}; is this a configuration?`;
    throw new UserError('BAD_CONFIG', message);
  }
  const document = parseYaml(text, source);
  const raw = toPlainValue(document, source) ?? {};
  if (isRecord(raw) && Object.keys(raw).length === 0 && overrides.length === 0) {
    throw new UserError(
      'BAD_CONFIG',
      `${source}: it is empty; give at least the world (longplay envs lists them), the turns of an episode and the end of the run: env: { id: … }, horizon: { type: fixed, rounds: 8 }, stop: { updates: 10 }`,
    );
  }
  if (!isRecord(raw))
    throw new UserError('BAD_CONFIG', `${source}: expected keys and values, got ${describeValue(raw)}`);
  for (const override of overrides) applyOverride(raw, override);
  return checkRunConfig(raw, source);
}

/** Characters of a configuration, far more than any needs: the parser takes seconds for a deeply nested megabyte. */
const MAX_CHARS = 2 ** 18;

/** Parses YAML. Repeated keys are found here: the parser compares each key with all others. @throws {UserError} BAD_CONFIG */
function parseYaml(text: string, source: string): ReturnType<typeof parseDocument> {
  const lines = new LineCounter();
  // Nor does it make its errors pretty: each would quote its line, and a line may hold thousands.
  const document = parseDocument(text, {
    uniqueKeys: false,
    lineCounter: lines,
    prettyErrors: false,
    logLevel: 'error',
  });
  const [error] = document.errors;
  let why = error && `${firstLineOf(error.message)} at ${describePlace(lines, error.pos[0])}`;
  const twice = why === undefined ? findRepeatedKey(document.contents) : undefined;
  if (twice !== undefined) why = `Map keys must be unique at ${describePlace(lines, twice)}`;
  if (why !== undefined) throw new UserError('BAD_CONFIG', `${source}: not valid YAML: ${why}`);
  return document;
}

/** Finds the first key that its map has twice, at any depth. @returns its offset; undefined where there is none */
function findRepeatedKey(node: unknown): number | undefined {
  if (isMap(node)) {
    const seen = new Set<string>();
    for (const { key, value } of node.items) {
      if (isScalar(key)) {
        const name = String(key.value);
        if (seen.has(name)) return key.range?.[0] ?? 0;
        seen.add(name);
      }
      const inner = (isScalar(key) ? undefined : findRepeatedKey(key)) ?? findRepeatedKey(value);
      if (inner !== undefined) return inner;
    }
  } else if (isSeq(node)) {
    for (const item of node.items) {
      const inner = findRepeatedKey(item);
      if (inner !== undefined) return inner;
    }
  }
  return undefined;
}

function describePlace(lines: LineCounter, offset: number): string {
  const { line, col } = lines.linePos(offset);
  return `line ${line}, column ${col}:`;
}

/** Aliases that a document may expand to; more of them are an attack or a mistake. */
const MAX_ALIASES = 100;

/** Converts a document to plain values. @throws {UserError} BAD_CONFIG for aliases without an anchor, circular or too many */
function toPlainValue(document: ReturnType<typeof parseDocument>, source: string): unknown {
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: MAX_ALIASES });
    JSON.stringify(value); // an alias inside its own anchor
  } catch (thrown) {
    throw new UserError('BAD_CONFIG', `${source}: aliases cannot be followed: ${firstLineOf(messageOf(thrown))}`);
  }
  return value;
}

/** Mistakes of one configuration that a message lists. */
const MAX_MISTAKES = 20;

/**
 * Checks a configuration and fills in its defaults.
 * @throws {UserError} BAD_CONFIG naming each wrong key, with the nearest right one, or each wrong value
 */
export function checkRunConfig(given: unknown, source: string): RunConfig {
  const { raw, mistakes } = dropRemovedKeys(given);
  const meant = fillUnionDefaults(runConfigSchema, fillKindDefaults(raw));
  const result = runConfigSchema.safeParse(meant);
  if (mistakes.length > 0 || !result.success) {
    const lines = [...mistakes];
    let left = 0;
    for (const issue of result.error?.issues ?? []) {
      const more = lines.length < MAX_MISTAKES ? explain(issue, meant, MAX_MISTAKES - lines.length) : [];
      append(lines, more);
      left += countMistakes(issue) - more.length;
    }
    if (left > 0) lines.push(`and ${left} more`);
    throw new UserError('BAD_CONFIG', `${source}: ${lines.join(`\n${source}: `)}`);
  }
  const config = result.data;
  refuseCredentials(config, source);
  refuseExcess(config, source);
  const { stop, learner, rollout } = config;
  if (stop.updates === undefined && stop.minutes === undefined && stop.envSteps === undefined) {
    throw new UserError('BAD_CONFIG', `${source}: stop: expected when the run ends: updates, minutes or envSteps`);
  }
  if (rollout.maxBatch < rollout.groupSize) {
    throw new UserError(
      'BAD_CONFIG',
      `${source}: rollout.maxBatch: expected at least rollout.groupSize (${rollout.groupSize}), got ${rollout.maxBatch}`,
    );
  }
  const { algorithm } = learner.estimator;
  const { needsGroup, needsCritic } = estimatorOf(learner.estimator);
  if (needsGroup && rollout.groupSize < 2) {
    throw new UserError(
      'BAD_CONFIG',
      `${source}: rollout.groupSize: ${algorithm} compares episodes of one task; expected at least 2, got ${rollout.groupSize}`,
    );
  }
  if (needsCritic && learner.valueCoef === 0) {
    throw new UserError(
      'BAD_CONFIG',
      `${source}: learner.valueCoef: ${algorithm} needs a critic; expected a number above 0, got 0`,
    );
  }
  if (config.engine.learnerReplicas > 1 && learner.maxTokens === undefined) {
    throw new UserError(
      'BAD_CONFIG',
      `${source}: engine.learnerReplicas: replicas share the passes of a minibatch, and without learner.maxTokens there is one; set it, e.g. 1000`,
    );
  }
  const { isServed, isLanguageModel } = policyKindOf(config);
  if (isServed) {
    if (learner.offPolicy.type !== 'truncated') {
      throw new UserError(
        'BAD_CONFIG',
        `${source}: learner.offPolicy.type: a server computes otherwise than the learner; expected truncated, got ${learner.offPolicy.type}`,
      );
    }
    if (config.policy.full || config.policy.masked || learner.valueCoef > 0) {
      throw new UserError(
        'BAD_CONFIG',
        `${source}: policy.kind: a server takes adapters, writes freely and has no value head; leave policy.full, policy.masked and learner.valueCoef out`,
      );
    }
  }
  if (isLanguageModel && config.policy.decoder !== 'tokens') {
    throw new UserError(
      'BAD_CONFIG',
      `${source}: policy.decoder: a language model writes tokens; expected tokens, got choice`,
    );
  }
  if (maxGroups(learner) > learner.groupsPerUpdate && !filtersGroups(learner)) {
    throw new UserError(
      'BAD_CONFIG',
      `${source}: learner.oversampling: nothing is left out, so nothing is replaced; it needs filterGroups and an estimator that compares trajectories (grpo, dr_grpo or rloo with credit: trajectory)`,
    );
  }
  return config;
}

/** Fills in the defaults of a language model's policy: it writes text, freely and at length, within little memory. */
function fillKindDefaults(raw: unknown): unknown {
  if (!isRecord(raw) || !isRecord(raw.policy)) return raw;
  const named = POLICY_KIND_NAMES.find((name) => name === (raw.policy as Record<string, unknown>).kind);
  if (named === undefined || !POLICY_KINDS[named].isLanguageModel) return raw;
  const { learner } = raw;
  // A server's log-probabilities are those of other kernels: what they weigh has to be measured and bounded.
  const { isServed } = POLICY_KINDS[named];
  const fillOffPolicy = (given: unknown) =>
    isServed && (given === undefined || (isRecord(given) && given.type === undefined))
      ? { offPolicy: { type: 'truncated', per: 'token', ...given } }
      : {};
  return {
    ...raw,
    policy: { decoder: 'tokens', masked: false, maxTokens: 512, ...raw.policy },
    ...(learner === undefined || isRecord(learner)
      ? { learner: { recompute: true, maxTokens: 4096, ...learner, ...fillOffPolicy(learner?.offPolicy) } }
      : {}),
  };
}

/** Episodes and turns in memory at once, and weights of a model, at most. */
const MAX_EPISODES = 1_000_000;
const MAX_TURNS = 100_000_000;
const MAX_WEIGHTS = 2e9;

/** Refuses excess in products of keys, which no key shows by itself. @throws {UserError} BAD_CONFIG */
function refuseExcess({ rollout, learner, policy, evaluation, horizon }: RunConfig, source: string): void {
  const refuse = (keys: string, product: number, most: number, what: string) => {
    if (product <= most) return;
    throw new UserError('BAD_CONFIG', `${source}: ${keys} make ${product} ${what}; at most ${most} are held at once`);
  };
  const { groupSize, concurrentGroups } = rollout;
  refuse('rollout.concurrentGroups × groupSize', concurrentGroups * groupSize, MAX_EPISODES, 'episodes');
  const waiting = (learner.maxLag + 1) * maxGroups(learner) * groupSize;
  refuse('(learner.maxLag + 1) × groupsPerUpdate × oversampling × groupSize', waiting, MAX_EPISODES, 'episodes');
  const evaluated = concurrentGroups * evaluation.episodesPerTask;
  refuse('rollout.concurrentGroups × evaluation.episodesPerTask', evaluated, MAX_EPISODES, 'episodes');
  const turns = largestOf([horizon.rounds].flat()) * concurrentGroups * groupSize;
  refuse('horizon.rounds × rollout.concurrentGroups × groupSize', turns, MAX_TURNS, 'turns');
  const evaluatedTurns = largestOf(evaluation.horizons) * evaluated;
  refuse('evaluation.horizons × episodesPerTask × rollout.concurrentGroups', evaluatedTurns, MAX_TURNS, 'turns');
  const { hiddenSize = 64, layers = 2 } = policy.model;
  const weights = layers * 16 * hiddenSize ** 2; // attention 4, a feed-forward layer of four times the width 12
  refuse('policy.model.layers × hiddenSize²', weights, MAX_WEIGHTS, 'weights');
}

/** Text of an URL with a name or a password in front of its host. */
const CREDENTIALS = /^[a-z][a-z0-9+.-]*:\/\/[^/?#\s]*@/i;
/** Name of a key in the query of a URL: `?api_key=…`, `&access-token=…`. */
const QUERY_KEY = /key|token|secret|passw|signature/i;

/** True for a URL with a name, a password or a key in it. */
function holdsCredentials(text: string): boolean {
  if (CREDENTIALS.test(text)) return true;
  const query = text.indexOf('?');
  if (query < 0 || !URL.canParse(text)) return false;
  return [...new URL(text).searchParams].some(([name, value]) => value !== '' && QUERY_KEY.test(name));
}

/** Refuses credentials, since a configuration is written into its run and its traces. @throws {UserError} BAD_CONFIG */
function refuseCredentials(value: unknown, source: string, path = ''): void {
  if (typeof value === 'string' && holdsCredentials(value)) {
    throw new UserError(
      'BAD_CONFIG',
      `${source}: ${path}: the URL carries a name, a password or a key, which would be stored with the run; put a key into the environment variable that policy.apiKeyEnv names`,
    );
  }
  if (typeof value !== 'object' || value === null) return;
  for (const [key, inner] of Object.entries(value)) refuseCredentials(inner, source, path ? `${path}.${key}` : key);
}

/** Keys that would reach behind an object instead of into it. */
const INHERITED: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype']);

function applyOverride(raw: Record<string, unknown>, override: string): void {
  const cut = override.indexOf('=');
  if (cut < 1)
    throw new UserError(
      'BAD_CONFIG',
      `--set ${printable(cutText(override))}: expected key=value, e.g. --set learner.maxLag=0`,
    );
  const path = override.slice(0, cut).split('.');
  const document = parseYaml(override.slice(cut + 1), `--set ${printable(cutText(override))}`);
  const inherited = path.find((key) => INHERITED.has(key));
  if (inherited !== undefined)
    throw new UserError('BAD_CONFIG', `--set ${printable(cutText(override))}: there is no key '${inherited}'`);
  let at = raw;
  for (const key of path.slice(0, -1)) {
    if (!isRecord(at[key])) at[key] = {};
    at = at[key] as Record<string, unknown>;
  }
  at[path.at(-1)!] = toPlainValue(document, `--set ${printable(cutText(override))}`);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
