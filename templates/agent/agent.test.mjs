// Run: node --test
import assert from 'node:assert/strict';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { rollout } from 'longplay';
import { tasks } from './agent.mjs';

const agent = fileURLToPath(new URL('./agent.mjs', import.meta.url));

test('every note names its place, and the held-out ones are others', () => {
  for (const { note, place } of tasks) assert.ok(note.includes(place));
  const [train, held] = ['train', 'test'].map((split) => tasks.filter((task) => task.split === split));
  assert.ok(train.length > held.length && held.length > 0);
});

test('the agent plays whole episodes under a random policy, and none fails', async () => {
  const dir = join(mkdtempSync(join(tmpdir(), 'NAME-')), 'random');
  const { finished, summary } = await rollout({
    config: { agent, policy: { kind: 'random' } },
    episodes: 16,
    horizon: 4,
    dir,
  }).done;
  assert.equal(finished, 16);
  assert.ok(summary.all.success.value < 1);
});
