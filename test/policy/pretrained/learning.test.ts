import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { computePairedGain, studyTiny, TINY_STUDY } from '../../../experiments/llm-tiny.ts';
import { loadRunConfig } from '../../../src/config/load.ts';

const long = process.env.LONGPLAY_LONG === '1';

it.each(['llm', 'llm-hybrid'])('experiments/%s.yaml is a configuration', (name) => {
  const path = new URL(`../../../experiments/${name}.yaml`, import.meta.url);
  const { policy, learner } = loadRunConfig(readFileSync(path, 'utf8'), name);
  expect(policy).toMatchObject({ kind: name === 'llm' ? 'checkpoint' : 'server', decoder: 'tokens', masked: false });
  expect(learner).toMatchObject({ recompute: true, maxTokens: 4096 });
});

it('a tiny chat model gains by reinforcement after fine-tuning, through the whole path', {
  timeout: 3_600_000,
}, async () => {
  const dir = mkdtempSync(join(tmpdir(), 'longplay-tiny-'));
  const lines: string[] = [];
  const study = { ...TINY_STUDY, seed: 1 };
  try {
    const { untrained, tuned, learnt } = await studyTiny(
      dir,
      long ? study : { ...study, groups: 2, planned: 12, updates: 1, tasks: 3, episodes: 1 },
      (line) => lines.push(line),
    );
    expect(learnt.episodes).toBe(tuned.episodes);
    // What was learnt is what is evaluated: the same seeds under the same weights would play the same episodes.
    expect([tuned.version, learnt.version]).toEqual([0, long ? study.updates : 1]);
    expect(lines.at(-1)).toMatch(/paired by goal/);
    if (!long) return; // the path; what it learns takes minutes
    const rate = ({ successes, episodes }: typeof tuned) => successes / episodes;
    expect(rate(tuned)).toBeGreaterThan(rate(untrained));
    console.log(lines.at(-1));
    expect(computePairedGain(tuned, learnt).low).toBeGreaterThan(0);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});
