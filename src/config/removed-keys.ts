/**
 * Keys that configurations had once: what to do in place of each. Runs keep the configuration that they were made with,
 * so a removed key at its former default is dropped silently. At any other value it is refused, and nothing means
 * something else.
 */
import { isDeepStrictEqual } from 'node:util';
import { describeValue } from '../core/describe-value.ts';
import { isRecord } from '../core/record.ts';

/** Removed key, or a removed value of a key that is still there. */
interface RemovedKey {
  /** `policy.server.attempts` */
  readonly path: string;
  /** Removed value; absent where the whole key was removed. */
  readonly value?: string;
  /** Former default, under which nothing changes; absent where there was none. */
  readonly was?: unknown;
  /** Advice: what to do now; absent for a constant, which is the former default. */
  readonly now?: string;
}

/** Rows of keys that became constants. */
function constants(section: string, keys: Readonly<Record<string, unknown>>): RemovedKey[] {
  return Object.entries(keys).map(([key, was]) => ({ path: `${section}.${key}`, was }));
}

const REMOVED: readonly RemovedKey[] = [
  { path: 'tasks.split', was: 'train', now: "name a set of the world's tasks with tasks.set, or leave it out" },
  ...constants('tasks.sampling', { smoothing: 0.3 }),
  ...constants('horizon', { smoothing: 0.2, growTruncation: 0.2, growSuccess: 0.7, minGain: 0.02 }),
  ...constants('horizon', { patience: 10, cooldown: 20, collapse: 0.5, recover: 0.8 }),
  ...constants('policy.adapter', { rslora: false }),
  ...constants('policy.server', { attempts: 6, attemptMs: 120_000, retryMs: 500 }),
  { path: 'policy.server.apiKeyEnv', was: 'OPENAI_API_KEY', now: 'set policy.apiKeyEnv' },
  { path: 'policy.chat.stop', was: [], now: "answers end with the model's own end tokens; leave it out" },
  ...constants('policy.model', { tokenShift: 2, focusBit: true, prefixBidirectional: true }),
  { path: 'policy.model.kvHeads', now: 'there are as many as policy.model.heads; leave it out' },
  { path: 'policy.model.intermediateSize', now: 'it follows from policy.model.hiddenSize; leave it out' },
  { path: 'policy.openai.format', was: 'world', now: 'set policy.chat.format' },
  { path: 'policy.openai.system', now: 'set policy.chat.system' },
  { path: 'policy.openai.listActions', was: false, now: 'set policy.chat.listActions' },
  { path: 'policy.openai.apiKeyEnv', was: 'OPENAI_API_KEY', now: 'set policy.apiKeyEnv' },
  { path: 'policy.openai.topP', was: 1, now: 'set it in policy.openai.body={top_p: …}' },
  { path: 'policy.openai.episodeTokens', now: 'bound an answer by policy.openai.maxTokens, an episode by its horizon' },
  ...constants('policy.openai', { attempts: 6, attemptMs: 120_000, turnMs: 600_000 }),
  ...constants('policy.openai', { minRetryMs: 500, maxRetryMs: 30_000 }),
  { path: 'policy.openai.price.prompt', was: 0, now: 'results.json has the tokens that were read; leave it out' },
  {
    path: 'policy.openai.price.completion',
    was: 0,
    now: 'results.json has the tokens that were written; leave it out',
  },
  {
    path: 'rollout.isolation',
    value: 'remote',
    now: "play heavy worlds through their server: 'longplay serve-env' there, rollout.envServer here",
  },
  ...constants('rollout', { maxWaitMs: 2, maxAttempts: 3, maxFailures: 256, maxRestarts: 10 }),
  ...constants('learner.estimator', { whiten: true, stepWeight: 1 }),
  ...constants('learner', { weightDecay: 0, valueClip: 10 }),
  ...constants('learner.selfImitation', { capacity: 256, weight: 1 }),
  ...constants('learner.breaker', { rollbackAfter: 3, shrink: 0.5 }),
  { path: 'trace.keepFiles', was: 4, now: 'traces are bounded by their bytes; set trace.keepBytes' },
  ...constants('watchdog', { stallMs: 300_000, lagMs: 2000 }),
];

/** Sections that hold nothing but removed keys. */
const EMPTIED = ['policy.openai.price', 'learner.breaker', 'watchdog'];

/** Configuration without its removed keys. */
export interface Cleaned {
  /** `given` itself where it has none of them, else a copy. */
  readonly raw: unknown;
  /** A line for each removed key that had another value than its former default. */
  readonly mistakes: readonly string[];
}

/**
 * Removes keys that configurations had once. Pure.
 * @param given a configuration before it is checked: a user's, or that of an older run
 */
export function dropRemovedKeys(given: unknown): Cleaned {
  let raw = given;
  const mistakes: string[] = [];
  for (const { path, value, was, now = `it is always ${describeValue(was)} now; leave it out` } of REMOVED) {
    const keys = path.split('.');
    const found = valueAt(raw, keys);
    if (found === undefined || (value !== undefined && found !== value)) continue;
    if (value !== undefined) mistakes.push(`${path}: '${value}' was removed: ${now}`);
    else if (!isDeepStrictEqual(found, was)) {
      mistakes.push(`${path}: this key was removed: ${now} (got ${describeValue(found)})`);
    }
    raw = omitKey(raw, keys);
  }
  if (raw === given) return { raw, mistakes };
  for (const path of EMPTIED) {
    const section = valueAt(raw, path.split('.'));
    if (isRecord(section) && Object.keys(section).length === 0) raw = omitKey(raw, path.split('.'));
  }
  return { raw, mistakes };
}

/** Value at a path; undefined where there is none. */
function valueAt(raw: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((at, key) => (isRecord(at) && Object.hasOwn(at, key) ? at[key] : undefined), raw);
}

/** Copy of a configuration without the key at a path, which is there. */
function omitKey(raw: unknown, [key, ...rest]: readonly string[]): unknown {
  const { [key!]: inner, ...others } = raw as Record<string, unknown>;
  if (rest.length === 0) return others;
  return { ...(raw as Record<string, unknown>), [key!]: omitKey(inner, rest) };
}
