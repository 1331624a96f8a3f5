/** Environment steps per second: bare, in one thread, and through the env hosts. */
import { availableParallelism } from 'node:os';
import { createEnvPool } from '../../actors/env/env-pool.ts';
import type { EnvEvent } from '../../actors/env/protocol.ts';
import { registry } from '../../envs/registry.ts';
import { Rng } from '../../src/core/rng.ts';
import { babyaiSteps, ORIGINAL } from './babyai-steps.ts';
import type { Bench, Figure } from './contract.ts';
import { sciworldSteps } from './sciworld-steps.ts';
import { searchqaSteps } from './searchqa-steps.ts';
import { tau2Steps } from './tau2-steps.ts';
import { terminalSteps } from './terminal-steps.ts';
import { ORIGINAL_STEPS_PER_SECOND, textcraftSteps } from './textcraft-steps.ts';
import { webarenaSteps } from './webarena-steps.ts';

/** Bench `envs`: steps per second of every world. */
export const bench: Bench = async () => {
  const bare = textcraftSteps();
  const figures: Figure[] = [
    {
      name: `TextCraft, one thread, ${bare.actions} actions`,
      value: bare.stepsPerSecond,
      unit: 'steps/s',
      reference: { name: "the original's", value: ORIGINAL_STEPS_PER_SECOND },
    },
  ];
  for (const episodes of [64, 256]) {
    for (const listActions of [true, false]) {
      figures.push({
        name: `TextCraft through one env host, ${episodes} episodes${listActions ? ', actions listed' : ''}`,
        value: await benchHosted('textcraft', 1, episodes, listActions),
        unit: 'steps/s',
        reference: { name: "the original's HTTP server, 32 clients", value: 945 },
      });
    }
  }
  for (const threads of new Set([1, availableParallelism()])) {
    const pool = await benchHosted('babyai', threads, 256, true);
    const name = `BabyAI text through ${threads} env ${threads === 1 ? 'host' : 'hosts'}, 256 episodes, actions listed`;
    const reference = { name: "the original's, in process", value: ORIGINAL.text };
    figures.push({ name: `${name}, the whole pool`, value: pool, unit: 'steps/s', reference });
    if (threads > 1)
      figures.push({ name: `${name}, per env thread`, value: pool / threads, unit: 'steps/s', reference });
  }
  figures.push(...(await babyaiSteps({ runs: 3, seconds: 0.5 })));
  figures.push(...sciworldSteps());
  figures.push(...(await searchqaSteps()));
  figures.push(...(await webarenaSteps()));
  figures.push(...(await terminalSteps()));
  figures.push(...(await tau2Steps()));
  return figures;
};

/** Random play through host threads, the main thread choosing; median of five windows of a second. */
async function benchHosted(id: string, threads: number, episodes: number, listActions: boolean): Promise<number> {
  const pool = await createEnvPool({
    envs: [{ id, url: registry[id]! }],
    threads,
    isolation: 'thread',
    stepDeadlineMs: 10_000,
    openDeadlineMs: 30_000,
    listActions,
  });
  const rng = Rng.fromSeed(1);
  const tables = new Map<number, string[]>();
  let next = 0;
  let steps = 0;
  const open = () => {
    const episode = next++;
    tables.set(episode, []);
    pool.send({ type: 'open', episode, attempt: 1, task: { env: id, index: episode % 400, seed: episode } });
  };
  pool.observations$.subscribe((event: EnvEvent) => {
    if (event.type === 'failed') throw new Error(event.failure.message);
    const { episode, turn, step, actions } = event;
    if (turn > 0) steps++;
    const table = tables.get(episode)!;
    table.push(...event.newActions);
    if (step.kind === 'terminated' || turn >= 20) {
      if (step.kind !== 'terminated') pool.send({ type: 'close', episode });
      tables.delete(episode);
      open();
      return;
    }
    const action = actions.length > 0 ? table[rng.pick([...actions])]! : 'inventory';
    pool.send({ type: 'step', episode, turn: turn + 1, action });
  });
  for (let i = 0; i < episodes; i++) open();
  const rates: number[] = [];
  for (let window = -1; window < 5; window++) {
    const before = steps;
    const start = performance.now();
    await new Promise((resolve) => setTimeout(resolve, 1000));
    if (window >= 0) rates.push((1000 * (steps - before)) / (performance.now() - start));
  }
  await pool.close();
  return rates.sort((a, b) => a - b)[2]!;
}
