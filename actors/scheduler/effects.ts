/** Messages of the scheduler to the other actors. */
import type { Group } from '../../src/core/trajectory.ts';
import type { Context, Message } from '../../src/runtime/actor.ts';
import type { GroupFinished } from '../learner/protocol.ts';
import type { RecorderCommand } from '../recorder/protocol.ts';
import type { RolloutCommand } from '../rollout/protocol.ts';

/** Paths of the other actors; `learner` is undefined in a run that does not learn. */
export interface SchedulerPaths {
  readonly rollout: string;
  readonly learner: string | undefined;
  readonly recorder: string;
}

export class Effects {
  /** Number of checkpoints that were barriers: the learner drops groups handed over before the last one. */
  barriers = 0;
  /** Number of captures asked of the rollouts: only the last is awaited. */
  captures = 0;
  readonly #resolve: Context<Message>['resolve'];
  readonly #paths: SchedulerPaths;

  constructor(resolve: Context<Message>['resolve'], paths: SchedulerPaths) {
    this.#resolve = resolve;
    this.#paths = paths;
  }

  handOver(groups: readonly { readonly group: Group; readonly progress: number }[]): void {
    const learner = this.#resolve<GroupFinished>(this.#paths.learner!);
    for (const { group, progress } of groups) {
      void learner.tell({ type: 'group', group, progress, barrier: this.barriers });
    }
  }

  capture(atRest: boolean): void {
    this.sendToRollouts({ type: 'capture', id: ++this.captures, atRest });
  }

  sendToRollouts(command: RolloutCommand): void {
    void this.#resolve<RolloutCommand>(this.#paths.rollout).tell(command);
  }

  sendToRecorder(command: RecorderCommand): void {
    void this.#resolve<RecorderCommand>(this.#paths.recorder).tell(command);
  }
}
