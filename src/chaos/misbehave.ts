/**
 * Misbehaviour: the faults themselves, as a host performs them in place of (or around) a step of the user's
 * environment.
 */
import type { EnvStep, MaybePromise } from '../core/env.ts';
import type { StepFault } from './injector.ts';

const never = new Promise<never>(() => {});

/**
 * Takes a step that is struck. `drop` and `duplicate` are the messages' fault and done by the host itself.
 * @param slowMs longest delay of `slow`
 */
export function misbehave(
  { kind, draw }: StepFault,
  step: () => MaybePromise<EnvStep>,
  slowMs: number,
): MaybePromise<EnvStep> {
  switch (kind) {
    case 'throw':
      throw new Error('injected fault: throw');
    case 'hang':
      if (draw < 0.5) return never;
      for (;;);
    case 'oom':
      return exhaust();
    case 'kill':
      return process.exit(3);
    case 'slow':
      return new Promise<EnvStep>((resolve, reject) => {
        setTimeout(() => Promise.resolve().then(step).then(resolve, reject), slowMs * draw);
      });
    case 'nan': {
      const poison = (answer: EnvStep): EnvStep => ({ ...answer, reward: Number.NaN });
      const answer = step();
      return answer instanceof Promise ? answer.then(poison) : poison(answer as EnvStep);
    }
    default:
      return step();
  }
}

function exhaust(): never {
  const hoard: unknown[] = [];
  for (let i = 0; ; i++) hoard.push(new Array(10_000).fill(i));
}
