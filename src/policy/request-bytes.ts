/** Memory that turns hold while they wait for a decision, for bounds in bytes. An estimate from above for plain ones. */
import type { RenderedPrompt } from '../text/reading/received-transcript.ts';
import type { ActRequest } from './policy.ts';

/** Bytes of a turn with its fields: no request is smaller. */
export const MIN_REQUEST_BYTES = 1000;
/** Bytes of an entry of a map or a list of objects. */
const ENTRY = 100;

/** Approximate bytes of turns in memory. */
export function requestBytes(requests: readonly ActRequest[]): number {
  let bytes = 0;
  for (const { observation, lastAction = '', actions, newActions, history = [], given } of requests) {
    bytes += MIN_REQUEST_BYTES + 2 * (observation.length + lastAction.length) + actions.byteLength;
    for (const text of newActions) bytes += 2 * text.length;
    for (const turn of history) bytes += MIN_REQUEST_BYTES + 2 * (turn.observation.length + turn.action.length);
    if (given) bytes += promptBytes(given) + 2 * (given.call?.length ?? 0);
  }
  return bytes;
}

function promptBytes({ prompt, after, focus, mentions, candidates }: RenderedPrompt): number {
  let bytes = prompt.byteLength + after.byteLength + 8 * focus.length;
  for (const [action, places] of mentions) bytes += ENTRY + 2 * action.length + 8 * places.length;
  for (const [action, read] of candidates ?? []) bytes += ENTRY + 2 * (action.length + read.length);
  return bytes;
}
