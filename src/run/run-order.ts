/**
 * Order of messages of a training run: recorded to a file, or repeated from one. At the end the weights of both runs are
 * compared: equal orders make equal weights.
 */

import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { checkRunConfig } from '../config/load.ts';
import type { RunConfig } from '../config/run-config.ts';
import { MAX_BINARY_BYTES, readBounded } from '../core/bounded-file.ts';
import { LongplayError, UserError } from '../core/errors.ts';
import { OrderRecorder, type RecordedOrder, readOrder } from '../storage/order-file.ts';

/** Order that a run records, and the one that it repeats. */
export interface RunOrder {
  readonly record: OrderRecorder | undefined;
  readonly replay: RecordedOrder | undefined;
}

/** Files of a run's order; neither is there in most runs. */
interface OrderFiles {
  readonly recordOrder?: string | undefined;
  readonly replayOrder?: string | undefined;
}

/**
 * Opens the files of a run's order.
 * @throws {UserError} BAD_CONFIG when the order to repeat was recorded under another configuration
 */
export function openOrder({ recordOrder, replayOrder }: OrderFiles, config: RunConfig): RunOrder {
  const record = recordOrder === undefined ? undefined : new OrderRecorder(recordOrder, config);
  const replay = replayOrder === undefined ? undefined : readOrderOf(replayOrder, config);
  return { record, replay };
}

/**
 * Settles a run's order with its last checkpoint: records the digest of the weights, and compares it with the recorded one.
 * @param checkpoint folder of the checkpoint
 * @throws {LongplayError} BAD_TRACE when a replay ended with other weights
 */
export function settleOrder({ record, replay }: RunOrder, checkpoint: string, onNotice: (text: string) => void): void {
  if (!record && !replay) return;
  const sha256 = weightsDigest(checkpoint);
  record?.weights(sha256);
  if (replay) onNotice(compareWeights(replay, sha256));
}

/**
 * Reads the recorded order of a file.
 * @throws {UserError} BAD_CONFIG when it was recorded under another configuration
 */
function readOrderOf(path: string, config: RunConfig): RecordedOrder {
  const order = readOrder(path);
  // Through the check, so that names of earlier versions compare as the present ones.
  const recorded = checkRunConfig(order.config, path);
  if (!isDeepStrictEqual(JSON.parse(JSON.stringify(recorded)), JSON.parse(JSON.stringify(config)))) {
    throw new UserError('BAD_CONFIG', `--replay-order ${path}: it was recorded under another configuration`);
  }
  return order;
}

/** Digest (SHA-256) of the weights and moments of a checkpoint. */
function weightsDigest(folder: string): string {
  return createHash('sha256')
    .update(readBounded(join(folder, 'tensors.safetensors'), MAX_BINARY_BYTES))
    .digest('hex');
}

/**
 * Compares the weights of a replay.
 * @throws {LongplayError} BAD_TRACE when it ended with other weights
 */
function compareWeights({ weights }: RecordedOrder, sha256: string): string {
  if (weights === undefined) return 'the recording was cut short: there are no weights to compare with';
  if (weights === sha256) return `the replay ended with the recorded weights (sha256 ${sha256.slice(0, 16)}…)`;
  throw new LongplayError('BAD_TRACE', `the replay ended with other weights: ${sha256}, recorded ${weights}`);
}
