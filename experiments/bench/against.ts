/**
 * Compares this build with another commit's: `npm run bench -- rollout --against <commit>`.
 *
 * The other commit is checked out into a git worktree in a temporary folder, linked to this checkout's `node_modules`, and
 * built. Both builds then run their own bench in processes that alternate, so that a busy machine slows both. A figure that
 * both report under one name and unit is compared by the median of the pairs' ratios; where it stands beside a reference, so
 * is its ratio to that reference. The rows are appended to `experiments/results/against.jsonl`.
 */
import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { availableParallelism, cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { UserError } from '../../src/core/errors.ts';
import { columns } from '../../src/learning/evaluation/table.ts';
import { packageRoot } from '../../src/runtime/module-url.ts';
import type { Figure } from './contract.ts';
import { median } from './median.ts';

const here = fileURLToPath(packageRoot);

/** Figure of both builds. */
export interface Compared {
  readonly name: string;
  readonly unit: string;
  /** Medians over the rounds. */
  readonly here: number;
  readonly there: number;
  /** Median of `here / there`, pair by pair. */
  readonly ratio: number;
  /** Ratio of each to its reference, and the median of their ratios; absent where the figure has no reference. */
  readonly toReference?: { readonly here: number; readonly there: number; readonly ratio: number };
}

/** Rounds of a comparison. */
const ROUNDS = 3;

/**
 * Benches this build and that of `commit` in turn, prints a table and appends its rows.
 * @param rounds runs of each, ≥ 1
 * @throws {UserError} BAD_ARGUMENT for a commit that git does not know, that does not build, or that has no such bench
 */
export function compareAgainst(names: readonly string[], commit: string, rounds = ROUNDS): void {
  const there = resolveCommit(commit);
  const folder = mkdtempSync(join(tmpdir(), 'longplay-against-'));
  const root = join(folder, 'build');
  try {
    git('worktree', 'add', '--detach', root, there);
    symlinkSync(join(here, 'node_modules'), join(root, 'node_modules'));
    build(root, commit);
    for (const name of names) compareBench(name, root, there, rounds);
  } finally {
    try {
      git('worktree', 'remove', '--force', root);
    } catch {
      // It was not made: what went wrong is being thrown already.
    }
    rmSync(folder, { recursive: true, force: true });
  }
}

function compareBench(name: string, root: string, there: string, rounds: number): void {
  const pairs: { here: readonly Figure[]; there: readonly Figure[] }[] = [];
  for (let round = 0; round < rounds; round++) {
    // The order alternates, so that neither always has the warmer machine.
    const own = round % 2 === 0 ? runBench(here, name) : undefined;
    const other = runBench(root, name);
    pairs.push({ here: own ?? runBench(here, name), there: other });
  }
  const compared = compareFigures(pairs);
  const dirty = git('status', '--porcelain', '--untracked-files=no') === '' ? '' : '+';
  const row = {
    at: new Date().toISOString(),
    bench: name,
    commit: `${git('rev-parse', '--short', 'HEAD')}${dirty}`,
    against: there.slice(0, 8),
    rounds,
    machine: `${cpus()[0]?.model}, ${availableParallelism()} cores, node ${process.versions.node}`,
    load: Number(loadavg()[1]!.toFixed(1)),
    figures: compared,
  };
  appendFileSync(new URL('experiments/results/against.jsonl', packageRoot), `${JSON.stringify(row)}\n`);
  process.stdout.write(`\n${name}: ${row.commit} against ${row.against}, ${rounds} rounds, load ${row.load}\n`);
  process.stdout.write(`${formatCompared(compared).join('\n')}\n`);
}

/** Compares figures that both sides report under one name, unit and reference. */
export function compareFigures(
  pairs: readonly { readonly here: readonly Figure[]; readonly there: readonly Figure[] }[],
): Compared[] {
  return (pairs[0]?.here ?? []).flatMap(({ name, unit, reference }) => {
    const key = keyOf({ name, unit, reference });
    const found = pairs.flatMap(({ here, there }) => {
      const own = here.find((one) => keyOf(one) === key);
      const other = there.find((one) => keyOf(one) === key);
      return own && other ? [{ own, other }] : [];
    });
    if (found.length === 0) return [];
    const of = (value: (pair: (typeof found)[number]) => number) => median(found.map(value));
    const compared = {
      name,
      unit,
      here: of(({ own }) => own.value),
      there: of(({ other }) => other.value),
      ratio: of(({ own, other }) => own.value / other.value),
    };
    if (!reference) return [compared];
    const toReference = {
      here: of(({ own }) => referenceRatio(own)),
      there: of(({ other }) => referenceRatio(other)),
      ratio: of(({ own, other }) => referenceRatio(own) / referenceRatio(other)),
    };
    return [{ ...compared, name: `${name} (of ${reference.name})`, toReference }];
  });
}

function keyOf({
  name,
  unit,
  reference,
}: Pick<Figure, 'name' | 'unit'> & { reference?: Figure['reference'] | undefined }) {
  return `${name}\n${unit}\n${reference?.name ?? ''}`;
}

/** Ratio of a figure to what it stands beside. */
function referenceRatio({ value, reference }: Figure): number {
  return reference!.ratio ?? value / reference!.value;
}

function formatCompared(compared: readonly Compared[]): string[] {
  const short = (value: number) => value.toPrecision(3);
  return columns([
    ['', 'here', 'there', 'ratio', 'of the reference: here', 'there', 'ratio of ratios'],
    ...compared.map(({ name, unit, here, there, ratio, toReference: to }) => [
      `  ${name}`,
      `${amount(here)} ${unit}`,
      amount(there),
      short(ratio),
      ...(to ? [short(to.here), short(to.there), short(to.ratio)] : ['', '', '']),
    ]),
  ]);
}

function amount(value: number): string {
  return Math.abs(value) >= 1000 ? Math.round(value).toLocaleString('en') : value.toPrecision(3);
}

function resolveCommit(commit: string): string {
  try {
    return git('rev-parse', '--verify', '--quiet', `${commit}^{commit}`);
  } catch {
    throw new UserError('BAD_ARGUMENT', `--against: git knows no commit '${commit}' here; name one as git log does`);
  }
}

function build(root: string, commit: string): void {
  try {
    execFileSync(process.execPath, [join(here, 'node_modules/typescript/bin/tsc'), '-p', 'tsconfig.json'], {
      cwd: root,
    });
  } catch (error) {
    const [line = ''] = String((error as { stdout?: unknown }).stdout ?? error).split('\n', 1);
    throw new UserError('BAD_ARGUMENT', `--against: ${commit} does not build with this checkout's packages: ${line}`);
  }
}

/** Figures of a bench, run in a process of its own. */
function runBench(root: string, name: string): readonly Figure[] {
  let json: string;
  try {
    json = execFileSync(process.execPath, ['dist/experiments/bench/main.js', name, '--json'], {
      cwd: root,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'inherit'],
    });
  } catch {
    throw new UserError(
      'BAD_ARGUMENT',
      `--against: the bench '${name}' of ${root === here ? 'this build' : 'the other commit'} failed`,
    );
  }
  return (JSON.parse(json) as Record<string, readonly Figure[]>)[name] ?? [];
}

function git(...args: string[]): string {
  return execFileSync('git', args, { cwd: here, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim();
}
