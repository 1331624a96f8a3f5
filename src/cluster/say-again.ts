/** Calls of a broker, said again until they are heard: each may be said twice without harm. */
import type { Clock } from '../core/clock.ts';
import { BrokerUnavailable, type UnavailableReason } from './broker.ts';

/** Milliseconds before the second try, doubled up to the most. */
const FIRST_MS = 50;
const MOST_MS = 2000;
/** Milliseconds without an answer after which a person is told. */
const SILENCE_MS = 5000;

/** Loop that has been told to stop; it ends what it is in. */
export class Stopped extends Error {}

/**
 * Says something until the broker is there.
 * @param isStopped true once nobody waits for it any more
 * @param onSilence told once, in a line for a person and by its reason, when it has gone on for a while
 * @throws {Stopped} and whatever is no `BrokerUnavailable`
 */
export async function sayAgain<T>(
  clock: Clock,
  isStopped: () => boolean,
  say: () => Promise<T>,
  onSilence: (text: string, reason: UnavailableReason) => void = () => {},
): Promise<T> {
  const began = clock.now();
  let told = false;
  for (let wait = FIRST_MS; ; wait = Math.min(MOST_MS, 2 * wait)) {
    if (isStopped()) throw new Stopped();
    try {
      return await say();
    } catch (thrown) {
      if (!(thrown instanceof BrokerUnavailable)) throw thrown;
      if (!told && clock.now() - began >= SILENCE_MS) {
        told = true;
        onSilence(`${thrown.message}; waiting for it`, thrown.reason);
      }
      await new Promise<void>((resolve) => clock.after(wait, resolve));
    }
  }
}
