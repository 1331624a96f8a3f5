/** Channel of a host process, as both ends agree on it. */

/** Ports of the channel: the task and an uncaught error's message, batches, comlink calls. */
export const ports = { setUp: 0, data: 1, control: 2, count: 3 } as const;

/** Descriptor of the beacon's file in the child. */
export const BEACON_FD = 4;

/** Exit code after an uncaught error, whose message was sent before. */
export const UNCAUGHT = 70;
