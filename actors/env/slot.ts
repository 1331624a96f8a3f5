/**
 * Slot of the pool: a host's place with its episodes, and the judgement of which episode is at fault when the host
 * misbehaves.
 */
import type { FailureCause } from '../../src/core/failure.ts';
import type { BeaconReading } from './beacon.ts';
import type { Host } from './hosts.ts';
import type { EnvCommand, Observed, Open, Step } from './protocol.ts';

/** Slot of the pool; it outlives its hosts. */
export interface Slot {
  readonly where: string;
  readonly episodes: Set<OpenEpisode>;
  host: Host | undefined;
  /** Commands of this turn, or waiting for the host to start. */
  outbox: EnvCommand[];
  /** Commands sent to the present host. */
  sent: number;
  /** Calls and commands that the beacon showed when it last moved, and the time at which the host last showed life. */
  calls: number;
  began: number;
  movedAt: number;
  /** Episode whose code the beacon has shown since; −1 for none. */
  shown: number;
  /** Time at which the host's thread last responded, and whether a response is awaited. */
  respondedAt: number;
  calling: boolean;
  replaced: number;
  failedStarts: number;
  /**
   * Careful mode: commands still to be sent one at a time, until it is known whose code ends the hosts; 0 as a rule.
   */
  careful: number;
  /** Queue of commands in careful mode. */
  queue: { readonly record: OpenEpisode; readonly command: Open | Step }[];
  /** Trial in careful mode: the command sent last; if the host ends now, its episode is at fault. */
  trial: { readonly record: OpenEpisode } | undefined;
}

/** Open episode, and where its host stands with it. */
export interface OpenEpisode {
  readonly open: Open;
  readonly slot: Slot;
  /** Actions that were answered. */
  readonly actions: string[];
  /** Last answer emitted. */
  last: Observed | undefined;
  /** Texts in its action table. */
  listed: number;
  pending: 'open' | 'step' | undefined;
  /** Step in hand. */
  step: Step | undefined;
  /** Place of the command in hand among those sent to the host. */
  ordinal: number;
  /** Time at which it was seen to have begun. */
  begunAt: number | undefined;
  /** True when its deadline had passed at the last look; the answer may be in the queue. */
  suspect: boolean;
  /** True while it is being restored: the next answer is a repetition. */
  restoring: boolean;
}

export interface Deadlines {
  readonly stepDeadlineMs: number;
  readonly openDeadlineMs: number;
}

/** Verdict on a host that must be ended: the reason, and the episodes to blame. */
export interface Verdict extends Suspicion {
  readonly cause: FailureCause;
  readonly message: string;
}

type Episodes = ReadonlyMap<number, OpenEpisode>;

export function newSlot(where: string): Slot {
  return {
    where,
    episodes: new Set(),
    host: undefined,
    outbox: [],
    sent: 0,
    calls: -1,
    began: -1,
    movedAt: 0,
    shown: -1,
    respondedAt: 0,
    calling: false,
    replaced: 0,
    failedStarts: 0,
    careful: 0,
    queue: [],
    trial: undefined,
  };
}

export function newEpisode(open: Open, slot: Slot): OpenEpisode {
  return {
    open,
    slot,
    actions: [...(open.replay ?? [])],
    last: undefined,
    listed: 0,
    pending: 'open',
    step: undefined,
    ordinal: 0,
    begunAt: undefined,
    suspect: false,
    restoring: false,
  };
}

/** Milliseconds that the command in hand may take. */
export function deadlineOf(record: OpenEpisode | undefined, { stepDeadlineMs, openDeadlineMs }: Deadlines): number {
  if (!record) return stepDeadlineMs;
  if (record.restoring || record.pending === 'open') return openDeadlineMs + record.actions.length * stepDeadlineMs;
  return stepDeadlineMs;
}

/** Suspicion for the end of a host. */
export interface Suspicion {
  /** Episodes to blame; none where that cannot be known, or where their episode is over already. */
  readonly culprits: readonly OpenEpisode[];
  /** True where the beacon shows whose code it was: nobody else is to be suspected. */
  readonly shown: boolean;
}

const UNKNOWN: Suspicion = { culprits: [], shown: false };

