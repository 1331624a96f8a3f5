/**
 * Actor of the env hosts: takes batches of commands for the pool and sends the rollouts the hosts' answers, one message
 * for all that came in one tick. The rollouts know its path and no pool, so they can live in any thread.
 *
 * For a recorded run it keeps which answers came together; a repeated run gets them in that order (replayed-answers.ts).
 */

import type { BehaviorFactory } from '../../src/runtime/actor.ts';
import type { OrderRecorder, RecordedOrder } from '../../src/storage/order-file.ts';
import type { EnvObserved } from '../rollout/protocol.ts';
import type { EnvPool } from './env-pool.ts';
import type { EnvCommands, EnvEvent } from './protocol.ts';
import { ReplayedAnswers } from './replayed-answers.ts';

export interface EnvHostsOptions {
  /** Pool of hosts. The owner that made it closes it and handles its errors. */
  readonly pool: Pick<EnvPool, 'send' | 'observations$'>;
  /** Path of the actor that gets `observed`. */
  readonly rolloutPath: string;
  /** Recorder of which answers came together. */
  readonly record: OrderRecorder | undefined;
  /** Recorded run to repeat. */
  readonly replay: RecordedOrder | undefined;
}

export function envHostsActor({ pool, rolloutPath, record, replay }: EnvHostsOptions): BehaviorFactory<EnvCommands> {
  return (ctx) => {
    const rollouts = ctx.resolve<EnvObserved>(rolloutPath);
    const send = (events: readonly EnvEvent[]) => void rollouts.tell({ type: 'observed', events });
    const replayed = replay && new ReplayedAnswers(replay.batches, (command) => pool.send(command), send);
    const subscription = pool.observations$.subscribe({
      next: replayed ? (event) => replayed.arrived(event) : collectTick(send, record),
      error: () => {}, // ends the run; the pool's owner handles it
    });
    return {
      handlers: {
        commands({ commands }) {
          for (const command of commands) (replayed ?? pool).send(command);
        },
      },
      stopped: () => subscription.unsubscribe(),
    };
  };
}

/** Collects the hosts' answers of one tick. */
function collectTick(send: (events: readonly EnvEvent[]) => void, record: OrderRecorder | undefined) {
  let batch: EnvEvent[] = [];
  return (event: EnvEvent): void => {
    if (batch.push(event) > 1) return;
    queueMicrotask(() => {
      const events = batch;
      batch = [];
      record?.recordAnswered(
        events.map((one) => (one.type === 'failed' ? { episode: one.episode, failure: one.failure } : one.episode)),
      );
      send(events);
    });
  };
}
