/** Channel of a host process, as both ends agree on it. */

/** Ports of the channel: the task and an uncaught error's message, batches, comlink calls. */
export const ports = { setUp: 0, data: 1, control: 2, count: 3 } as const;

/**
 * Bytes of one message at most. A host sends what it has gathered in 10 ms, cut where it is long (batch.ts), so that
 * only a single observation of a quarter of a gigabyte would be refused.
 */
export const MAX_MESSAGE_BYTES = 2 ** 28;

/** Descriptor of the channel in the child. */
export const CHANNEL_FD = 3;

/** Descriptor of the beacon's file in the child. */
export const BEACON_FD = 4;

/** Exit code after an uncaught error, whose message was sent before. */
export const UNCAUGHT = 70;
