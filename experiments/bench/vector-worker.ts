/** One thread of the pool that steps the vectorised grid worlds: measures itself, answers with its rate, and ends. */
import { parentPort, workerData } from 'node:worker_threads';
import { stepVectorised } from './babyai-steps.ts';
import { median } from './median.ts';

export interface VectorInit {
  readonly numEnvs: number;
  /** Runs after one to warm up. */
  readonly runs: number;
  /** Seconds of one run. */
  readonly seconds: number;
}

/** Steps per second, the median over runs. */
export type VectorRate = number;

if (parentPort) {
  const { numEnvs, runs, seconds } = workerData as VectorInit;
  const round = stepVectorised(numEnvs);
  const rates: number[] = [];
  for (let run = -1; run < runs; run++) {
    const began = performance.now();
    let count = 0;
    while (performance.now() - began < seconds * 1000) count += round()[0];
    if (run >= 0) rates.push((1000 * count) / (performance.now() - began));
  }
  parentPort.postMessage(median(rates) satisfies VectorRate);
}
