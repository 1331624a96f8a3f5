/** Published episodes as AgentTraj-L has them, written by a scripted solver: instruction, acknowledgement, ReAct replies. */
import type { Env, Oracle } from '../../src/core/env.ts';

export interface PublishedMessage {
  readonly from: 'human' | 'gpt';
  readonly loss: boolean | null;
  readonly value: string;
}

export interface PublishedItem {
  readonly item_id: string;
  readonly conversations: readonly PublishedMessage[];
}

const human = (value: string): PublishedMessage => ({ from: 'human', loss: null, value });
const gpt = (value: string, loss: boolean): PublishedMessage => ({ from: 'gpt', loss, value });

/** `Thought: … Action: …` */
export function reply(action: string): PublishedMessage {
  return gpt(`Thought:\nThis should help.\n\nAction:\n${action}`, true);
}

/**
 * The solver's episode of a task; it ends with the last action, as published ones do.
 * @param publish observation as published
 * @param before actions tried first
 */
export async function publishedItem(
  env: Env,
  oracle: Oracle,
  index: number,
  publish: (observation: string, turn: number) => string,
  before: readonly string[] = [],
): Promise<PublishedItem> {
  const task = { env: env.id, index, seed: env.tasks.evalSeed };
  const session = await env.open(task);
  const next = oracle(task);
  const messages = [human('You are an agent. Answer with Thought and Action.'), gpt("OK. I'll follow.", false)];
  let observation = session.first.observation;
  let turn = 0;
  const play = async (action: string) => {
    messages.push(human(publish(observation, turn++)), reply(action));
    const step = await session.step(action);
    observation = step.observation;
    return step;
  };
  for (const action of before) await play(action);
  let action = next(session.first);
  while (action !== undefined) {
    const step = await play(action);
    action = step.kind === 'terminated' ? undefined : next(step);
  }
  return { item_id: `${env.id}_${index}`, conversations: messages };
}