/**
 * Suspicion for the end of a host: the episode that its beacon shows, else the one that was begun and not answered. None
 * where there are several: a guess would blame an innocent, and one command at a time finds the culprit.
 */
export function suspects(slot: Slot, seen: BeaconReading | undefined, episodes: Episodes): Suspicion {
  if (!seen) return UNKNOWN;
  if (seen.current >= 0) return shownBy(seen.current, episodes);
  const begun = [...slot.episodes].filter(
    (record) => (record.pending || record.restoring) && record.ordinal <= seen.began,
  );
  return begun.length === 1 ? { culprits: begun, shown: false } : UNKNOWN;
}

function shownBy(episode: number, episodes: Episodes): Suspicion {
  const record = episodes.get(episode);
  return { culprits: record ? [record] : [], shown: true };
}

/**
 * Judges a live host; notes in its slot and episodes what the next look must know.
 * @param now milliseconds
 * @param wasBusy the looking thread was away itself: answers may lie unread, so no episode is late yet; nor is one while nothing
 *   is heard of the host's machine
 */
export function judge(
  slot: Slot,
  host: Host,
  episodes: Episodes,
  deadlines: Deadlines,
  now: number,
  wasBusy: boolean,
): Verdict | undefined {
  const seen = host.beacon()!;
  if ((host.overweight?.() ?? 0) > 0) {
    const message = 'the host holds more memory than it may';
    return { ...suspects(slot, seen, episodes), cause: 'out-of-memory', message };
  }
  const moved = seen.calls !== slot.calls || seen.began !== slot.began || slot.respondedAt > slot.movedAt;
  const unknown = wasBusy || host.isHeard?.() === false;
  if (moved || unknown || !awaits(slot)) {
    slot.calls = seen.calls;
    slot.began = seen.began;
    slot.movedAt = now;
    slot.shown = -1;
  }
  if (seen.current >= 0) slot.shown = seen.current;
  const heldMs = now - slot.movedAt;
  if (slot.shown >= 0) {
    // Inside one call, timer or promise since `movedAt`: the thread is blocked, and only this episode can be blamed.
    const { stepDeadlineMs, openDeadlineMs } = deadlines;
    const record = episodes.get(slot.shown);
    const deadlineMs = record?.pending === 'step' && !record.restoring ? stepDeadlineMs : openDeadlineMs;
    if (heldMs <= deadlineMs) return undefined;
    return { ...shownBy(slot.shown, episodes), cause: 'timeout', message: `no return for ${Math.round(heldMs)} ms` };
  }
  // Something blocks the thread that nobody has been seen to start: a timer, an endless chain of promises, a stop.
  if (heldMs > deadlines.openDeadlineMs + deadlines.stepDeadlineMs) {
    const message = `the host has not responded for ${Math.round(heldMs)} ms`;
    return { ...UNKNOWN, cause: 'timeout', message };
  }
  return late(slot, seen.began, deadlines, now, unknown);
}

/** True while an episode of the slot waits for its answer. */
export function awaits(slot: Slot): boolean {
  for (const { pending, restoring } of slot.episodes) if (pending || restoring) return true;
  return false;
}

/**
 * Judges late episodes. The thread has responded since their time was over, so every one of them is late by itself: they
 * fail together, not one deadline after the other.
 */
function late(slot: Slot, began: number, deadlines: Deadlines, now: number, wasBusy: boolean): Verdict | undefined {
  const culprits: OpenEpisode[] = [];
  let lateMs = 0;
  for (const record of slot.episodes) {
    if (!(record.pending || record.restoring) || record.ordinal > began) continue;
    const deadlineMs = deadlineOf(record, deadlines);
    if (record.begunAt === undefined || wasBusy) record.begunAt = now;
    else if (now - record.begunAt > deadlineMs && slot.respondedAt - record.begunAt > deadlineMs) {
      if (record.suspect) {
        culprits.push(record);
        lateMs = Math.max(lateMs, now - record.begunAt);
      }
      record.suspect = true;
    }
  }
  if (culprits.length === 0) return undefined;
  return { culprits, shown: true, cause: 'timeout', message: `no answer for ${Math.round(lateMs)} ms` };
}
