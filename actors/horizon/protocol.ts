/** Messages of the horizon scheduler. */
import type { ReplyTo } from '../../src/runtime/actor.ts';
import type { HorizonState } from '../../src/schedule/horizon-schedule.ts';
import type { UpdateReport } from '../learner/protocol.ts';

export type HorizonCommand = Updated | HorizonSnapshot;

/** The learner made an update. */
export interface Updated {
  readonly type: 'updated';
  readonly report: UpdateReport;
}

export interface HorizonSnapshot {
  readonly type: 'snapshot';
  readonly replyTo: ReplyTo<HorizonState>;
}
