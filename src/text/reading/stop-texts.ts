/** Stop texts, which end an answer and are not part of it. */
import { largestOf, smallestOf } from '../../core/extremes.ts';

/** Cuts a text at the first stop text in it. An empty stop text ends nothing. */
export function cutAtStop(
  text: string,
  stop: readonly string[],
): { readonly text: string; readonly isStopped: boolean } {
  const places = stop.map((one) => (one === '' ? -1 : text.indexOf(one))).filter((at) => at >= 0);
  if (places.length === 0) return { text, isStopped: false };
  return { text: text.slice(0, smallestOf(places)), isStopped: true };
}

/**
 * Counts the newest tokens of a run in which a stop text that has just been completed lies: a token is one byte or more.
 * @returns 1 without a stop text
 */
export function stopWindow(stop: readonly string[]): number {
  return (
    largestOf(
      stop.map((text) => Buffer.byteLength(text)),
      0,
    ) + 1
  );
}
