/** Context of an incarnation: everything it may do, as one object. */
import { Rng, seedFrom } from '../core/rng.ts';
import type { Context, Message, ScopedSystem } from './actor.ts';
import type { ActorCell } from './cell.ts';
import { recordError } from './envelope.ts';
import type { SystemPort } from './port.ts';

/** One life of an actor in this thread, as its context sees it. */
export interface Life {
  readonly dead: boolean;
  /** Run when it ends: timers, watches. */
  readonly cleanups: Set<() => void>;
  /** Ends it (reason `normal`) after the running handler. */
  requestStop(): void;
}

/** @param children the system as this life sees it: what it spawns there ends with it */
export function actorContext<M extends Message>(
  port: SystemPort,
  cell: ActorCell,
  incarnation: number,
  life: Life,
  children: ScopedSystem,
): Context<M> {
  const { path } = cell;
  const { clock, dispatcher } = port;
  const own = (message: M) => ({ message, ask: undefined, transfer: undefined, at: clock.now(), self: true }) as const;
  const toSelf = (message: M) => {
    if (!life.dead) void cell.receive(own(message), true);
  };
  return {
    self: { path, tell: (message) => cell.receive(own(message)) },
    path,
    incarnation,
    clock,
    rng: Rng.fromSeed(seedFrom(port.seed, path, incarnation)),
    system: children,
    sendAfter(ms, message) {
      if (life.dead) return () => {};
      const cancel = clock.setTimer(ms, () => {
        life.cleanups.delete(cancel);
        toSelf(message);
      });
      life.cleanups.add(cancel);
      return () => {
        life.cleanups.delete(cancel);
        cancel();
      };
    },
    sleep: (ms) => dispatcher.wait(new Promise((resolve) => void clock.setTimer(ms, resolve))),
    reply(to, value, transfer) {
      cell.pendingAsks.settle(to);
      port.answer(to, { ok: true, value }, transfer);
    },
    replyError(to, error) {
      cell.pendingAsks.settle(to);
      port.answer(to, { ok: false, error: recordError(error) });
    },
    ask: (ref, make, options) => port.ask(path, ref, make, options),
    resolve: (other) => port.resolve(other),
    watch(ref, make) {
      const end = port.watch(ref.path, (down) => toSelf(make(down)));
      life.cleanups.add(end);
      return () => {
        life.cleanups.delete(end);
        end();
      };
    },
    stop: () => life.requestStop(),
    outside: (work) => dispatcher.outside(work),
  };
}
