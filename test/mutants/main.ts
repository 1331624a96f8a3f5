/**
 * Command `npm run mutants -- <files>`: changes one thing at a time in copies of source files, and reports which changes no
 * test notices.
 *
 *     npm run mutants -- src/algo/gae.ts src/core/rng.ts --max 100 --seed 2
 *
 * Works in a copy of the tree; the checkout is not touched. A file's tests are the one that mirrors it and those that import
 * it; `--tests` names others. A mutant under which the tests take ten times as long has been noticed too.
 */
import { spawn, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import { runCommand } from '../../src/cli/fail.ts';
import { collectFlag, wholeNumber } from '../../src/cli/flags.ts';
import { newProgram, runAsScript } from '../../src/cli/program.ts';
import { ProgressLine } from '../../src/cli/progress-line.ts';
import { err, out } from '../../src/console/terminal.ts';
import { messageOf, UserError } from '../../src/core/errors.ts';
import { Rng } from '../../src/core/rng.ts';
import { packageRoot } from '../../src/runtime/module-url.ts';
import { applyMutant, listMutants, type Mutant } from './mutate.ts';

const root = fileURLToPath(packageRoot);

interface Planned extends Mutant {
  readonly file: string;
}
type Outcome = 'found' | 'lived' | 'too slow';

/** Copy of the tree in which mutants are made. Its `node_modules` are those of the checkout. */
function copyTree(): string {
  const copy = mkdtempSync(join(tmpdir(), 'longplay-mutants-'));
  const { stdout } = spawnSync('git', ['ls-files', '-co', '--exclude-standard'], { cwd: root, encoding: 'utf8' });
  for (const file of stdout.split('\n')) {
    if (file === '') continue;
    mkdirSync(dirname(join(copy, file)), { recursive: true });
    try {
      cpSync(join(root, file), join(copy, file));
    } catch {
      // removed from the checkout, and still in the index
    }
  }
  for (const name of ['node_modules', 'dist']) symlinkSync(join(root, name), join(copy, name));
  return copy;
}

/** Tests of a file: its mirror, and those that import it, in the mirror's folder; of all folders where there is none in it. */
function testsOf(file: string): string[] {
  const mirror = file.replace(/^src\//, 'test/').replace(/\.ts$/, '.test.ts');
  const tests = readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => join('test', name));
  const importing = tests.filter((test) => {
    if (test === mirror || test === join('test', mirror)) return true;
    const imported = readFileSync(join(root, test), 'utf8').matchAll(/from '(\.[^']+)'/g);
    return [...imported].some(([, path]) => relative(root, resolve(root, dirname(test), path!)) === file);
  });
  const near = importing.filter((test) => test.startsWith(`${dirname(mirror)}/`));
  return near.length > 0 ? near : importing;
}

/** Runs tests in the copy. @returns the exit code and seconds; no code where they took longer than `maxMs` */
function runTests(
  copy: string,
  tests: readonly string[],
  maxMs: number,
): Promise<{ code?: number | null; ms: number }> {
  const began = performance.now();
  const vitest = join(root, 'node_modules/vitest/vitest.mjs');
  const args = [
    vitest,
    'run',
    '--dir',
    'test',
    '--bail',
    '1',
    '--testTimeout',
    '120000',
    '--maxWorkers',
    '1',
    ...tests,
  ];
  const child = spawn(process.execPath, args, { cwd: copy, stdio: 'ignore', detached: true });
  return new Promise((done) => {
    const timer = setTimeout(() => {
      process.kill(-child.pid!, 'SIGKILL');
      done({ ms: performance.now() - began });
    }, maxMs);
    child.on('exit', (code) => {
      clearTimeout(timer);
      done({ code, ms: performance.now() - began });
    });
  });
}

interface MutantFlags {
  readonly tests: readonly string[];
  readonly max: number;
  readonly skip: number;
  readonly seed: number;
  readonly json?: boolean;
}

