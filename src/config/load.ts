/**
 * Loads configurations: text and overrides (yaml-text.ts), defaults, the schema, and what keys must hold together
 * (key-rules.ts).
 */

import { AGENT } from '../core/agent-call.ts';
import { describeValue } from '../core/describe-value.ts';
import { UserError } from '../core/errors.ts';
import { append } from '../core/extremes.ts';
import { isRecord } from '../core/record.ts';
import { isMcpId } from '../core/tool-world.ts';
import { countMistakes, explain } from './explain.ts';
import { checkKeyRules } from './key-rules.ts';
import { POLICY_KIND_NAMES, POLICY_KINDS } from './policy-kinds.ts';
import { dropRemovedKeys } from './removed-keys.ts';
import { type RunConfig, runConfigSchema } from './run-config.ts';
import { fillUnionDefaults } from './union-defaults.ts';
import { refuseCredentials } from './url-credentials.ts';
import { fillWorlds } from './worlds.ts';
import { applyOverride, readYaml } from './yaml-text.ts';

/**
 * Reads a configuration from YAML, with overrides, checks it and fills in its defaults.
 * @param text YAML
 * @param source where it came from, for messages
 * @param overrides `key.path=value` strings; values are YAML
 * @throws {UserError} BAD_CONFIG: one line per mistake
 */
export function loadRunConfig(text: string, source: string, overrides: readonly string[] = []): RunConfig {
  const raw = readYaml(text, source) ?? {};
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

/** Mistakes of one configuration that a message lists. */
const MAX_MISTAKES = 20;

/**
 * Checks a configuration and fills in its defaults.
 * @throws {UserError} BAD_CONFIG naming each wrong key, with the nearest right one, or each wrong value
 */
export function checkRunConfig(given: unknown, source: string): RunConfig {
  const { raw: cleaned, mistakes } = dropRemovedKeys(given);
  const raw = fillWorlds(cleaned, source);
  const meant = fillUnionDefaults(runConfigSchema, fillKindDefaults(fillMcpDeadlines(agentAsEnv(raw))));
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
  checkKeyRules(config, source);
  return config;
}

/** Milliseconds that programs may take for a step, and to open: agents run tools of their own, MCP servers are started. */
const PROGRAM_DEADLINES = { stepDeadlineMs: 60_000, openDeadlineMs: 60_000 };

/** Writes `agent` as the world that it makes, with the deadlines that programs need. */
function agentAsEnv(raw: unknown): unknown {
  if (!isRecord(raw) || raw.agent === undefined || raw.env !== undefined) return raw;
  const agent = runConfigSchema.shape.agent.safeParse(raw.agent);
  if (!agent.success) return { ...raw, env: { id: AGENT } }; // the schema names the mistake
  const { agent: given, rollout, ...rest } = raw;
  const options = typeof given === 'string' ? { module: given } : given;
  return { ...rest, env: { id: AGENT, options }, ...withProgramDeadlines(rollout) };
}

/** Part `rollout` with the deadlines that programs need, where it has none of its own. */
function withProgramDeadlines(rollout: unknown): { readonly rollout: unknown } {
  const isFillable = rollout === undefined || isRecord(rollout);
  return { rollout: isFillable ? { ...PROGRAM_DEADLINES, ...rollout } : rollout };
}

/** Fills in the deadlines of an MCP world, alone or among several. */
function fillMcpDeadlines(raw: unknown): unknown {
  if (!isRecord(raw)) return raw;
  const worlds: readonly unknown[] = Array.isArray(raw.worlds) ? raw.worlds : [raw];
  const isMcp = worlds.some((world) => isRecord(world) && isRecord(world.env) && isMcpId(world.env.id));
  return isMcp ? { ...raw, ...withProgramDeadlines(raw.rollout) } : raw;
}

/** Fills in the defaults of a language model's policy: it writes text, freely and at length, within little memory. */
function fillKindDefaults(raw: unknown): unknown {
  if (!isRecord(raw) || !isRecord(raw.policy)) return raw;
  const named = POLICY_KIND_NAMES.find((name) => name === (raw.policy as Record<string, unknown>).kind);
  if (named === undefined || !POLICY_KINDS[named].isLanguageModel) return raw;
  const { learner, env } = raw;
  // An agent may force a tool, or ask for JSON.
  const masked = isRecord(env) && env.id === AGENT;
  // A server's log-probabilities are those of other kernels: what they weigh has to be measured and bounded.
  const { isServed } = POLICY_KINDS[named];
  const fillOffPolicy = (given: unknown) =>
    isServed && (given === undefined || (isRecord(given) && given.type === undefined))
      ? { offPolicy: { type: 'truncated', per: 'token', ...given } }
      : {};
  return {
    ...raw,
    policy: { decoder: 'tokens', masked, maxTokens: 512, ...raw.policy },
    ...(learner === undefined || isRecord(learner)
      ? { learner: { recompute: true, maxTokens: 4096, ...learner, ...fillOffPolicy(learner?.offPolicy) } }
      : {}),
  };
}
