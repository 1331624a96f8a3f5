/** Worker of a run that is trained elsewhere: plays its tickets until the run ends. */
import { hostname } from 'node:os';
import { startWorker } from '../../actors/tree.ts';
import { type Broker, ignoreUnavailable, LEASE_MS } from '../cluster/broker.ts';
import type { Credentials } from '../cluster/credentials.ts';
import { type Announcement, decodeAnnouncement } from '../cluster/identity.ts';
import { checkRunConfig } from '../config/load.ts';
import { absoluteModel } from '../config/paths.ts';
import { policyKindOf } from '../config/policy-kinds.ts';
import type { RunConfig } from '../config/run-config.ts';
import { requireOneWorld } from '../config/worlds.ts';
import { UserError } from '../core/errors.ts';
import { isModulePath, namesPrograms, resolveEnvId } from '../world/env-id.ts';
import { worldUrl } from './find-world.ts';

/** Options of a worker. */
export interface WorkOptions {
  /** NATS server, `nats://host:port`. */
  readonly url: string;
  /** Name of the run: its folder's. */
  readonly run: string;
  /** Key and certificate. Without them the server must be on this machine. */
  readonly credentials?: Credentials | undefined;
  /** Groups at once, ≥ 1. Default: `rollout.concurrentGroups` of the run. */
  readonly slots?: number | undefined;
  /** Path of the world's module on this machine, where the run has a user's own. */
  readonly env?: string | undefined;
  /** Model's folder on this machine, where the run's policy is behind a server; default: the run's own path. Weights need not be there. */
  readonly model?: string | undefined;
  readonly onNotice?: ((message: string) => void) | undefined;
  /** Stops it early; the tickets that it holds go to others. */
  readonly interrupt?: AbortSignal | undefined;
}

/**
 * Plays for a run until it ends or `interrupt` aborts.
 * @throws {UserError} UNKNOWN_RUN for a run that is not announced; BAD_CONFIG for one that this machine cannot play
 */
export async function work(options: WorkOptions): Promise<void> {
  const { url, run, credentials, interrupt, onNotice = () => {} } = options;
  const { connectNats } = await import('../cluster/nats/connect.ts');
  const broker = await connectNats({ url, run, credentials, leaseMs: LEASE_MS });
  try {
    const announcement = await readAnnouncement(broker, options);
    const config = localConfigOf(announcement, options);
    const { slots = config.rollout.concurrentGroups } = options;
    const name = `${hostname().replace(/[^A-Za-z0-9_-]/g, '-')}-${process.pid}`;
    const envModule = worldUrl(config.env.id, config.env.options);
    const worker = await startWorker({
      broker,
      run,
      name,
      announcement,
      config,
      envModule,
      slots,
      leaseMs: LEASE_MS,
      onNotice,
    });
    try {
      const { server, apiKeyEnv } = config.policy;
      if (policyKindOf(config).isServed)
        onNotice(`answers come from ${server.url}, with the key in ${apiKeyEnv} where it is set`);
      onNotice(`${name} plays up to ${slots} groups of run '${run}' (update ${announcement.version})`);
      const interrupted = new Promise<void>((resolve) => {
        interrupt?.addEventListener('abort', () => resolve(), { once: true });
        if (interrupt?.aborted) resolve();
      });
      await Promise.race([worker.done, interrupted]);
    } finally {
      await worker.stop();
    }
  } finally {
    await broker.close();
  }
}

async function readAnnouncement(broker: Broker, { run, url }: WorkOptions): Promise<Announcement> {
  const found = await broker.weights.readAnnouncement().catch(ignoreUnavailable);
  if (!found) {
    throw new UserError(
      'UNKNOWN_RUN',
      `no run '${run}' is announced at ${url}; its learner: longplay train … --name ${run} --cluster ${url}`,
    );
  }
  const announcement = decodeAnnouncement(found.bytes);
  if (announcement.ended)
    throw new UserError('UNKNOWN_RUN', `run '${run}' at ${url} has ended (update ${announcement.version})`);
  return announcement;
}

/** Returns the run's configuration with this machine's paths. A module's path is never taken from another machine. */
export function localConfigOf({ config: theirs, identity }: Announcement, { run, env, model }: WorkOptions): RunConfig {
  const config = checkRunConfig(theirs, `run '${run}'`);
  requireOneWorld(config, `worker of run '${run}'`);
  const own = typeof identity.world === 'string';
  if (namesPrograms(config.env) || (!own && isModulePath(config.env.id))) {
    throw new UserError('BAD_ARGUMENT', `run '${run}' names code to start here ('${config.env.id}'): it is not played`);
  }
  if (own && env === undefined) {
    throw new UserError(
      'BAD_ARGUMENT',
      `run '${run}' has a world of its user's own; name it on this machine: --env ./path/to/env.mjs`,
    );
  }
  if (!own && env !== undefined) {
    throw new UserError(
      'BAD_ARGUMENT',
      `run '${run}' has the world '${config.env.id}' of this package; leave --env out`,
    );
  }
  if (!policyKindOf(config).isServed && model !== undefined) {
    throw new UserError('BAD_ARGUMENT', `run '${run}' has no policy behind a server; leave --model out`);
  }
  const found =
    model === undefined
      ? config
      : { ...config, policy: { ...config.policy, path: absoluteModel(model, process.cwd()) } };
  return own ? { ...found, env: { ...config.env, id: resolveEnvId(env!, process.cwd()) } } : found;
}
