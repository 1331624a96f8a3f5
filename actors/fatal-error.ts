/** Error that ends a tree of actors for good. */
import { LongplayError } from '../src/core/errors.ts';
import type { ActorSystem } from '../src/runtime/actor.ts';
import type { EnvPool } from './env/env-pool.ts';

/** Error of an actor's crash, naming the actor; an error thrown on purpose stays as it is. */
function crashOf(path: string, error: Error): Error {
  if (error instanceof LongplayError) return error;
  const message = `${path} crashed: ${error.message}`;
  // The code and call of a system's error are kept: they distinguish it from a bug.
  const { name, stack = '' } = error;
  const named = Object.assign(new Error(message, { cause: error }), error, { name });
  named.stack = stack.replace(error.message, () => message);
  return named;
}

/** Fatal error: rejects with the error that ends the run for good. */
export function awaitFatalError(pool: EnvPool, system: ActorSystem): Promise<never> {
  const fatal = new Promise<never>((_, reject) => {
    system.terminated.catch(reject);
    system.inspect$.subscribe((event) => {
      if (event.type !== 'stopped' || !event.final || event.reason.kind !== 'crashed') return;
      reject(crashOf(event.path, event.reason.error));
    });
    pool.observations$.subscribe({ error: reject });
  });
  fatal.catch(() => {}); // reported where it is awaited
  return fatal;
}
