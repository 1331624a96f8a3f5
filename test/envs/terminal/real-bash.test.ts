/**
 * Command lines of solutions, right and wrong, end alike in our shell and in bash with GNU tools: the same check of the files, the
 * same last output.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { TerminalTask } from '../../../envs/terminal/families/task.ts';
import { commandOf, type FormCall } from '../../../envs/terminal/forms.ts';
import { createEnv } from '../../../envs/terminal/index.ts';
import { commandLine } from '../../../envs/terminal/oracle.ts';
import { type FileState, Shell, type Tree } from '../../../envs/terminal/shell.ts';
import { writeTask } from '../../../envs/terminal/tasks.ts';
import { findFaults } from '../../../envs/terminal/verify.ts';
import { Rng } from '../../../src/core/rng.ts';

const SAMPLE = process.env.LONGPLAY_LONG === '1' ? 500 : 50;
const TOOLS = ['awk', 'cat', 'chmod', 'cp', 'cut', 'find', 'grep', 'head', 'join', 'jq', 'mkdir', 'mv', 'rm', 'sed', 'sort', 'tail', 'wc']; // biome-ignore format: a list

/** What this machine lacks for the comparison; nothing where it can be made. */
function missingHere(): string {
  const found = spawnSync(
    'bash',
    [
      '-c',
      `sed --version | head -1; for t in ${TOOLS.join(' ')}; do command -v $t > /dev/null || echo "lacks $t"; done`,
    ],
    { encoding: 'utf8' },
  );
  if (found.status !== 0) return 'lacks bash';
  return found.stdout.includes('GNU')
    ? found.stdout
        .split('\n')
        .filter((line) => line.startsWith('lacks'))
        .join(', ')
    : 'lacks GNU tools';
}

interface End {
  readonly faults: readonly string[];
  readonly output: string;
}

/** Ends a run: the last output is the answer, where one is asked for. */
function endOf(task: TerminalTask, tree: Tree, output: string): End {
  return { faults: findFaults(task, tree, output), output };
}

async function playHere(task: TerminalTask, lines: readonly string[]): Promise<End> {
  const shell = await Shell.open({ files: task.files }, 1);
  let output = '';
  for (const line of lines) output = (await shell.run(line)).stdout;
  return endOf(task, await shell.read(), output);
}

function playInBash(task: TerminalTask, lines: readonly string[]): End {
  const folder = mkdtempSync(join(tmpdir(), 'longplay-bash-'));
  try {
    for (const [path, { content, mode }] of Object.entries(task.files)) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), content, { mode });
    }
    const script = lines.map((line, i) =>
      i < lines.length - 1 ? `{ ${line}\n} > /dev/null 2>&1` : `{ ${line}\n} 2> /dev/null`,
    );
    const env = { PATH: process.env.PATH, HOME: folder, LC_ALL: 'C' };
    const { stdout } = spawnSync('bash', ['-c', `umask 022\n${script.join('\n')}`], {
      cwd: folder,
      env,
      encoding: 'utf8',
    });
    return endOf(task, readFolder(folder), stdout);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function readFolder(folder: string): Tree {
  const files = new Map<string, FileState>();
  const folders = new Set<string>();
  for (const path of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const stat = statSync(join(folder, path));
    if (stat.isDirectory()) folders.add(path);
    else files.set(path, { content: readFileSync(join(folder, path), 'utf8'), mode: stat.mode & 0o777 });
  }
  return { files, folders };
}

/** Spoils a solution: a call is left out or comes twice, two change places, a value becomes another, or it is another task's. */
function spoil(rng: Rng, task: TerminalTask, index: number): readonly string[] {
  const calls = [...task.solution];
  const at = rng.int(calls.length);
  const kind = rng.int(5);
  if (kind === 0 && calls.length > 1) calls.splice(at, 1);
  else if (kind === 1) calls.splice(at, 0, calls[at]!);
  else if (kind === 2 && calls.length > 1) calls.push(calls.shift()!);
  else if (kind === 3) {
    const { solution, choices } = writeTask(index, 99_999);
    return solution.map((call) => commandLine(call, choices));
  } else calls[at] = spoilCall(rng, calls[at]!, task);
  // A call that the tools refuse is made by nobody.
  return calls.flatMap(({ name, args }) => commandOf(name, args, task.choices).command ?? []);
}

function spoilCall(rng: Rng, call: FormCall, { choices }: TerminalTask): FormCall {
  const args = Object.entries(call.args);
  if (args.length === 0) return call;
  const [name, value] = rng.pick(args);
  const others = Object.values(choices).find((values) => values.includes(value))!;
  return { ...call, args: { ...call.args, [name]: rng.pick(others) } };
}

const lacks = missingHere();
describe.skipIf(lacks !== '')(`our shell and bash${lacks && `: ${lacks}`}`, () => {
  const { count } = createEnv().tasks;
  const rng = Rng.fromSeed(20);
  const drawn = Array.from({ length: SAMPLE }, (_, n) => ({
    index: Math.floor((n * count) / SAMPLE),
    seed: rng.next(),
  }));

  it(`agree on ${SAMPLE} solutions`, async () => {
    for (const { index, seed } of drawn) {
      const task = writeTask(index, seed);
      const lines = task.solution.map((call) => commandLine(call, task.choices));
      const [ours, theirs] = [await playHere(task, lines), playInBash(task, lines)];
      expect([index, lines, ours]).toEqual([index, lines, theirs]);
      expect([index, theirs.faults]).toEqual([index, []]);
    }
  }, 600_000);

  it(`agree on ${SAMPLE} wrong ones`, async () => {
    let wrong = 0;
    for (const { index, seed } of drawn) {
      const task = writeTask(index, seed);
      const lines = spoil(rng, task, index);
      const [ours, theirs] = [await playHere(task, lines), playInBash(task, lines)];
      expect([index, lines, ours]).toEqual([index, lines, theirs]);
      if (theirs.faults.length > 0) wrong++;
    }
    expect(wrong).toBeGreaterThan(SAMPLE / 2);
  }, 600_000);
});

describe('this machine', () => {
  it.skipIf(lacks !== '')('has the bash that the agreement speaks of', () => {
    expect(execFileSync('bash', ['--version'], { encoding: 'utf8' })).toContain('GNU bash');
  });
});
