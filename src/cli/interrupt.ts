/** Interrupts, by Ctrl-C and SIGTERM: the first asks for an orderly end, the second ends at once. */

import { endProcess } from '../runtime/native-threads.ts';

/** Seconds from the first signal within which an orderly end comes; then the process gives up on it. */
const DRAIN_SECONDS = 60;
/**
 * Milliseconds within which signals are one and the same. The terminal sends a Ctrl-C to all processes, and npm and npx
 * pass it on to their child as well, 1 to 20 ms later. The child is this process where npm's shell is bash, which gives
 * up its place.
 */
const SAME_MS = 500;

export interface Interrupt {
  /** Signal that the first interrupt aborts. */
  readonly signal: AbortSignal;
  /** Stops listening. */
  close(): void;
}

/**
 * Listens for SIGINT and SIGTERM. The second one exits with 128 + its number; so does the first one's deadline, with 1
 * and one line, because a run that cannot end is a failed run.
 * @param notify shows a line to the user
 * @param how it will end, in words
 */
export function onInterrupt(notify: (line: string) => void, how = 'ending the run with a checkpoint'): Interrupt {
  const controller = new AbortController();
  let deadline: NodeJS.Timeout | undefined;
  const close = onFirstSignal((signal) => {
    notify(`${signal}: ${how} within ${DRAIN_SECONDS} s; again to exit at once`);
    deadline = setTimeout(() => {
      notify(`longplay: the run did not end within ${DRAIN_SECONDS} s of ${signal}; the newest checkpoint is kept`);
      endProcess(1, 'SIGKILL');
    }, DRAIN_SECONDS * 1000);
    deadline.unref();
    controller.abort();
  });
  return {
    signal: controller.signal,
    close() {
      clearTimeout(deadline);
      close();
    },
  };
}

/** First signal of those that end a command early, and the end of listening for it. */
export function firstSignal(): { readonly signal: Promise<NodeJS.Signals>; stop(): void } {
  let stop = () => {};
  const signal = new Promise<NodeJS.Signals>((resolve) => {
    stop = onFirstSignal(resolve);
  });
  return { signal, stop };
}

/** Resolves at SIGINT or SIGTERM; a second signal ends the process at once. */
export function awaitSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => void onFirstSignal(resolve));
}

/**
 * Calls `listener` at the first SIGINT or SIGTERM. The second ends the process with 128 + its number.
 * @returns stops listening
 */
export function onFirstSignal(listener: (signal: NodeJS.Signals) => void): () => void {
  let expected = true;
  let countedAt = Number.NEGATIVE_INFINITY;
  const onSignal = (signal: NodeJS.Signals) => {
    const now = performance.now();
    if (now - countedAt < SAME_MS) return;
    if (!expected) return endProcess(128 + (signal === 'SIGINT' ? 2 : 15), signal);
    expected = false;
    countedAt = now;
    listener(signal);
  };
  process.on('SIGINT', onSignal);
  process.on('SIGTERM', onSignal);
  return () => {
    // The listener stays while a twin of the signal may be on its way, which would otherwise end the process.
    expected = false;
    setTimeout(
      () => {
        process.off('SIGINT', onSignal);
        process.off('SIGTERM', onSignal);
      },
      Math.max(0, countedAt + SAME_MS - performance.now()),
    ).unref();
  };
}
