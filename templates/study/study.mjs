// @ts-check
/**
 * NAME: is a stretched horizon better than a long one, at equal budgets?
 *
 * Trains each arm under each seed and prints success on the held-out tasks, mean and 95 % interval over seeds. A run that is there
 * is not trained again, so an interrupted study goes on.
 *
 * Run: node study.mjs [seeds] [env steps]
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Arms by their name; they differ by the horizon alone. */
export const arms = {
  stretched: { type: 'scaling_inter_stepwise', rounds: [4, 8], steps_scaling_inter: 10 },
  long: { type: 'fixed', rounds: 8 },
};

const base = fileURLToPath(new URL('./base.yaml', import.meta.url));

/**
 * Trains what is missing, then compares all runs.
 * @param {{ seeds: number, envSteps: number, runs?: string }} options
 * @returns {unknown} what `longplay compare --json` prints
 */
export function runStudy({ seeds, envSteps, runs = 'runs' }) {
  const names = Object.keys(arms).flatMap((arm) => Array.from({ length: seeds }, (_, i) => ({ arm, seed: i + 1 })));
  const folders = names.map(({ arm, seed }) => {
    const folder = `${runs}/${arm}-${seed}`;
    const set = [`horizon=${JSON.stringify(arms[arm])}`, `seed=${seed}`, `stop.envSteps=${envSteps}`];
    if (!existsSync(folder)) {
      longplay('train', base, '--name', `${arm}-${seed}`, '--runs', runs, ...set.flatMap((one) => ['--set', one]));
    } else if (!isFinished(folder)) longplay('train', '--resume', folder);
    return folder;
  });
  return JSON.parse(longplay('compare', ...folders, '--json'));
}

/** True for a run that was trained to its end, and not stopped before. @param {string} folder */
function isFinished(folder) {
  const path = `${folder}/results.json`;
  return existsSync(path) && JSON.parse(readFileSync(path, 'utf8')).ended?.why !== 'halted';
}

/** Runs a command of longplay. @param {string[]} args */
function longplay(...args) {
  const { status, stdout } = spawnSync('npx', ['longplay', ...args], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    shell: process.platform === 'win32',
  });
  if (status !== 0) throw new Error(`longplay ${args[0]} ended with ${status}`);
  return stdout;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [seeds = 3, envSteps = 4000] = process.argv.slice(2).map(Number);
  console.log(JSON.stringify(runStudy({ seeds, envSteps }), undefined, 2));
}
