/** Checkpoints of another run are not taken for a run's own, whoever reads them. */
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { loadCheckpointOf, loadNewestOf } from '../../src/learning/learner/run-checkpoint.ts';
import { createRunFolder } from '../../src/run/run-folder.ts';
import { startPolicyServer } from '../../src/run/serve-trained-policy.ts';
import { saveCheckpoint } from '../../src/storage/checkpoint.ts';
import { readIdentity } from '../../src/storage/run-identity.ts';
import { makePolicyRun } from '../support/policy-run.ts';
import { smallConfig } from '../support/small-run.ts';
import { typed } from '../support/typed.ts';

const root = mkdtempSync(join(tmpdir(), 'longplay-identity-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const [own, other] = ['own', 'other'].map((name) => join(root, name)) as [string, string];
const SMALL = 'policy.model={hiddenSize: 16, layers: 1, heads: 2}';

beforeAll(async () => {
  await makePolicyRun(own, 'textcraft', [SMALL, 'seed=1']);
  await makePolicyRun(other, 'textcraft', [SMALL, 'seed=2']);
});

/** A copy of the run with a checkpoint of the other: `update` 7 is in the place of its own. */
function mixed(name: string, update: number): string {
  const dir = join(root, name);
  cpSync(own, dir, { recursive: true });
  const { tensors, state } = loadNewestOf(other);
  const content = { tensors, state: { ...(state as { readonly format: number }), version: update } };
  expect(saveCheckpoint(join(dir, 'checkpoints'), update, content).ok).toBe(true);
  return dir;
}

describe('the identity of a run', () => {
  it('follows from seed, configuration and parent', () => {
    const make = (name: string, config = smallConfig()) => {
      createRunFolder(join(root, name), config);
      return readIdentity(join(root, name));
    };
    const first = make('a');
    expect(first).toMatch(/^[\da-f]{32}$/);
    expect(make('b')).toBe(first);
    const seeded = make('c', smallConfig({ seed: 2 }));
    const { policy } = smallConfig();
    const [fromA, fromC] = ['a', 'c'].map((parent) =>
      make(`of-${parent}`, smallConfig({ policy: { ...policy, init: join(root, parent) } })),
    );
    expect(new Set([first, seeded, fromA, fromC]).size).toBe(4);
    expect(JSON.parse(readFileSync(join(root, 'of-a', 'run.json'), 'utf8'))).toMatchObject({ parent: first });
  });

  it('is in its checkpoints: one of another run is passed over, or nothing is loaded', () => {
    const later = loadNewestOf(mixed('later', 9));
    expect(later.update).toBe(7);
    const ids = `it belongs to run ${readIdentity(other)}, the folder is of run ${readIdentity(own)}`;
    expect(later.warnings).toEqual([
      expect.stringContaining(`checkpoints/9 cannot be used and was passed over: ${ids}`),
    ]);
    const only = mixed('only', 7);
    expect(() => loadNewestOf(only)).toThrow(ids);
    expect(() => loadCheckpointOf(only, 7)).toThrow(ids);
  });

  it('is looked at by all that load a checkpoint', { timeout: 60_000 }, async () => {
    const only = mixed('loaded', 7);
    await expect(startPolicyServer(only)).rejects.toThrow(/it belongs to run/);
    const yaml = join(root, 'small.yaml');
    writeFileSync(yaml, stringify(smallConfig()));
    for (const args of [
      ['eval', only],
      ['train', '--resume', only],
      ['rollout', '--policy', only, '--runs', join(root, 'runs')],
      ['train', yaml, '--set', `policy.init=${only}`, '--runs', join(root, 'runs')],
    ]) {
      const { status, stderr } = await typed(...args);
      expect([args[0], status]).toEqual([args[0], 2]);
      expect(stderr).toMatch(/it belongs to run/);
    }
    expect(existsSync(join(root, 'runs')) ? readdirSync(join(root, 'runs')) : []).toEqual([]);
  });

  it('is not asked of a run of an earlier version, and a file that is none is refused in one line', () => {
    const earlier = mixed('earlier', 9);
    rmSync(join(earlier, 'run.json'));
    expect(loadNewestOf(earlier).update).toBe(9);
    writeFileSync(join(earlier, 'run.json'), '{"format":1,"id":7}');
    expect(() => loadNewestOf(earlier)).toThrow(/run\.json: expected the identity of a run: expected an id of 32/);
  });
});
