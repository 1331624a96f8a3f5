/** Chaos ledger: the outcome of every injected fault, the report of a run under `--chaos`. */
import { diskFault } from './injector.ts';
import { type ChaosSpec, type FaultKind, faultKinds } from './spec.ts';

export interface ChaosCounts {
  /** Injected faults. */
  readonly injected: number;
  /** Detected faults: the episode failed, or the checkpoint was reported. */
  readonly detected: number;
  /**
   * Absorbed faults, harmless as they should be: a slow answer in time, a second answer of an episode that was over.
   */
  readonly absorbed: number;
  /** Abandoned faults: the episode was given up (end of the run, a dropped group) before its fault could show. */
  readonly abandoned: number;
  /** Lost faults, which went unnoticed: a bug of ours. */
  readonly lost: number;
}

/** Faults injected so far, and what became of them. */
export interface ChaosReport {
  readonly spec: ChaosSpec;
  readonly kinds: Readonly<Partial<Record<FaultKind, ChaosCounts>>>;
  /** Failed episodes that no fault explains, by cause. */
  readonly unexplained: Readonly<Record<string, number>>;
}

type Fate = Exclude<keyof ChaosCounts, 'injected'>;

export class ChaosLedger {
  readonly spec: ChaosSpec;
  readonly #kinds: { [K in FaultKind]?: { -readonly [C in keyof ChaosCounts]: number } } = {};
  readonly #open = new Map<number, FaultKind>();
  readonly #unexplained: Record<string, number> = {};

  constructor(spec: ChaosSpec) {
    this.spec = spec;
  }

  /** Records a struck step of `episode` that was sent. */
  inject(episode: number, kind: FaultKind): void {
    this.#settle(episode, 'absorbed'); // the one before was outlived
    this.#open.set(episode, kind);
    this.#counts(kind).injected++;
  }

  /** Records an episode that answered as if nothing had happened. */
  recordAnswered(episode: number): void {
    const kind = this.#open.get(episode);
    if (kind === 'slow') this.#settle(episode, 'absorbed');
    // A duplicate's second answer is still to come.
    else if (kind !== 'duplicate') this.#settle(episode, 'lost');
  }

  /** Records an answer for an episode that is over. */
  late(episode: number): void {
    if (this.#open.get(episode) === 'duplicate') this.#settle(episode, 'absorbed');
  }

  /**
   * Records a failed episode.
   * @returns the fault that explains the failure
   */
  recordFailed(episode: number, cause: string): FaultKind | undefined {
    const kind = this.#open.get(episode);
    if (kind) this.#settle(episode, 'detected');
    else this.#unexplained[cause] = (this.#unexplained[cause] ?? 0) + 1;
    return kind;
  }

  /** Records an episode that was given up; a duplicate's second answer may still be on its way. */
  recordClosed(episode: number): void {
    if (this.#open.get(episode) !== 'duplicate') this.#settle(episode, 'abandoned');
  }

  /** Records a checkpoint that was written (`ok`) or refused. */
  checkpoint(update: number, ok: boolean): void {
    if (!diskFault(this.spec, update)) return;
    const counts = this.#counts('disk-full');
    counts.injected++;
    counts[ok ? 'lost' : 'detected']++;
  }

  report(): ChaosReport {
    const kinds: { [K in FaultKind]?: ChaosCounts } = {};
    for (const kind of faultKinds) if (this.#kinds[kind]) kinds[kind] = { ...this.#kinds[kind] };
    return { spec: this.spec, kinds, unexplained: { ...this.#unexplained } };
  }

  /** Ends the ledger: nothing more will come. */
  end(): void {
    for (const [episode, kind] of [...this.#open])
      this.#settle(episode, kind === 'duplicate' ? 'absorbed' : 'abandoned');
  }

  #settle(episode: number, fate: Fate): void {
    const kind = this.#open.get(episode);
    if (!kind) return;
    this.#open.delete(episode);
    this.#counts(kind)[fate]++;
  }

  #counts(kind: FaultKind) {
    return (this.#kinds[kind] ??= { injected: 0, detected: 0, absorbed: 0, abandoned: 0, lost: 0 });
  }
}

/** Table of the report, as lines for the console. */
export function chaosTable({ kinds, unexplained }: ChaosReport): string[] {
  const columns = ['injected', 'detected', 'absorbed', 'abandoned', 'lost'] as const;
  const lines = [`${'chaos'.padEnd(12)}${columns.map((name) => name.padStart(11)).join('')}`];
  for (const kind of faultKinds) {
    const counts = kinds[kind];
    if (counts) lines.push(`${kind.padEnd(12)}${columns.map((name) => String(counts[name]).padStart(11)).join('')}`);
  }
  const others = Object.entries(unexplained).map(([cause, count]) => `${count} ${cause}`);
  if (others.length > 0) lines.push(`failures that no injected fault explains: ${others.join(', ')}`);
  return lines;
}
