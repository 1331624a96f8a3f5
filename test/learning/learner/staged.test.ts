/** A world whose actions are put together in stages is learnt like any other: a stage is one more decision. */
import { expect, it } from 'vitest';
import { learnToy, toyConfig } from '../../support/toy-run.ts';

const long = process.env.LONGPLAY_LONG === '1';

const ways = [
  ['choices under a view of its own', 'staged-view', { decoder: 'choice' }],
  ['choices under the default view', 'staged-default', { decoder: 'choice' }],
  ['spelt stages', 'staged-view', { decoder: 'tokens', maxTokens: 4 }],
] as const;

it.each(long ? ways : ways.slice(0, 2))(
  'by %s',
  async (_, module, policy) => {
    const config = toyConfig('bandit', { stop: { updates: 80 }, horizon: { type: 'fixed', rounds: 7 }, policy });
    const { score, rows } = await learnToy(config, new URL(`../../support/${module}.ts`, import.meta.url));
    expect(rows[0]!.success).toBeLessThan(0.4); // else there would be nothing to learn
    expect(score).toBeGreaterThanOrEqual(0.8);
  },
  120_000,
);
