/** Recorded episodes of ScienceWorld 1.3.0: no difference in any step, list or thing. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parity as replay } from '../../../envs/sciworld/parity.ts';
import { readRecords } from '../../../experiments/parity.ts';
import type { Difference } from '../../../src/core/parity.ts';

const folder = join(process.env.LONGPLAY_GOLDEN ?? '../shared/golden', 'sciworld');
const files = ['v1.3.0.jsonl.gz', 'http.jsonl.gz', 'v1.3.0-more.jsonl.gz'].map((name) => join(folder, name));
const absent = files.filter((file) => !existsSync(file));
if (absent.length > 0) console.log(`skipped: no golden traces (${absent.join(', ')}); set LONGPLAY_GOLDEN`);

/** All episodes, or every tenth and so one or more of most tasks. */
const EVERY = process.env.LONGPLAY_LONG === '1' ? 1 : 11;

interface Step {
  observation: string;
  reward: number;
  score: number;
  moves: number;
  done: boolean;
  n_valid: number;
  valid_crc: number;
}

async function differences(records: readonly unknown[]): Promise<Difference[]> {
  const found: Difference[] = [];
  await replay(records, (difference) => found.push(difference), 'sciworld');
  return found;
}

describe.skipIf(absent.length > 0)('parity with ScienceWorld 1.3.0', () => {
  const records = absent.length > 0 ? [] : readRecords(files[0]!);

  it('has no difference in any recorded step', { timeout: 600_000 }, async () => {
    const chosen = records.filter((_, i) => i % EVERY === 0);
    expect((await differences(chosen)).slice(0, 3)).toEqual([]);
  });

  it('has none where books are read, and jam, sugar, paint, hive and couch come up', { timeout: 120_000 }, async () => {
    expect((await differences(readRecords(files[2]!))).slice(0, 3)).toEqual([]);
  });

  it('has no difference in the tasks that AgentGym resets to', { timeout: 120_000 }, async () => {
    expect(await differences(readRecords(files[1]!))).toEqual([]);
  });

  it('sees one changed character, reward, score, move, flag, list or thing', { timeout: 120_000 }, async () => {
    const shortest = records.reduce((a, b) =>
      (b as { steps: unknown[] }).steps.length < (a as { steps: unknown[] }).steps.length ? b : a,
    ) as { steps: Step[]; state: { name: string }; initial_valid: string[] };
    const changed = async (change: (step: Step, episode: typeof shortest) => void) => {
      const episode = structuredClone(shortest);
      change(episode.steps[0]!, episode);
      return (await differences([episode])).length;
    };
    expect(await changed(() => {})).toBe(0);
    expect(await changed((step) => (step.observation += ' '))).toBe(1);
    expect(await changed((step) => (step.reward += 1))).toBe(1);
    expect(await changed((step) => (step.score += 1))).toBe(1);
    expect(await changed((step) => (step.moves += 1))).toBe(1);
    expect(await changed((step) => (step.done = !step.done))).toBe(1);
    expect(await changed((step) => (step.n_valid += 1))).toBe(1);
    expect(await changed((step) => (step.valid_crc += 1))).toBe(1);
    expect(await changed((_, episode) => (episode.state.name += 'x'))).toBe(1);
    expect(await changed((_, episode) => episode.initial_valid.pop())).toBe(1);
  });
});
