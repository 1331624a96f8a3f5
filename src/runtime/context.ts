/** Context of an incarnation: everything it may do, as one object. */
import { Rng, seedFrom } from '../core/rng.ts';
import type { ActorRef, ActorSystem, Context, Message, ModuleSpec, SpawnOptions } from './actor.ts';
import type { ActorCell } from './cell.ts';
import { recordError } from './envelope.ts';
import type { LocalExecutor } from './local.ts';
import type { Supervisor } from './supervisor.ts';
import type { System } from './system.ts';

export function actorContext<M extends Message>(
  system: System,
  cell: ActorCell,
  incarnation: number,
  executor: LocalExecutor<M>,
): Context<M> {
  const { path } = cell;
  const { clock } = system;
  const own = (message: M) => ({ message, ask: undefined, transfer: undefined, at: clock.now(), self: true }) as const;
  const toSelf = (message: M) => {
    if (!executor.dead) void cell.receive(own(message), true);
  };
  const settled = (key: string) => cell.owed.delete(key);
  return {
    self: { path, tell: (message) => cell.receive(own(message)) },
    path,
    incarnation,
    clock,
    rng: Rng.fromSeed(seedFrom(system.seed, path, incarnation)),
    system: scoped(system, cell, executor as LocalExecutor<never>),
    after(ms, message) {
      if (executor.dead) return () => {};
      const cancel = clock.after(ms, () => {
        executor.cleanups.delete(cancel);
        toSelf(message);
      });
      executor.cleanups.add(cancel);
      return () => {
        executor.cleanups.delete(cancel);
        cancel();
      };
    },
    sleep: (ms) => system.waiting(new Promise((resolve) => void clock.after(ms, resolve))),
    reply(to, value, transfer) {
      settled(`${to.path}#${to.id}`);
      system.router.answer(to, { ok: true, value }, transfer);
    },
    replyError(to, error) {
      settled(`${to.path}#${to.id}`);
      system.router.answer(to, { ok: false, error: recordError(error) });
    },
    ask: (ref, make, options) => system.askFrom(path, ref, make, options),
    resolve: (other) => system.resolve(other),
    watch(ref, make) {
      const end = system.watch(ref.path, (down) => toSelf(make(down)));
      executor.cleanups.add(end);
      return () => {
        executor.cleanups.delete(end);
        end();
      };
    },
    stop: () => executor.requestStop(),
    outside: (work) => system.outside(work),
  };
}

/** Scopes the system to an actor: what it spawns becomes its child. */
function scoped(system: System, cell: ActorCell, executor: LocalExecutor<never>): ActorSystem {
  let children: Supervisor | undefined;
  const childOptions = (options: SpawnOptions) => {
    children ??= system.childSupervisor(cell, executor);
    return { supervisor: children, ...options };
  };
  return {
    mode: system.mode,
    clock: system.clock,
    inspect$: system.inspect$,
    counts: system.counts,
    terminated: system.terminated,
    spawn: (name, factory, options = {}) => system.spawnAt(`${cell.path}/${name}`, factory, childOptions(options)),
    spawnModule: <N extends Message, I>(name: string, module: ModuleSpec<I>, options: SpawnOptions = {}) =>
      system.spawnModuleAt<N>(`${cell.path}/${name}`, module, childOptions(options)) as Promise<ActorRef<N>>,
    supervisor: (name, options) => system.supervisor(`${cell.path.slice(1)}/${name}`, options),
    resolve: (path) => system.resolve(path),
    ask: (ref, make, options) => system.askFrom(cell.path, ref, make, options),
    stopActor: (ref) => system.stopActor(ref),
    stop: () => system.stop(),
    stats: () => system.stats(),
    heartbeat: () => system.heartbeat(),
    breakOff: (path, message) => system.breakOff(path, message),
    run: (until) => system.run(until),
    outside: (work) => system.outside(work),
    reorder: (label) => system.reorder(label),
  };
}
