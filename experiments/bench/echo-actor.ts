/** Sends every ball back. */
import type { BehaviorFactory } from '../../src/runtime/actor.ts';

export interface Ball {
  readonly type: 'ball';
  readonly n: number;
}

export default function echo({ to }: { readonly to: string }): BehaviorFactory<Ball> {
  return (ctx) => {
    const other = ctx.resolve<Ball>(to);
    return { handlers: { ball: (ball) => void other.tell(ball) } };
  };
}
