/**
 * The horizon scheduler: takes each update's statistics, advances the schedule (src/schedule/horizon-schedule.ts) and
 * passes the update on to the rollouts with the horizon that new episodes get. Because both travel in one message, no
 * episode can start under the horizon of another update.
 */
import type { BehaviorFactory } from '../../src/runtime/actor.ts';
import { type HorizonState, horizon, next } from '../../src/schedule/horizon-schedule.ts';
import type { RolloutCommand } from '../rollout/protocol.ts';
import type { HorizonCommand } from './protocol.ts';

export interface HorizonInit {
  readonly state: HorizonState;
  readonly rolloutPath: string;
}

export function horizonActor(init: HorizonInit): BehaviorFactory<HorizonCommand> {
  let { state } = init; // outlives an incarnation: the schedule never goes back
  return (ctx) => {
    const rollouts = ctx.resolve<RolloutCommand>(init.rolloutPath);
    return {
      handlers: {
        async updated({ report }) {
          state = next(state, report.consumed);
          await rollouts.tell({ type: 'advance', report, horizon: horizon(state) });
        },
        snapshot({ replyTo }) {
          ctx.reply(replyTo, state);
        },
      },
    };
  };
}
