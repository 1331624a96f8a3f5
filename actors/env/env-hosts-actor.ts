/**
 * The address of the env hosts: takes commands in batches, gives them to the pool, and tells the rollouts what the hosts
 * emitted, together what came in one tick. So the rollouts know a path and no pool, and can live in any thread.
 *
 * For a recorded run it keeps which answers came together; a repeated run gets them in that order (replayed-answers.ts).
 */
import type { RecordedOrder, OrderRecorder } from '../../src/run/order-file.ts';
import type { BehaviorFactory } from '../../src/runtime/actor.ts';
import type { EnvObserved } from '../rollout/protocol.ts';
import type { EnvPool } from './env-pool.ts';
import type { EnvCommands, EnvEvent } from './protocol.ts';
import { ReplayedAnswers } from './replayed-answers.ts';

export interface EnvHostsOptions {
  /** Not closed with the actor: whoever made it does that. Its errors are his too. */
  readonly pool: Pick<EnvPool, 'tell' | 'observations$'>;
  /** The actor that gets `observed`. */
  readonly rolloutPath: string;
  /** Keeps which answers came together. */
  readonly record: OrderRecorder | undefined;
  /** Repeats a recorded run. */
  readonly replay: RecordedOrder | undefined;
}

export function envHostsActor({ pool, rolloutPath, record, replay }: EnvHostsOptions): BehaviorFactory<EnvCommands> {
  return (ctx) => {
    const rollouts = ctx.resolve<EnvObserved>(rolloutPath);
    const tell = (events: readonly EnvEvent[]) => void rollouts.tell({ type: 'observed', events });
    const replayed = replay && new ReplayedAnswers(replay.batches, (command) => pool.tell(command), tell);
    const subscription = pool.observations$.subscribe({
      next: replayed ? (event) => replayed.arrived(event) : together(tell, record),
      error: () => {}, // ends the run; told to whoever made the pool
    });
    return {
      handlers: {
        commands({ commands }) {
          for (const command of commands) (replayed ?? pool).tell(command);
        },
      },
      stopped: () => subscription.unsubscribe(),
    };
  };
}

/** Collects the hosts' answers of one tick. */
function together(tell: (events: readonly EnvEvent[]) => void, record: OrderRecorder | undefined) {
  let batch: EnvEvent[] = [];
  return (event: EnvEvent): void => {
    if (batch.push(event) > 1) return;
    queueMicrotask(() => {
      const events = batch;
      batch = [];
      record?.answered(
        events.map((one) => (one.type === 'failed' ? { episode: one.episode, failure: one.failure } : one.episode)),
      );
      tell(events);
    });
  };
}
