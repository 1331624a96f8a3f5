/**
 * Watchdog of a running system: finds an actor that makes no progress with its message, a thread that does not respond,
 * an event loop that lags, and a run in which nothing happens at all. A stall names the actor, the message and its age;
 * an actor that may be killed is restarted by its supervisor, any other stall ends the run.
 */
import { backgroundClock, type Clock } from '../core/clock.ts';
import type { ActorStats, ActorSystem } from './actor.ts';

export interface Stall {
  readonly path: string;
  /** Type of the message in hand, or of the oldest one waiting. */
  readonly message: string | undefined;
  /** Milliseconds since the actor last made progress while it had work. */
  readonly ageMs: number;
}

/** Milliseconds over one message after which an actor counts as stalled: the longest update of a language model takes less. */
const STALL_MS = 300_000;
/** Milliseconds that the main event loop may be late unreported: a person notices what is longer. */
const LAG_MS = 2000;

export interface WatchdogOptions {
  /** Milliseconds without progress after which an actor counts as stalled. Default `STALL_MS`. */
  readonly stallMs?: number | undefined;
  /** Milliseconds that the event loop may be late before it is reported. Default `LAG_MS`. */
  readonly lagMs?: number | undefined;
  /** Called with a stall, in words, before it is acted on. */
  readonly onStall: (message: string, stall: Stall) => void;
  readonly onLag: (lagMs: number) => void;
  /**
   * Progress of the run: whether a caller waits for it, and a number that grows as it goes on. With it, a run in which
   * no actor has anything in hand and nothing grows is a stall too (a message was lost).
   */
  readonly run?: () => { readonly expected: boolean; readonly progress: number };
  /** Default: the machine's, whatever clock the actors have: this is about the machine. */
  readonly clock?: Clock | undefined;
}

/** State of an actor at the last look. */
export interface Seen {
  readonly handled: number;
  /** Time when it last made progress, or last had nothing to do. */
  readonly since: number;
}

/**
 * Compares two looks.
 * @param before by path; the returned map takes its place
 * @param now milliseconds, of the clock `since` is read from
 */
export function look(
  before: ReadonlyMap<string, Seen>,
  stats: readonly ActorStats[],
  now: number,
  stallMs: number,
): { readonly seen: ReadonlyMap<string, Seen>; readonly stalls: readonly Stall[] } {
  const seen = new Map<string, Seen>();
  const stalls: Stall[] = [];
  for (const { path, handled, message, state, silentMs } of stats) {
    const known = before.get(path);
    // Others have deadlines of their own: starting, stopping, and the wait before a restart.
    const stuck = state === 'running' && (message !== undefined || silentMs > 0) && known?.handled === handled;
    const since = stuck ? known!.since : now;
    seen.set(path, { handled, since });
    const ageMs = Math.max(now - since, state === 'running' ? silentMs : 0);
    if (ageMs > stallMs) stalls.push({ path, message, ageMs });
  }
  return { seen, stalls };
}

/** Number of looks per `stallMs`; there is at least one a second. */
const LOOKS = 4;
const MAX_MS = 1000;
/** Milliseconds between two reports of lag. */
const LAG_QUIET_MS = 10_000;

/** Starts the watchdog of an async system (a serial one has no time of its own). @returns ends it */
export function startWatchdog(system: ActorSystem, options: WatchdogOptions): () => void {
  if (system.mode === 'serial') return () => {};
  const { stallMs = STALL_MS, lagMs = LAG_MS, clock = backgroundClock } = options;
  const everyMs = Math.max(5, Math.min(MAX_MS, stallMs / LOOKS));
  let lookedAt = clock.now();
  let laggedAt = Number.NEGATIVE_INFINITY;
  let seen: ReadonlyMap<string, Seen> = new Map();
  let progress = -1;
  let quietSince = lookedAt;
  const lookNow = (): void => {
    cancel = clock.setTimer(everyMs, lookNow);
    const now = clock.now();
    const late = now - lookedAt - everyMs;
    lookedAt = now;
    if (late > lagMs && now - laggedAt > LAG_QUIET_MS) {
      laggedAt = now;
      options.onLag(late);
    }
    const stats = system.stats();
    const looked = look(seen, stats, now, stallMs);
    seen = looked.seen;
    system.heartbeat();
    // This thread was busy itself: answers may be waiting unread, so no actor is late yet.
    if (late > stallMs / 2) {
      seen = new Map();
      quietSince = now;
      return;
    }
    for (const stall of looked.stalls) {
      const text = stallText(stall);
      options.onStall(text, stall);
      system.breakOff(stall.path, text);
    }
    const run = options.run?.();
    const idle = stats.every(({ message, state }) => message === undefined && state === 'running');
    if (!run?.expected || !idle || run.progress !== progress) quietSince = now;
    progress = run?.progress ?? -1;
    if (now - quietSince > stallMs) {
      const text = `nothing has happened for ${Math.round(now - quietSince)} ms and no actor has anything to do: a message was lost`;
      quietSince = now;
      options.onStall(text, { path: '/', message: undefined, ageMs: stallMs });
      system.breakOff('/', text);
    }
  };
  let cancel = clock.setTimer(everyMs, lookNow);
  return () => cancel();
}

function stallText({ path, message, ageMs }: Stall): string {
  const what = message === undefined ? 'gives no sign of life' : `has not got on with ${message}`;
  return `${path} is stalled: it ${what} for ${Math.round(ageMs)} ms`;
}
