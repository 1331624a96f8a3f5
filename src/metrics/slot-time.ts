/** Slot time: shares of the slots' time in the last interval, from totals at its two ends. Pure. */

/** Totals in milliseconds, summed over episode slots. */
export interface SlotTime {
  /** Slots with a running episode. */
  readonly runningMs: number;
  /** Slots whose episode has finished and waits for the rest of its group. */
  readonly groupMs: number;
  /** Empty slots: admission waits for the learner. */
  readonly learnerMs: number;
  readonly envMs: number;
  /** Env hosts inside env code; not a slot's time, so no part of the shares. */
  readonly hostMs: number;
  /** Waiting for a batch, as the policy measured it. */
  readonly waitMs: number;
  readonly prefillMs: number;
  readonly decodeMs: number;
  /** Rest of the time between asking the policy and its answer, outside what the policy measured. */
  readonly actRestMs: number;
  /** Rest of the time between sending an action and its observation, outside the env. */
  readonly stepRestMs: number;
}

/** Slot time before anything was played. */
export const NO_TIME: SlotTime = {
  runningMs: 0,
  groupMs: 0,
  learnerMs: 0,
  envMs: 0,
  hostMs: 0,
  waitMs: 0,
  prefillMs: 0,
  decodeMs: 0,
  actRestMs: 0,
  stepRestMs: 0,
};

/** Parts of the time, in the order in which they are shown. */
export const TIME_PARTS = ['env', 'batchWait', 'prefill', 'decode', 'learner', 'group', 'messages'] as const;
export type TimePart = (typeof TIME_PARTS)[number];
export type TimeShares = Readonly<Record<TimePart, number>>;

/**
 * Shares of the interval, adding up to 1.
 *
 * A turn that is asked while a call runs lies in the policy's mailbox: part message, part waiting for the batch. A hop
 * to the env hosts passes the same loop, so its rest is taken for the message's part and what exceeds it is waiting.
 * Time that running episodes spent beyond the turns that ended in the interval counts as messages.
 *
 * @returns `undefined` for an interval in which no slot existed
 */
export function timeShares(before: SlotTime | undefined, after: SlotTime): TimeShares | undefined {
  const measureSince = (name: keyof SlotTime) => Math.max(0, after[name] - (before?.[name] ?? 0));
  const running = measureSince('runningMs');
  const total = running + measureSince('groupMs') + measureSince('learnerMs');
  if (total <= 0) return undefined;
  const inMailbox = Math.max(0, measureSince('actRestMs') - measureSince('stepRestMs'));
  const parts = {
    env: measureSince('envMs'),
    batchWait: measureSince('waitMs') + inMailbox,
    prefill: measureSince('prefillMs'),
    decode: measureSince('decodeMs'),
  };
  const known = parts.env + parts.batchWait + parts.prefill + parts.decode;
  // Turns that began before the interval count whole in it: scaled down where that exceeds what there was.
  const scale = known > running ? running / known : 1;
  return {
    env: (parts.env * scale) / total,
    batchWait: (parts.batchWait * scale) / total,
    prefill: (parts.prefill * scale) / total,
    decode: (parts.decode * scale) / total,
    learner: measureSince('learnerMs') / total,
    group: measureSince('groupMs') / total,
    messages: (running - known * scale) / total,
  };
}
