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
  /** Calls that the beacon showed when it last moved, and the time of that. */
  calls: number;
  movedAt: number;
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

/** Verdict on a host that must be ended: the reason, and the episodes to blame; none where that cannot be known. */
export interface Verdict {
  readonly culprits: readonly OpenEpisode[];
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
    movedAt: 0,
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

/**
 * Episodes whose code a dead host was running: the one its beacon shows, else the one that was begun and not answered.
 * None where there are several: a guess would blame an innocent, and one command at a time finds the culprit.
 */
export function suspects(slot: Slot, seen: BeaconReading | undefined, episodes: Episodes): readonly OpenEpisode[] {
  if (!seen) return [];
  const current = episodes.get(seen.current);
  if (current) return [current];
  const begun = [...slot.episodes].filter(
    (record) => (record.pending || record.restoring) && record.ordinal <= seen.began,
  );
  return begun.length === 1 ? begun : [];
}

/**
 * Judges a live host; notes in its slot and episodes what the next look must know.
 * @param now milliseconds
 * @param wasBusy the looking thread was away itself: answers may lie unread, so no episode is late yet
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
    return { culprits: suspects(slot, seen, episodes), cause: 'out-of-memory', message };
  }
  if (seen.current < 0 || seen.calls !== slot.calls || wasBusy) {
    slot.calls = seen.calls;
    slot.movedAt = now;
  }
  if (seen.current < 0) return late(slot, seen.began, deadlines, now, wasBusy);
  // Inside one call since `movedAt`: the thread is blocked, and only this episode can be blamed.
  const record = episodes.get(seen.current);
  const { stepDeadlineMs, openDeadlineMs } = deadlines;
  const deadlineMs = record?.pending === 'step' && !record.restoring ? stepDeadlineMs : openDeadlineMs;
  const heldMs = now - slot.movedAt;
  if (heldMs <= deadlineMs) return undefined;
  return { culprits: record ? [record] : [], cause: 'timeout', message: `no return for ${Math.round(heldMs)} ms` };
}

/**
 * Judges late episodes. The thread is free, so every late one is late by itself: they fail together, not one deadline
 * after the other.
 */
function late(slot: Slot, began: number, deadlines: Deadlines, now: number, wasBusy: boolean): Verdict | undefined {
  const culprits: OpenEpisode[] = [];
  let lateMs = 0;
  for (const record of slot.episodes) {
    if (!(record.pending || record.restoring) || record.ordinal > began) continue;
    if (record.begunAt === undefined || wasBusy) record.begunAt = now;
    else if (now - record.begunAt > deadlineOf(record, deadlines)) {
      if (record.suspect) {
        culprits.push(record);
        lateMs = Math.max(lateMs, now - record.begunAt);
      }
      record.suspect = true;
    }
  }
  if (culprits.length === 0) return undefined;
  return { culprits, cause: 'timeout', message: `no answer for ${Math.round(lateMs)} ms` };
}
