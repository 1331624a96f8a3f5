/** Whole training runs of a very small policy on TextCraft, and what is left of them as one digest. */
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TrainEnded } from '../../actors/scheduler/protocol.ts';
import type { Run, RunOptions } from '../../actors/tree.ts';
import { loadRunConfig } from '../../src/config/load.ts';
import { countUnaccounted } from '../../src/core/failure.ts';
import type { MetricsRow } from '../../src/metrics/metric-table.ts';
import { startRun } from '../../src/run/start-run.ts';

const yaml = new URL('./small-run.yaml', import.meta.url);

/** Fields of a trace that the clock fills. */
const TIMES: ReadonlySet<string> = new Set(['actMs', 'envMs', 'stages']);

export interface SmallRun {
  readonly digest: { readonly weights: string; readonly traces: string };
  readonly ended: TrainEnded;
  readonly rows: readonly MetricsRow[];
  /** Launched minus all that is accounted for, at the end. */
  readonly unaccounted: number;
}

/** @param during what to do with the run while it trains */
export async function smallRun(
  set: readonly string[],
  options: Partial<RunOptions>,
  during?: (run: Run, dir: string) => Promise<void>,
): Promise<SmallRun> {
  const config = loadRunConfig(readFileSync(yaml, 'utf8'), 'small-run.yaml', set);
  const dir = mkdtempSync(join(tmpdir(), 'longplay-run-'));
  const rows: MetricsRow[] = [];
  const run = await startRun({
    config,
    dir,
    mode: 'serial',
    envModule: new URL('../../envs/textcraft/index.js', import.meta.url),
    learn: true,
    ...options,
  });
  try {
    run.metrics$.subscribe((row) => rows.push(row));
    const training = run.train();
    training.catch(() => {});
    await during?.(run, dir);
    const ended = await training;
    const { update } = await run.save();
    await run.stop();
    const tensors = readFileSync(join(dir, 'checkpoints', String(update), 'tensors.safetensors'));
    const digest = { weights: sha256(tensors), traces: sha256(traces(join(dir, 'traces'))) };
    return { digest, ended, rows, unaccounted: countUnaccounted(ended.status.accounting) };
  } finally {
    await run.stop();
    rmSync(dir, { recursive: true, force: true });
  }
}

/** Every episode that was written, without what the clock had to do with it. */
function traces(folder: string): string {
  const files = readdirSync(folder)
    .filter((name) => /^\d+\.jsonl$/.test(name))
    .sort();
  const lines = files.flatMap((name) => readFileSync(join(folder, name), 'utf8').split('\n').slice(1));
  const timeless = (key: string, value: unknown) => (TIMES.has(key) ? undefined : value);
  return lines.map((line) => (line === '' ? '' : JSON.stringify(JSON.parse(line, timeless)))).join('\n');
}

function sha256(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('hex');
}
