/**
 * Rates of the terminal in one thread: commands of solutions, and fresh sessions, beside a process of bash for each. Needs just-bash.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { TerminalTask } from '../../envs/terminal/families/task.ts';
import { createEnv } from '../../envs/terminal/index.ts';
import { commandLine } from '../../envs/terminal/oracle.ts';
import { Shell } from '../../envs/terminal/shell.ts';
import { writeTask } from '../../envs/terminal/tasks.ts';
import type { Figure } from './contract.ts';
import { median } from './median.ts';

/** Step through the task table: a prime, so that families and levels come in turn. */
const STRIDE = 61;
const WARM_MS = 3000;
const ROUND_MS = 1000;

/** Measures commands and sessions a second, medians of rounds taken in turn. */
export async function terminalSteps(rounds = 3): Promise<Figure[]> {
  const env = createEnv();
  let next = 0;
  const draw = () => {
    next = (next + STRIDE) % env.tasks.count;
    return next;
  };
  const open = async () => {
    await env.open({ env: env.id, index: draw(), seed: next });
    return 1;
  };
  await rate(open, WARM_MS);
  await rate(() => runHere(draw()), WARM_MS);
  const [commands, processes, sessions, folders]: number[][] = [[], [], [], []];
  for (let round = 0; round < rounds; round++) {
    commands!.push(await rate(() => runHere(draw())));
    processes!.push(await rate(() => runInProcesses(draw())));
    sessions!.push(await rate(open));
    folders!.push(await rate(() => openFolder(draw())));
  }
  return [
    {
      name: 'Terminal, one thread, commands of solutions, each session fresh',
      value: median(commands!),
      unit: 'commands/s',
      reference: { name: 'a process of bash for each, a fresh folder for each session', value: median(processes!) },
    },
    {
      name: 'Terminal, one thread, fresh sessions',
      value: median(sessions!),
      unit: 'sessions/s',
      reference: { name: 'a folder with the files, and one process of bash', value: median(folders!) },
    },
  ];
}

/** Runs work again and again. @returns what it has counted, a second */
async function rate(work: () => number | Promise<number>, ms = ROUND_MS): Promise<number> {
  let count = 0;
  const began = performance.now();
  while (performance.now() - began < ms) count += await work();
  return (1000 * count) / (performance.now() - began);
}

function linesOf({ solution, choices }: TerminalTask): readonly string[] {
  return solution.map((call) => commandLine(call, choices));
}

/** Runs a solution in a shell of its own. @returns the number of its commands */
async function runHere(index: number): Promise<number> {
  const task = writeTask(index, index);
  const lines = linesOf(task);
  const shell = await Shell.open(task, index);
  for (const line of lines) await shell.run(line);
  return lines.length;
}

/** Runs a solution in a folder, each command by a process. */
function runInProcesses(index: number): number {
  const task = writeTask(index, index);
  const lines = linesOf(task);
  inFolder(task, (cwd) => {
    for (const line of lines) spawnSync('bash', ['-c', line], { cwd });
  });
  return lines.length;
}

function openFolder(index: number): number {
  inFolder(writeTask(index, index), (cwd) => spawnSync('bash', ['-c', 'true'], { cwd }));
  return 1;
}

function inFolder({ files }: TerminalTask, work: (folder: string) => void): void {
  const folder = mkdtempSync(join(tmpdir(), 'longplay-bench-'));
  try {
    for (const [path, { content, mode }] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), content, { mode });
    }
    work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
