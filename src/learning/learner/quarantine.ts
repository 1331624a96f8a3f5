/** Batches that broke an update, kept on disk for a person to look at: `quarantine/<update>.jsonl`. */
import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Breakage } from '../../compute/finite.ts';
import { messageOf } from '../../core/errors.ts';
import type { Group } from '../../core/trajectory.ts';
import { makeFolder } from '../../storage/atomic-file.ts';

/** Files kept; the oldest go first. */
const KEEP = 20;

/**
 * Writes a batch with what was wrong with it: a header line, then one line per trajectory. Numbers that JSON cannot
 * hold are written as text (`"NaN"`, `"Infinity"`). Never throws: a disk that refuses must not end the run.
 * @param update the policy version that the update led to
 * @returns the file, or why there is none
 */
export function quarantine(dir: string, update: number, broken: Breakage, groups: readonly Group[]): string {
  const path = join(dir, `${update}.jsonl`);
  const header = { format: 'longplay-quarantine', version: 1, update, ...broken };
  const lines = groups.flatMap(({ trajectories }) => trajectories).map((one) => JSON.stringify(one, readable));
  try {
    makeFolder(dir);
    writeFileSync(path, `${[JSON.stringify(header), ...lines].join('\n')}\n`);
    const updates = readdirSync(dir).flatMap((name) => Number(/^(\d+)\.jsonl$/.exec(name)?.[1] ?? Number.NaN) || []);
    for (const old of updates.sort((a, b) => b - a).slice(KEEP)) rmSync(join(dir, `${old}.jsonl`), { force: true });
    return path;
  } catch (thrown) {
    return `nowhere (${messageOf(thrown)})`;
  }
}

function readable(_key: string, value: unknown): unknown {
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value);
  return ArrayBuffer.isView(value) ? Array.from(value as unknown as ArrayLike<number>) : value;
}
