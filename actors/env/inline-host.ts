/** Inline host, in the caller's thread: for serial mode and for light envs that are trusted. */
import { type Clock, systemClock } from '../../src/core/clock.ts';
import type { Env } from '../../src/core/env.ts';
import { localUrl } from '../../src/runtime/module-url.ts';
import { faultsOf, startWorlds } from './env-host.ts';
import { HostCore } from './host-core.ts';
import { CLOSE_MS, type Host, type HostListener, type HostOptions } from './hosts.ts';

export interface InlineOptions extends HostOptions {
  readonly clock: Clock;
  /** Deadline of the command in hand of an episode, milliseconds. */
  readonly deadlineMs: (episode: number) => number;
  /** Declares real time passing to a serial system; deadlines are then counted in real time. */
  readonly outside?: ((work: Promise<unknown>) => unknown) | undefined;
}

/**
 * Starts a host in the caller's thread. It cannot contain an env that spins or exits; slow ones are left at their
 * deadline.
 */
export async function startInlineHost(options: InlineOptions, listener: HostListener): Promise<Host> {
  const envs = new Map<string, Env>();
  const specs = options.envs.map((spec) => ({ ...spec, url: localUrl(spec.url).href }));
  const { facts, dispose } = await startWorlds(specs, options.where, envs);
  const clock = options.outside ? systemClock : options.clock;
  const core = new HostCore({
    envs,
    listActions: options.listActions,
    where: options.where,
    now: () => options.clock.now(),
    emit: (events) => listener.events(events),
    ...faultsOf(options.chaos),
    onSlow(work, episode) {
      const deadlineMs = options.deadlineMs(episode);
      let cancel!: () => void;
      const late = new Promise<void>((resolve) => {
        cancel = clock.setTimer(deadlineMs, () => {
          const message = `no answer after ${deadlineMs} ms`;
          core.handle([{ type: 'close', episode }]);
          listener.events([{ type: 'failed', episode, failure: { cause: 'timeout', where: options.where, message } }]);
          resolve();
        });
      });
      const ended = work.then(cancel, cancel);
      options.outside?.(Promise.race([ended, late]));
    },
  });
  const end = async () => {
    await inTime(core.closeAll());
    await inTime(dispose());
  };
  return {
    send: (commands) => core.handle(commands),
    beacon: () => undefined,
    facts,
    kill: () => void end().catch(() => {}),
    close: end,
  };
}

/** Waits for the end of some work, at most `CLOSE_MS` of real time: an env that never closes does not keep a run from ending. */
async function inTime(work: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, CLOSE_MS);
  });
  try {
    await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
