/**
 * Memory that trajectories hold, for bounds in bytes. An estimate from above, 1 to 4 times what V8 holds for them
 * (measured by its own test): texts of one byte a character are counted as two.
 */
import type { Decision, ModelResponse, Trajectory } from '../core/trajectory.ts';

/** Bytes of an object with a dozen fields. */
const OBJECT = 200;
/** Bytes of a typed array beside its contents: the view, its buffer and the buffer's store. */
const TYPED_ARRAY = 240;
/** Bytes of a text beside its characters, and of the place that refers to it. */
const TEXT = 32;

/** Bytes of a text, 0 where there is none. */
export function textBytes(text: string | undefined): number {
  return text === undefined ? 0 : TEXT + 2 * text.length;
}

/** Bytes of a typed array, 0 where there is none. */
export function arrayBytes(array: { readonly byteLength: number } | undefined): number {
  return array === undefined ? 0 : TYPED_ARRAY + array.byteLength;
}

/** Bytes of trajectories in memory, about. */
export function trajectoryBytes(trajectories: readonly Trajectory[]): number {
  let bytes = 0;
  for (const { actionTable, turns, finalObservation } of trajectories) {
    bytes += 3 * OBJECT + textBytes(finalObservation);
    for (const text of actionTable) bytes += textBytes(text);
    for (const { observation, action, actions, decision, response } of turns) {
      bytes += OBJECT + textBytes(observation) + textBytes(action) + arrayBytes(actions);
      if (decision) bytes += decisionBytes(decision);
      if (response) bytes += responseBytes(response);
    }
  }
  return bytes;
}

function decisionBytes(decision: Decision): number {
  const bytes = OBJECT + arrayBytes(decision.context);
  if (decision.kind === 'choice') return bytes + arrayBytes(decision.likeliest);
  return bytes + arrayBytes(decision.tokens) + arrayBytes(decision.logprobs) + arrayBytes(decision.versions);
}

function responseBytes({ text, formatError, opening }: ModelResponse): number {
  const bytes = OBJECT + textBytes(text) + textBytes(formatError);
  return opening ? bytes + OBJECT + textBytes(opening.system) + textBytes(opening.instructions) : bytes;
}
