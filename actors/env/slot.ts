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
  /** Host's time, milliseconds: as the clock goes, less the time in which the machine let others run in its place. */
  time: number;
  /** Clock at the last look; what the host had waited for a processor until then, and what of it `time` has yet to leave out. */
  lookedAt: number;
  waitedMs: number;
  owedMs: number;
  /** Calls, commands and responses at the look at which the host last showed life, and its time then. */
  calls: number;
  began: number;
  responded: number;
  movedAt: number;
  /** Episode whose code the beacon has shown last since; −1 for none. */
  shown: number;
  /** Times that the host's thread has responded when asked for a sign of life, and whether a response is awaited. */
  responses: number;
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
  /** Host's time at which it was seen to have begun. */
  begunAt: number | undefined;
  /** Responses of the host when its deadline was first seen to have passed; the answer may be on its way. */
  lateSince: number | undefined;
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
    time: 0,
    lookedAt: 0,
    waitedMs: 0,
    owedMs: 0,
    calls: -1,
    began: -1,
    responded: 0,
    movedAt: 0,
    shown: -1,
    responses: 0,
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
    lateSince: undefined,
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
/** Share of the clock that counts at least: a host that the machine never lets run is judged after ten deadlines. */
const MIN_SHARE = 0.1;
/**
 * Responses between an episode's deadline and its failure. The second one was asked for after the first: in between the
 * host's thread went round once, and would have sent what was ready.
 */
const RESPONSES = 2;

/**
 * Suspicion for the end of a host: the episode that its beacon shows. None where it shows none: one that was begun and not
 * answered may be innocent, and one command at a time finds the culprit.
 */
export function suspects(seen: BeaconReading | undefined, episodes: Episodes): Suspicion {
  return seen && seen.current >= 0 ? findSuspects(seen.current, episodes) : UNKNOWN;
}

function findSuspects(episode: number, episodes: Episodes): Suspicion {
  const record = episodes.get(episode);
  return { culprits: record ? [record] : [], shown: true };
}

/** Notes that a host has started in a slot. @param now milliseconds */
export function startSlot(slot: Slot, host: Host, now: number): void {
  slot.host = host;
  slot.failedStarts = 0;
  slot.calls = slot.began = slot.shown = -1;
  slot.lookedAt = now;
  slot.waitedMs = host.measureWaitMs?.(now) ?? 0;
  slot.owedMs = 0;
  slot.movedAt = slot.time;
}

/**
 * Moves the time of a slot's host on: deadlines leave out what the machine gave to others while the host was ready to run.
 * @returns the milliseconds that count
 */
function moveTime(slot: Slot, host: Host, now: number, maxMs: number): number {
  const waitedMs = host.measureWaitMs?.(now) ?? 0;
  const passedMs = Math.min(maxMs, now - slot.lookedAt);
  const owedMs = slot.owedMs + Math.max(0, waitedMs - slot.waitedMs);
  const sparedMs = Math.min(owedMs, (1 - MIN_SHARE) * passedMs);
  const ownMs = passedMs - sparedMs;
  slot.time += ownMs;
  slot.lookedAt = now;
  slot.waitedMs = waitedMs;
  slot.owedMs = Math.min(owedMs - sparedMs, maxMs); // what a late look did not count is not left out later
  return ownMs;
}

/**
 * Judges a live host; notes in its slot and episodes what the next look must know.
 * @param now milliseconds
 * @param maxMs milliseconds that pass from one look to the next at most: of a longer time the looking thread was away itself,
 *   or the whole process stood still
 */
export function judge(
  slot: Slot,
  host: Host,
  episodes: Episodes,
  deadlines: Deadlines,
  now: number,
  maxMs: number,
): Verdict | undefined {
  const ownMs = moveTime(slot, host, now, maxMs);
  const seen = host.beacon()!;
  const stands = seen.calls === slot.calls && seen.began === slot.began && slot.responses === slot.responded;
  // A call that returned and another episode's timer that runs since: it is another one's time that passes.
  const sameCode = seen.current < 0 || slot.shown < 0 || seen.current === slot.shown;
  if ((host.overweight?.() ?? 0) > 0) {
    // It is the memory of a call that has run since the last look, or nobody knows whose.
    const ran = stands && seen.current === slot.shown;
    const message = 'the host holds more memory than it may';
    return { ...(ran ? suspects(seen, episodes) : UNKNOWN), cause: 'out-of-memory', message };
  }
  if (!(stands && sameCode) || !awaits(slot)) {
    slot.calls = seen.calls;
    slot.began = seen.began;
    slot.responded = slot.responses;
    slot.movedAt = slot.time;
    slot.shown = -1;
  }
  const heldMs = slot.time - slot.movedAt;
  if (seen.current >= 0) {
    // Inside one call, timer or promise since `movedAt`: the thread is blocked, and only this episode can be blamed. One that
    // was shown at an earlier look and is no more has returned, and is not.
    slot.shown = seen.current;
    const { stepDeadlineMs, openDeadlineMs } = deadlines;
    const record = episodes.get(seen.current);
    const deadlineMs = record?.pending === 'step' && !record.restoring ? stepDeadlineMs : openDeadlineMs;
    if (heldMs <= deadlineMs) return undefined;
    return {
      ...findSuspects(seen.current, episodes),
      cause: 'timeout',
      message: `no return for ${Math.round(heldMs)} ms`,
    };
  }
  // Something blocks the thread that nobody has been seen to start: a timer, an endless chain of promises, a stop. It did at
  // the last look already, since when the looking thread has read whatever lay there.
  if (heldMs - ownMs > deadlines.openDeadlineMs + deadlines.stepDeadlineMs) {
    const message = `the host has not responded for ${Math.round(heldMs)} ms`;
    return { ...UNKNOWN, cause: 'timeout', message };
  }
  return late(slot, seen.began, deadlines);
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
function late(slot: Slot, began: number, deadlines: Deadlines): Verdict | undefined {
  const culprits: OpenEpisode[] = [];
  let lateMs = 0;
  for (const record of slot.episodes) {
    if (!(record.pending || record.restoring) || record.ordinal > began) continue;
    if (record.begunAt === undefined) {
      record.begunAt = slot.time;
      record.lateSince = undefined;
    } else if (slot.time - record.begunAt > deadlineOf(record, deadlines)) {
      record.lateSince ??= slot.responses;
      if (slot.responses < record.lateSince + RESPONSES) continue;
      culprits.push(record);
      lateMs = Math.max(lateMs, slot.time - record.begunAt);
    }
  }
  if (culprits.length === 0) return undefined;
  return { culprits, shown: true, cause: 'timeout', message: `no answer for ${Math.round(lateMs)} ms` };
}
