/**
 * Reward of an episode: the product of the components that the task's basis names, each 0 or 1. It is 0, and nothing is looked at,
 * unless the episode ended by a stop of the user or the agent.
 *
 * The state that counts is the live one; the original plays the calls again on a fresh environment, which gives the same state.
 * NL_ASSERTION needs a judge. Without one it is left out of the product, and `notJudged` counts its statements. It is never guessed:
 * where a judge fails, the episode does.
 */

import { isSameState } from './digest.ts';
import { type Domain, openEnvironment } from './domain.ts';
import type { Environment } from './environment.ts';
import type { Message } from './orchestrator.ts';
import type { Arguments } from './python/calls.ts';
import { PyError } from './python/errors.ts';
import { dumps } from './python/format.ts';
import { isEqual } from './python/operations.ts';
import type { PyValue } from './python/values.ts';
import type { Criteria, GoldAction, RewardType, TauTask } from './tasks.ts';

/** Reward and what it is made of. */
export interface RewardInfo {
  /** 0 or 1; without NL_ASSERTION where nobody has judged it. */
  readonly reward: number;
  /** Components of the basis that were scored. */
  readonly breakdown: Readonly<Partial<Record<RewardType, number>>>;
  /** True where both databases are as after the gold actions; null where nothing was compared. */
  readonly isTarget: boolean | null;
  readonly assertions: readonly boolean[];
  /** For each gold action: true where some call matches it. */
  readonly actions: readonly boolean[];
  /** For each text that must be said: true where it was. */
  readonly communicated: readonly boolean[];
  /** Statements of NL_ASSERTION in the basis that nobody has judged. */
  readonly notJudged: number;
}

const NOTHING: RewardInfo = {
  reward: 0,
  breakdown: {},
  isTarget: null,
  assertions: [],
  actions: [],
  communicated: [],
  notJudged: 0,
};

/** Reward of an episode that ended in another way than by a stop. */
export function noReward(): RewardInfo {
  return NOTHING;
}

/**
 * Rewards an episode that ended by a stop.
 * @param environment of the episode; its assertions are run on it
 * @param gold environment after the gold actions, see `playGold`
 * @param verdicts of a judge on the statements; absent where nobody has judged them
 * @throws {PyError} where an assertion cannot be run
 */
export function rewardOf(
  { criteria }: TauTask,
  messages: readonly Message[],
  environment: Environment,
  gold: Environment,
  verdicts?: readonly boolean[],
): RewardInfo {
  if (!criteria) return { ...NOTHING, reward: 1 };
  const { basis } = criteria;
  const breakdown: Partial<Record<RewardType, number>> = {};
  const hasState = criteria.actions !== null || criteria.assertions !== null;
  const isTarget = hasState ? isAtTarget(environment, gold) : null;
  const assertions = hasState ? checkAssertions(criteria, environment) : [];
  const actions = checkActions(criteria.actions ?? [], messages);
  const communicated = checkCommunicated(criteria.communicate, messages);
  if (hasState && basis.includes('DB')) breakdown.DB = Number(isTarget);
  if (hasState && basis.includes('ENV_ASSERTION')) breakdown.ENV_ASSERTION = Number(assertions.every(Boolean));
  if (basis.includes('ACTION')) breakdown.ACTION = Number(actions.every(Boolean));
  if (basis.includes('COMMUNICATE')) breakdown.COMMUNICATE = Number(communicated.every(Boolean));
  const isJudged = basis.includes('NL_ASSERTION');
  const isOpen = isJudged && criteria.statements.length > 0 && !verdicts;
  // Without statements there is nothing to judge.
  if (isJudged && !isOpen) breakdown.NL_ASSERTION = Number(verdicts?.every(Boolean) ?? true);
  return {
    reward: Object.values(breakdown).reduce((product, one) => product * one, 1),
    breakdown,
    isTarget,
    assertions,
    actions,
    communicated,
    notJudged: isOpen ? criteria.statements.length : 0,
  };
}

/**
 * Environment after the gold actions of a task: never solo, the two sides not brought into line between the actions, and an action
 * that fails passed over, as the original has it.
 */
export function playGold(domain: Domain, task: TauTask): Environment {
  const environment = openEnvironment(domain, task, false);
  environment.replay(task.history);
  for (const { side, name, args } of task.criteria?.actions ?? []) {
    try {
      environment.make(side, name, args);
    } catch (thrown) {
      if (!(thrown instanceof PyError)) throw thrown;
    }
  }
  return environment;
}

/** True where both databases are as in the gold environment. */
export function isAtTarget(environment: Environment, gold: Environment): boolean {
  return (['assistant', 'user'] as const).every((side) => {
    const [ours, target] = [environment.databaseOf(side), gold.databaseOf(side)];
    return ours === undefined || target === undefined ? ours === target : isSameState(ours, target);
  });
}

/** For each assertion: true where it holds. @throws {PyError} where one cannot be run */
export function checkAssertions({ assertions }: Criteria, environment: Environment): boolean[] {
  return (assertions ?? []).map(({ side, name, args, wanted }) => environment.run(side, name, args) === wanted);
}

/** For each gold action: true where a call of anyone matches it, in any order. */
export function checkActions(actions: readonly GoldAction[], messages: readonly Message[]): boolean[] {
  const calls = messages.flatMap(({ calls }) => calls);
  return actions.map((action) => calls.some(({ name, args }) => name === action.name && isMatch(action, args)));
}

/** Compares arguments on the names that the action lists, or else on those of the call. */
function isMatch({ args: wanted, compareArgs }: GoldAction, given: Arguments): boolean {
  const names = compareArgs ?? [...given.keys()];
  const pick = (args: Arguments) => new Map([...args].filter(([name]) => names.includes(name)));
  return isEqual(pick(given), pick(wanted));
}

/** For each text: true where a message of the agent has it, commas of the message and case aside. */
export function checkCommunicated(texts: readonly string[], messages: readonly Message[]): boolean[] {
  const said = messages
    .filter(({ role, calls }) => role === 'assistant' && calls.length === 0)
    .map(({ content }) => content.toLowerCase().replaceAll(',', ''));
  return texts.map((text) => said.some((message) => message.includes(text.toLowerCase())));
}

/** Statements that a judge is to look at; none where they are no part of the reward. */
export function statementsOf({ criteria }: TauTask): readonly string[] {
  return criteria?.basis.includes('NL_ASSERTION') ? criteria.statements : [];
}

/** Conversation as a judge reads it: a line `role: content` for each message, and one for each call. */
export function printForJudge(messages: readonly Message[]): string {
  const lines = messages.flatMap(({ role, content, calls }) => {
    const made = calls.map(({ name, args }) => `${role} calls ${name}: ${dumps(args as Map<string, PyValue>)}`);
    return content === '' ? made : [`${role}: ${content}`, ...made];
  });
  return lines.join('\n');
}
