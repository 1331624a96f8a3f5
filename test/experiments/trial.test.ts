import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { readStudy } from '../../experiments/trial.ts';
import { loadRunConfig } from '../../src/config/load.ts';

const file = new URL('../../experiments/quickstart.yaml', import.meta.url);
const config = loadRunConfig(readFileSync(file, 'utf8'), 'quickstart.yaml', []);

describe('seeds that are kept of a study', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'longplay-study-'));
    vi.spyOn(process.stdout, 'write').mockReturnValue(true);
  });
  afterEach(() => {
    vi.restoreAllMocks();
    rmSync(folder, { recursive: true });
  });

  const kept = (of: unknown) => {
    const file = join(folder, 'study.json');
    writeFileSync(file, JSON.stringify({ format: 2, config: of, trials: [{ seed: 1 }] }));
    return readStudy(pathToFileURL(file), config).trials.map(({ seed }) => seed);
  };

  it('are taken from a file whose keys have another order and that is older than an option', () => {
    const { maxLag, ...learner } = config.learner;
    expect(maxLag).toBeDefined();
    expect(kept(Object.fromEntries(Object.entries({ ...config, learner }).reverse()))).toEqual([1]);
  });

  it.each([
    ['another learning rate', { ...config, learner: { ...config.learner, learningRate: 0.5 } }],
    ['a key that is none any more', { ...config, colour: 'red' }],
  ])('are not taken from a file with %s', (_, other) => {
    expect(kept(other)).toEqual([]);
  });
});
