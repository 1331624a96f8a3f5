/** The channel that both ends of a host process agree on. */

/** Ports of the channel: the task and an uncaught error's message, batches, comlink calls. */
export const ports = { setUp: 0, data: 1, control: 2, count: 3 } as const;

/** The child's descriptor of the beacon's file. */
export const BEACON_FD = 4;

/** Exit code after an error that nobody caught; its message was sent before. */
export const UNCAUGHT = 70;
