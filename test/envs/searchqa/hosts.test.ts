/** SearchQA on real threads: one index for all of them, and a retriever that fails an episode without a reward. */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { createEnvPool, type EnvPool } from '../../../actors/env/env-pool.ts';
import type { EnvEvent } from '../../../actors/env/protocol.ts';
import { registry } from '../../../envs/registry.ts';
import { share } from '../../../envs/searchqa/index.ts';
import { buildIndex } from '../../../src/retrieval/build-index.ts';
import { temporaryFolder } from '../../support/small-run.ts';

const folder = temporaryFolder('searchqa-hosts');
const pools: EnvPool[] = [];
afterAll(async () => {
  for (const pool of pools) await pool.close();
  rmSync(folder, { recursive: true, force: true });
});

const questions = join(folder, 'questions.jsonl');
const corpus = join(folder, 'corpus.jsonl');
writeFileSync(questions, JSON.stringify({ question: 'Where is it?', golden_answers: ['Ardby'], data_source: 'nq' }));
writeFileSync(
  corpus,
  ['"Ardby"\nIt lies at Ardby.', '"Other"\nText.']
    .map((contents, id) => JSON.stringify({ id: `${id}`, contents }))
    .join('\n'),
);

async function pool(options: Record<string, unknown>, threads: number, shared?: unknown) {
  const made = await createEnvPool({
    envs: [{ id: 'searchqa', url: registry.searchqa!, options, shared }],
    threads,
    isolation: 'thread',
    stepDeadlineMs: 10_000,
    openDeadlineMs: 20_000,
  });
  pools.push(made);
  return made;
}

/** Opens an episode and searches. @returns what came back */
function search(on: EnvPool, episode: number): Promise<EnvEvent> {
  return new Promise((resolve) => {
    on.observations$.subscribe((event) => {
      if (event.episode !== episode) return;
      if (event.type === 'failed' || event.turn === 1) resolve(event);
      else on.send({ type: 'step', episode, turn: 1, action: '<search>Ardby</search>' });
    });
    on.send({ type: 'open', episode, attempt: 1, task: { env: 'searchqa', index: 0, seed: 0 } });
  });
}

describe('searchqa on threads', { timeout: 60_000 }, () => {
  it('reads an index file once, for every thread', async () => {
    const index = join(folder, 'corpus.index');
    await buildIndex(corpus, index);
    const options = { data: { test: questions }, retriever: { index, corpus } };
    const shared = await share(options);
    rmSync(index); // a second read of it fails
    const two = await pool(options, 2, shared);
    for (const event of await Promise.all([search(two, 0), search(two, 1)])) {
      expect(event).toMatchObject({
        step: { observation: '<information>Doc 1(Title: "Ardby") It lies at Ardby.</information>' },
      });
    }
    await expect(pool(options, 1)).rejects.toThrow(/cannot read the index/);
  });

  it('fails an episode whose retriever cannot be reached, and pays nothing', async () => {
    const retriever = { url: 'http://127.0.0.1:9', retries: 0 };
    const event = await search(await pool({ data: { test: questions }, retriever }, 1), 0);
    expect(event).toMatchObject({
      type: 'failed',
      failure: { cause: 'unreachable', message: expect.stringMatching(/retriever http:\/\/127\.0\.0\.1:9/) },
    });
  });
});
