/**
 * The scripted solver: knows each task's plan (elements by role and name) and finds them in what an observation shows,
 * scrolling where they are out of view. Plays through the same texts as any policy.
 */
import type { Oracle } from '../../src/core/env.ts';
import { reprText } from '../../src/core/python-text.ts';
import { answerText } from './answers.ts';
import { frontPage } from './sites/site.ts';
import { drawTask } from './tasks.ts';
import type { Step } from './templates/template.ts';

/** Turns that may be spent on scrolling for one step. */
const MAX_SCROLLS = 8;

export const oracle: Oracle = (task) => {
  const { instance } = drawTask(task);
  const answer = instance.answer ? answerText(instance.answer) : 'done';
  return player([...instance.plan, { do: 'stop', answer }]);
};

/** Plays a plan: called with each time step, answers the next action. */
export function player(plan: readonly Step[]): ReturnType<Oracle> {
  let at = 0;
  let opened = false;
  let scrolls = 0;
  return (step) => {
    const next = plan[at];
    if (!next || step.kind === 'terminated') return undefined;
    const advance = (action: string) => {
      at++;
      scrolls = 0;
      opened = false;
      return action;
    };
    if (next.do === 'stop') return advance(`stop [${next.answer}]`);
    if (next.do === 'goto') return advance(`goto [${frontPage(next.site)}]`);
    const wanted = next.do === 'choose' && opened ? { role: 'option', name: next.option, nth: 0 } : target(next);
    const id = find(step.observation, wanted.role, wanted.name, wanted.nth);
    if (id === undefined) {
      scrolls++;
      // Down to the end of the page, then from its top: what was left above is found on the way.
      return scrolls <= MAX_SCROLLS ? `scroll [${scrolls <= MAX_SCROLLS / 2 ? 'down' : 'up'}]` : undefined;
    }
    if (next.do === 'type') return advance(`type [${id}] [${next.text}] [${next.enter ? 1 : 0}]`);
    if (next.do === 'choose' && !opened) {
      opened = true;
      return `click [${id}]`;
    }
    return advance(`click [${id}]`);
  };
}

function target(step: Extract<Step, { do: 'click' | 'type' | 'choose' }>): { role: string; name: string; nth: number } {
  if (step.do === 'click') return step;
  return { role: step.do === 'type' ? '(?:textbox|searchbox)' : 'combobox', name: step.label, nth: 0 };
}

/** Number of the n-th element in view with a role and name. */
function find(observation: string, role: string, name: string, nth: number): string | undefined {
  const quoted = reprText(name).replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  const lines = observation.matchAll(new RegExp(`^\\t*\\[(\\d+)\\] ${role} ${quoted}(?: |$)`, 'gm'));
  return Array.from(lines, ([, id]) => id)[nth];
}
