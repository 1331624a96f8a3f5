/**
 * A world whose actions are put together in stages: `paint` or `press`, then one of three things. Painting everything
 * solves it. `bug` plants one mistake; `host` counts what was started and released.
 */
import { type Env, type EnvOptions, mid, terminated } from '../../src/core/env.ts';
import { taskTable } from '../../src/core/task.ts';

const THINGS = ['door', 'wall', 'roof'];
const VERBS = ['paint', 'press'];

/** The `start` value of a host: a file-free resource whose use can be read off in its observations. */
export interface Paint {
  readonly where: string;
  readonly disposed: boolean;
  dispose(): Promise<void>;
}

/** Started and not yet released, in this thread. */
export const live = new Set<Paint>();

export async function start(options: EnvOptions, { where }: { readonly where: string }): Promise<Paint> {
  if (options.start === 'throws') throw new Error('no paint left');
  await Promise.resolve();
  const paint = {
    where,
    disposed: false,
    async dispose() {
      if (paint.disposed) throw new Error('released twice');
      paint.disposed = true;
      live.delete(paint);
    },
  };
  live.add(paint);
  return paint;
}

export function createEnv(options: EnvOptions = {}, resources?: Paint): Env {
  const tasks = taskTable(4, [[3, 3]], 'all');
  const { bug, replay } = options;
  return {
    id: 'staged',
    description: 'Paint everything.',
    tasks,
    rewardRange: [0, 1],
    maxObservationChars: 400,
    ...(replay === 'never' ? { replay } : {}),
    open({ index }) {
      tasks.label(index);
      if (resources?.disposed) throw new Error('opened after the resources were released');
      const painted = new Set<string>();
      let verb: string | undefined;
      let stages = 0;
      const state = () => `painted: ${[...painted].join(' ') || 'nothing'}, by ${resources?.where ?? 'nobody'}`;
      return {
        first: { kind: 'first', observation: state() },
        step(action) {
          if (action === 'spin') for (;;);
          if (VERBS.includes(action) && (stages < 4 || bug === 'endless')) {
            stages++;
            verb = action;
            if (bug === 'moves') painted.add('wall');
            return { ...mid(`${verb} what?`, bug === 'pays' ? 1 : 0), partial: true };
          }
          stages = 0;
          const whole = verb !== undefined && THINGS.includes(action) ? `${verb} ${action}` : action;
          verb = undefined;
          const [how, thing = ''] = whole.split(' ');
          if (how === 'paint' && THINGS.includes(thing)) painted.add(thing);
          return painted.size === THINGS.length ? terminated(state(), 1) : mid(state());
        },
        actions: () =>
          painted.size === 3 ? [] : verb === undefined ? [...VERBS, 'wait'] : bug === 'empty' ? [] : THINGS,
        close() {},
      };
    },
  };
}
