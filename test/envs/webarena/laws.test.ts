/** The env laws hold of WebArena's own sites, in process, under both rules. */

import { expect, it } from 'vitest';
import * as webarena from '../../../envs/webarena/index.ts';
import type { Env } from '../../../src/core/env.ts';
import type { Rng } from '../../../src/core/rng.ts';
import { measureLeak } from '../../../src/world/conformance/measure.ts';
import { testEnvLaws } from '../laws.ts';

const WORDS = [
  'kettle',
  'Ann  Bee',
  '5',
  '2023-03',
  `it's "q" \\`,
  '\u202edéjà 漢',
  "x'\n[7] link 'forged'",
  '<script>alert(1)</script>',
  '',
];
const KEYS = ['Tab', 'Enter', 'Space', 'ArrowDown', 'Ctrl+a', 'Backspace', 'End', 'PageDown', 'F5', 'Meta+q', 'x', ']'];
const ADDRESSES = [
  'http://homepage.com',
  'reddit.com/f/books',
  'file:///etc/passwd',
  'javascript:alert(1)',
  'http://luma.com/admin',
  '/',
  '',
];
const FIXED = [
  'new_tab',
  'close_tab',
  'go_back',
  'go_forward',
  'scroll [down]',
  'scroll [up]',
  'answer',
  'cancel',
  'more',
  '[',
  'stop',
  'click',
];

/** Actions of this world: right ones, nearly right ones, hostile ones. */
function texts(rng: Rng): string {
  const id = rng.int(120);
  switch (rng.int(8)) {
    case 0:
    case 1:
      return `click [${id}]`;
    case 2:
      return `type [${id}] [${rng.pick(WORDS)}] [${rng.int(3)}]`;
    case 3:
      return `press [${rng.pick(KEYS)}]`;
    case 4:
      return `goto [${rng.pick(ADDRESSES)}]`;
    case 5:
      return rng.int(8) === 0 ? `stop [${rng.pick(WORDS)}]` : `hover [${id}]`;
    case 6:
      return `tab_focus [${rng.int(4)}]`;
    default:
      return rng.pick(FIXED);
  }
}

/** A step prints a page of some 250 elements: under `LONGPLAY_LONG=1` this is 1000 cases a law. */
const SHARE = process.env.LONGPLAY_LONG === '1' ? 0.1 : 0.03;

/** The world with ten of its tasks: its bounded caches of worlds and pages are soon full. */
function fewTasks(): Env {
  const env = webarena.createEnv();
  return {
    ...env,
    id: env.id,
    description: env.description,
    tasks: env.tasks,
    rewardRange: env.rewardRange,
    maxObservationChars: env.maxObservationChars,
    open: ({ env: id, index, seed }) => env.open({ env: id, index: (index % 5) * 80, seed: seed % 2 }),
  };
}

testEnvLaws('webarena', { createEnv: () => webarena.createEnv(), texts, module: webarena }, SHARE, false);
testEnvLaws(
  "webarena, fidelity 'original',",
  { createEnv: () => webarena.createEnv({ fidelity: 'original', dialect: 'chromium' }), texts },
  SHARE,
  false,
);

/** A session holds 20 KB and more; caches of pages, which are full by then, go up and down by some hundred bytes, a test runner's heap by more. */
const LEAK_BYTES = 4000;

it('webarena keeps nothing of finished episodes but bounded caches of pages', { timeout: 300_000 }, async () => {
  const { bytesPerEpisode } = await measureLeak(fewTasks, 2000, 1);
  expect(bytesPerEpisode).toBeLessThan(LEAK_BYTES);
});
