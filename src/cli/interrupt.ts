/** Interrupts, by Ctrl-C and SIGTERM: the first asks for an orderly end, the second ends at once. */

/** Seconds from the first signal within which an orderly end comes; then the process gives up on it. */
const DRAIN_SECONDS = 60;

export interface Interrupt {
  /** Signal that the first interrupt aborts. */
  readonly signal: AbortSignal;
  /** Stops listening. */
  close(): void;
}

/**
 * Listens for SIGINT and SIGTERM. The second one exits with 128 + its number; so does the first one's deadline, with 1
 * and one line, because a run that cannot end is a failed run.
 * @param say tells a person, one line
 */
export function onInterrupt(say: (line: string) => void): Interrupt {
  const controller = new AbortController();
  let deadline: NodeJS.Timeout | undefined;
  const onSignal = (signal: NodeJS.Signals) => {
    if (controller.signal.aborted) process.exit(128 + (signal === 'SIGINT' ? 2 : 15));
    say(`${signal}: ending the run with a checkpoint within ${DRAIN_SECONDS} s; again to exit at once`);
    deadline = setTimeout(() => {
      say(`longplay: the run did not end within ${DRAIN_SECONDS} s of ${signal}; the newest checkpoint is kept`);
      process.exit(1);
    }, DRAIN_SECONDS * 1000);
    deadline.unref();
    controller.abort();
  };
  process.on('SIGINT', onSignal);
  process.on('SIGTERM', onSignal);
  return {
    signal: controller.signal,
    close() {
      clearTimeout(deadline);
      process.off('SIGINT', onSignal);
      process.off('SIGTERM', onSignal);
    },
  };
}
