// Run: node --test
import assert from 'node:assert/strict';
import test from 'node:test';
import { envLaws } from 'longplay/testing';
import * as world from './env.mjs';

const { createEnv, createOracle } = world;

// Texts a policy of this world might send, the nearly right ones above all.
const nearly = ['guess', 'guess 0', 'guess -1', 'guess 999', 'guess 4.5', 'guess four', 'Guess 4', '4'];
const texts = (rng) => (rng.int(2) === 0 ? rng.pick(nearly) : `guess ${rng.int(40)}`);

test('keeps the laws of every environment', () => envLaws(() => createEnv(), { texts, module: world }));

test('the oracle finds every number in the turns that halving takes', async () => {
  const env = createEnv();
  for (let index = 0; index < env.tasks.count; index++) {
    const task = { env: env.id, index, seed: 7 };
    const session = await env.open(task);
    const oracle = createOracle()(task);
    let step = session.first;
    for (let turn = 1; turn <= 6 && step.kind !== 'terminated'; turn++) {
      step = await session.step(oracle(step) ?? '');
    }
    assert.equal(step.kind, 'terminated', `task ${index} is not solved in 6 turns`);
  }
});

test('a guess outside the range that is left changes nothing', async () => {
  const session = await createEnv().open({ env: 'NAME', index: 0, seed: 1 });
  const before = session.actions();
  await session.step('guess 999');
  assert.deepEqual(session.actions(), before);
});