/** Program of `npm run mutants`. */
export function mutantsProgram(): Command {
  return newProgram(
    'npm run mutants --',
    'Change one thing at a time in copies of source files; report what no test notices.',
  )
    .argument('<files...>', 'source files')
    .option(
      '--tests <path>',
      'tests to run instead of those that mirror or import the file; give it once for each',
      collectFlag,
      [],
    )
    .option('--max <n>', 'mutants to try, drawn from all', wholeNumber(1), 100)
    .option('--skip <n>', 'of these, mutants tried before: goes on with an interrupted draw', wholeNumber(0), 0)
    .option('--seed <n>', 'seed of the draw', wholeNumber(0), 1)
    .option('--json', 'one JSON object')
    .action((files: string[], flags: MutantFlags) => runCommand(() => tryMutants(files, flags)));
}

function read(file: string): string {
  try {
    return readFileSync(join(root, file), 'utf8');
  } catch (thrown) {
    throw new UserError('BAD_ARGUMENT', `mutants: ${file}: ${messageOf(thrown)}`);
  }
}

async function tryMutants(paths: readonly string[], flags: MutantFlags): Promise<void> {
  const files = paths.map((path) => relative(root, resolve(path)));
  const all = files.flatMap((file) => listMutants(read(file)).map((mutant): Planned => ({ ...mutant, file })));
  const rng = Rng.fromSeed(flags.seed);
  const planned = all
    .map((mutant) => ({ mutant, order: rng.float() }))
    .sort((a, b) => a.order - b.order)
    .slice(0, flags.max)
    .map(({ mutant }) => mutant)
    .sort((a, b) => a.file.localeCompare(b.file) || a.start - b.start)
    .slice(flags.skip);

  const copy = copyTree();
  process.on('exit', () => rmSync(copy, { recursive: true, force: true }));
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(130));
  const tests = new Map<string, readonly string[]>();
  const limits = new Map<string, number>();
  const counts: Record<Outcome, number> = { found: 0, lived: 0, 'too slow': 0 };
  const lived: (Planned & { readonly was: string })[] = [];
  const began = performance.now();
  const progress = new ProgressLine();
  for (const [n, mutant] of planned.entries()) {
    const { file } = mutant;
    const path = join(copy, file);
    const source = read(file);
    if (!tests.has(file)) {
      const own = flags.tests.length > 0 ? flags.tests : testsOf(file);
      if (own.length === 0)
        throw new UserError('BAD_ARGUMENT', `mutants: ${file}: no test imports it; name some with --tests`);
      const { code, ms } = await runTests(copy, own, 600_000);
      if (code !== 0)
        throw new UserError('BAD_ARGUMENT', `mutants: ${file}: its tests fail without a mutant (${own.join(', ')})`);
      tests.set(file, own);
      limits.set(file, 10 * ms + 10_000);
    }
    writeFileSync(path, applyMutant(source, mutant));
    const { code } = await runTests(copy, tests.get(file)!, limits.get(file)!);
    writeFileSync(path, source);
    const outcome: Outcome = code === undefined ? 'too slow' : code === 0 ? 'lived' : 'found';
    counts[outcome]++;
    const was = source.slice(mutant.start, mutant.end);
    if (outcome === 'lived') {
      lived.push({ ...mutant, was });
      err.line(`lived: ${file}:${mutant.line} ${was.slice(0, 60)} → ${mutant.text}`);
    }
    const left = ((performance.now() - began) / (n + 1)) * (planned.length - n - 1);
    progress.show(() => `${n + 1} of ${planned.length} mutants, about ${Math.ceil(left / 60_000)} min left`);
  }
  progress.end();
  const noticed = counts.found + counts['too slow'];
  if (flags.json) out.json({ format: 1, of: all.length, ...counts, lived });
  else {
    const slow = counts['too slow'];
    out.line(
      `${planned.length} of ${all.length} mutants: ${noticed} found (${slow} by their time), ${counts.lived} lived`,
    );
  }
  if (counts.lived > 0) process.exitCode = 1;
}

await runAsScript(import.meta.url, mutantsProgram);
