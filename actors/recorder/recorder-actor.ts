/**
 * Writes what a run leaves behind: `metrics.jsonl` (every row), `traces/*.jsonl` (every n-th group, rotated) and
 * `quarantine/tasks.jsonl` (tasks that kept failing, each with what it died of). A disk that refuses is reported once and never stops training.
 */
import { appendFileSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../../src/core/errors.ts';
import type { Trajectory } from '../../src/core/trajectory.ts';
import type { MetricsRow } from '../../src/record/metrics.ts';
import { traceHeader, traceLine } from '../../src/record/trace.ts';
import type { BehaviorFactory } from '../../src/runtime/actor.ts';
import type { RecorderCommand } from './protocol.ts';

export interface RecorderInit {
  /** The run's folder; it exists. */
  readonly dir: string;
  /** Resolved configuration, for trace headers. */
  readonly config: unknown;
  readonly everyGroups: number;
  readonly rotateBytes: number;
  readonly keepFiles: number;
  /** Sees every metrics row. */
  readonly onMetrics: (row: MetricsRow) => void;
  /** Called once per kind of trouble. */
  readonly onTrouble: (message: string) => void;
}

export function recorderActor(init: RecorderInit): BehaviorFactory<RecorderCommand> {
  return (ctx) => {
    const troubles = new Set<string>();
    const guarded = (what: string, write: () => void) => {
      try {
        write();
      } catch (thrown) {
        if (!troubles.has(what))
          init.onTrouble(`cannot write ${what}: ${messageOf(thrown)}; the run goes on without it`);
        troubles.add(what);
      }
    };
    const traces = new TraceFiles(init);
    let groups = 0;
    return {
      handlers: {
        episodes({ trajectories, purpose }) {
          if (init.everyGroups > 0 && groups++ % init.everyGroups === 0) {
            guarded('traces', () => traces.append(trajectories, purpose));
          }
        },
        metrics({ row }) {
          guarded('metrics.jsonl', () => appendFileSync(join(init.dir, 'metrics.jsonl'), `${JSON.stringify(row)}\n`));
          init.onMetrics(row);
        },
        quarantined({ task, failure, attempts }) {
          guarded('quarantine', () => {
            const folder = join(init.dir, 'quarantine');
            mkdirSync(folder, { recursive: true });
            appendFileSync(join(folder, 'tasks.jsonl'), `${JSON.stringify({ format: 1, task, attempts, failure })}\n`);
          });
        },
        flush({ replyTo }) {
          ctx.reply(replyTo, null); // writes are synchronous: whatever was told before is in the files
        },
      },
    };
  };
}

/** Trace files `00001.jsonl`, `00002.jsonl`, …: a new one when the newest is full, the oldest removed. */
class TraceFiles {
  readonly #init: RecorderInit;
  readonly #dir: string;
  #number = 0;
  #bytes = Number.POSITIVE_INFINITY;

  constructor(init: RecorderInit) {
    this.#init = init;
    this.#dir = join(init.dir, 'traces');
  }

  append(trajectories: readonly Trajectory[], purpose: string): void {
    if (this.#number === 0) this.#findNewest();
    if (this.#bytes >= this.#init.rotateBytes) this.#rotate();
    const text = trajectories.map((trajectory) => traceLine(trajectory, purpose)).join('');
    appendFileSync(this.#path(this.#number), text);
    this.#bytes += Buffer.byteLength(text);
  }

  #findNewest(): void {
    mkdirSync(this.#dir, { recursive: true });
    this.#number = Math.max(0, ...this.#numbers());
  }

  #rotate(): void {
    this.#number++;
    const header = traceHeader(this.#init.config);
    appendFileSync(this.#path(this.#number), header);
    this.#bytes = statSync(this.#path(this.#number)).size;
    for (const old of this.#numbers()) {
      if (old <= this.#number - this.#init.keepFiles) rmSync(this.#path(old), { force: true });
    }
  }

  #numbers(): number[] {
    return readdirSync(this.#dir).flatMap((name) => {
      const number = /^(\d+)\.jsonl$/.exec(name)?.[1];
      return number === undefined ? [] : [Number(number)];
    });
  }

  #path(number: number): string {
    return join(this.#dir, `${String(number).padStart(5, '0')}.jsonl`);
  }
}
