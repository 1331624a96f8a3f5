/** Env hosts of one machine for a run on another, over a NATS server: both ends of it. */
import { hostname } from 'node:os';
import { serveEnvHosts } from '../../actors/tree.ts';
import type { Credentials } from '../cluster/credentials.ts';
import type { Switchboard } from '../cluster/switchboard.ts';
import { UserError } from '../core/errors.ts';
import { worldUrl } from './find-world.ts';

/** Server at which a run finds its env hosts (`rollout.isolation: remote`). */
export interface EnvHosts {
  /** NATS server, `nats://host:port`. */
  readonly url: string;
  /** Key and certificate; without them the server is one of this machine's own. */
  readonly credentials?: Credentials | undefined;
}

/** Options of a machine that has env hosts. */
export interface HostEnvsOptions extends EnvHosts {
  /** Name of the run: its folder's. */
  readonly run: string;
  /** Hosts at once, each a process, ≥ 1. */
  readonly places: number;
  /** Path of the world's module on this machine, where the run has a user's own. */
  readonly env?: string | undefined;
  readonly onNotice?: ((message: string) => void) | undefined;
  /** Ends it; its episodes are brought back on other machines. */
  readonly interrupt: AbortSignal;
}

/** Way of a run to its env hosts. */
export interface RemoteHostsAt {
  readonly connect: () => Promise<Switchboard>;
  /** Command that serves hosts, for a person. */
  readonly command: string;
}

/** @throws {UserError} BAD_ARGUMENT, once it connects, for an address or credentials that cannot be */
export function remoteHostsAt({ url, credentials }: EnvHosts, run: string): RemoteHostsAt {
  const role = credentials?.role;
  if (role !== undefined && role !== 'learner' && role !== 'worker') {
    throw new UserError('BAD_ARGUMENT', `a run uses env hosts with learner.creds or worker.creds, not ${role}.creds`);
  }
  return {
    connect: async () => (await import('../cluster/nats.ts')).connectSwitchboard({ url, run, credentials }),
    command: `longplay worker ${url} --run ${run} --envs <n>`,
  };
}

/**
 * Has env hosts for a run until `interrupt` comes. The run may start later, end, and start again.
 * @throws {UserError} BAD_ARGUMENT for an address or credentials that cannot be; UNKNOWN_ENV for a module that is not there
 */
export async function hostEnvs({
  url,
  run,
  credentials,
  places,
  env,
  interrupt,
  ...of
}: HostEnvsOptions): Promise<void> {
  const { onNotice = () => {} } = of;
  const role = credentials?.role;
  if (role !== undefined && role !== 'envs') {
    throw new UserError(
      'BAD_ARGUMENT',
      `a machine with env hosts has envs.creds of longplay cluster init, not ${role}.creds`,
    );
  }
  if (env !== undefined) worldUrl(env);
  const { connectSwitchboard } = await import('../cluster/nats.ts');
  const switchboard = await connectSwitchboard({ url, run, credentials });
  const name = `${hostname().replace(/[^A-Za-z0-9_-]/g, '-')}-${process.pid}`;
  const server = await serveEnvHosts({ switchboard, name, places, env, onNotice });
  try {
    onNotice(`${name} has up to ${places} env hosts for run '${run}'`);
    const interrupted = new Promise<void>((resolve) => {
      interrupt.addEventListener('abort', () => resolve(), { once: true });
      if (interrupt.aborted) resolve();
    });
    await Promise.race([interrupted, switchboard.refused.then((error) => Promise.reject(error))]);
  } finally {
    await server.close();
    await switchboard.close();
  }
}
