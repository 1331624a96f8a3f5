/** World whose server may be down: `down` holds the options' `server` of those that answer nothing. */
import { type Env, terminated } from '../../src/core/env.ts';
import { RemoteError } from '../../src/http/retry.ts';

/** Servers that are down. On the process, since hosts load the module by a URL of their own. */
export const down: Set<string> = ((globalThis as { longplayDown?: Set<string> }).longplayDown ??= new Set());

/** Makes a world of one turn whose server is named in its options. */
export function createEnv({ server = '' }: { readonly server?: string } = {}): Env {
  const call = () => {
    if (down.has(server)) throw new RemoteError('network', `no connection to ${server}`);
  };
  return {
    id: 'outage',
    description: 'A world whose server may be down.',
    tasks: { count: 2, labels: ['all'], label: () => 'all', split: () => [0, 1], evalSeed: 0 },
    rewardRange: [0, 1],
    maxObservationChars: 10,
    open() {
      call();
      return {
        first: { kind: 'first', observation: 'pull' },
        step(action) {
          call();
          return terminated('over', action === 'left' ? 1 : 0);
        },
        actions: () => ['left', 'right'],
        close() {},
      };
    },
  };
}
