/**
 * Published episodes of BabyAI (AgentTraj-L). An older server wrote them: no list of actions, and the goal in the first
 * observation only. They are followed under the original's rules; a configured world with the corrected ones plays
 * beside, each reply as the action that takes the same low-level steps there (the original numbers things otherwise).
 */
import type { PublishedEpisode, PublishedEpisodes } from '../../src/core/agentgym.ts';
import { type EnvOptions, type EnvStep, mid, type Session } from '../../src/core/env.ts';
import { CorrectedSession, fidelityOf, OriginalSession } from './env.ts';
import { requireIndex } from './tasks.ts';

/**
 * Plays them under the configured rules.
 * @param options checked ones of the world
 */
export function openPublished(options: EnvOptions): PublishedEpisodes {
  const corrected = fidelityOf(options) === 'corrected';
  return {
    options: {},
    open(index, opening) {
      if (index === undefined) throw new Error('its name holds no task');
      requireIndex(index);
      const original = new OriginalSession(index);
      const goal = goalOf(original.first.observation);
      if (goal !== goalOf(opening)) throw new Error(`task ${index} has the goal '${goal}', not '${goalOf(opening)}'`);
      const agrees = (_: string, text: string) => scene(original.text.payload.observation) === scene(text);
      const action = (reply: string) => reply.toLowerCase().trim();
      return { index, agrees, ...(corrected ? openBoth(original, index) : { session: original, action }) };
    },
  };
}

/** The corrected episode beside the original one. A reply that the original refused is left out. */
function openBoth(original: OriginalSession, index: number): Pick<PublishedEpisode, 'session' | 'action'> {
  const ours = new CorrectedSession(index);
  const action = (reply: string) => {
    const steps = original.text.expand(reply).join();
    if (steps === '') return undefined;
    return ours.actions().find((one) => ours.text.expand(one).join() === steps) ?? reply;
  };
  const session: Session = {
    first: ours.first,
    actions: () => ours.actions(),
    step(reply): EnvStep {
      const named = action(reply);
      original.step(reply);
      if (named === undefined) return mid(ours.text.answer.observation);
      const step = ours.step(named);
      const [a, b] = [ours.text.world, original.text.world];
      const together = a.agentX === b.agentX && a.agentY === b.agentY && a.agentDir === b.agentDir;
      if (!together && step.kind === 'mid') throw new Error(`'${reply}' leads elsewhere under the corrected rules`);
      return step;
    },
    close() {},
  };
  return { session, action };
}

function goalOf(observation: string): string {
  return /^Your goal: (.*)$/m.exec(observation)?.[1] ?? '';
}

/** An observation without goal and list of actions. */
function scene(observation: string): string {
  return observation.replace(/^Your goal: .*\n/, '').replace(/\nAvailable actions: .*$/s, '');
}
