/**
 * Rollouts of a small policy through the gateway, beside the same policy in the world itself, in turn in the same run: one
 * program opens the world and asks a model which of its actions to take (test/fixtures/agents), the other is the world. Both are read
 * through the default view, so the policy computes the same.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { checkRunConfig } from '../../src/config/load.ts';
import type { RunConfigInput } from '../../src/config/run-config.ts';
import { evaluationPlan } from '../../src/run/evaluate-run.ts';
import { worldUrl } from '../../src/run/find-world.ts';
import { startRun } from '../../src/run/start-run.ts';
import { packageRoot } from '../../src/runtime/module-url.ts';
import type { Figure } from './contract.ts';
import { median } from './median.ts';

const fixture = (name: string) => new URL(`test/fixtures/agents/${name}`, packageRoot);
/** Turns of an episode. */
const HORIZON = 8;
/** Share of the native rate that is asked. */
const BAR = 0.6;

/** Measures both. */
export async function rolloutFigures(rounds = 3): Promise<readonly Figure[]> {
  const dir = mkdtempSync(join(tmpdir(), 'longplay-bench-'));
  const module = fileURLToPath(fixture('textcraft-agent.mjs'));
  const runs = {
    agent: await start(join(dir, 'agent'), { id: 'agent', options: { module } }),
    native: await start(join(dir, 'native'), { id: fileURLToPath(fixture('textcraft-plain.mjs')) }),
  };
  try {
    const rates: { readonly agent: number; readonly native: number }[] = [];
    for (let round = -1; round < rounds; round++) {
      const rate = { agent: await play(runs.agent, round), native: await play(runs.native, round) };
      if (round >= 0) rates.push(rate);
    }
    return [
      {
        name: 'rollout of an agent',
        value: median(rates.map(({ agent }) => agent)),
        unit: 'turns/s',
        reference: {
          name: 'the same policy in the world itself',
          value: median(rates.map(({ native }) => native)),
          ratio: median(rates.map(({ agent, native }) => agent / native)),
        },
        note: `bar ${BAR} of it; the program's own client and world are part of it`,
      },
    ];
  } finally {
    for (const { run } of Object.values(runs)) await run.stop();
    rmSync(dir, { recursive: true, force: true });
  }
}

async function start(dir: string, env: RunConfigInput['env']) {
  const config = checkRunConfig(
    {
      env,
      horizon: { type: 'fixed', rounds: HORIZON },
      stop: { updates: 1 },
      rollout: { concurrentGroups: 32 },
      trace: { everyGroups: 0 },
    },
    'bench',
  );
  const run = await startRun({
    config,
    dir,
    mode: 'async',
    envModule: worldUrl(config.env.id, config.env.options),
    learn: false,
  });
  return { run, config };
}

/** Plays an evaluation. @returns turns a second */
async function play({ run, config }: Awaited<ReturnType<typeof start>>, round: number): Promise<number> {
  const began = performance.now();
  const plan = evaluationPlan(run.env, config, HORIZON, 'sampled');
  const { results } = await run.evaluate({ ...plan, name: `bench ${round}` });
  const turns = results.flatMap((one) => one.turns).reduce((a, b) => a + b, 0);
  return turns / ((performance.now() - began) / 1000);
}
