import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { packageRoot } from '../../src/runtime/thread.ts';
import { longplay } from '../support/longplay-command.ts';
import { temporaryFolder } from '../support/small-run.ts';

const quickstart = fileURLToPath(new URL('experiments/quickstart.yaml', packageRoot));
const folder = temporaryFolder('mistakes');
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Every mistake: one line that names it, exit code 2, and no run folder. */
describe("a user's mistake", { timeout: 60_000 }, () => {
  const runs = join(folder, 'runs');
  const train = (...set: string[]) => ['train', quickstart, '--runs', runs, ...set.flatMap((one) => ['--set', one])];
  const broken = join(folder, 'broken.yaml');
  writeFileSync(broken, 'env: [\n');
  const bomb = join(folder, 'bomb.yaml');
  const level = (i: number) => `x${i + 1}: &x${i + 1} [*x${i}, *x${i}, *x${i}]\n`;
  writeFileSync(bomb, `x0: &x0 [1, 1]\n${Array.from({ length: 30 }, (_, i) => level(i)).join('')}`);
  const circle = join(folder, 'circle.yaml');
  writeFileSync(circle, 'tasks: &a { labels: *a }\n');

  it.each([
    ['a misspelt key', train('learner.maxLg=1'), /unknown key 'learner\.maxLg'; did you mean 'maxLag'\?/],
    ['a misspelt section', train('lerner.maxLag=1'), /unknown key 'lerner'; did you mean 'learner'\?/],
    ['a wrong type', train('seed=seven'), /seed: .*expected number.*got "seven"/],
    ['no env threads', train('rollout.envThreads=0'), /rollout\.envThreads: .*>=1 \(got 0\)/],
    ['a horizon of 0', train('horizon={type: fixed, rounds: 0}'), /horizon\.rounds: .*>=1 \(got 0\)/],
    ['an unknown env', train('env.id=textcrft'), /unknown env 'textcrft'; did you mean 'textcraft'\?/],
    ['an env option that is none', train('env.options={fidelty: original}'), /fidelty/],
    ['a label that is none', train('tasks.labels=[deep]'), /'deep' is no label of textcraft/],
    ['an evaluation set that is none', train('evaluation.tasks=held-out'), /textcraft has no set 'held-out'/],
    ['a model that cannot be', train('policy.model.heads=3'), /policy\.model\.heads/],
    [
      'replacing groups that nobody leaves out',
      train('learner.oversampling=3', 'learner.filterGroups=false'),
      /learner\.oversampling: nothing is left out, so nothing is replaced/,
    ],
    [
      'weights to start from that are a file',
      train('policy.init=/etc/passwd'),
      /passwd.*expected a folder of checkpoints/,
    ],
    ['a key behind the configuration', train('__proto__.x=1'), /there is no key '__proto__'/],
    ['an env called constructor', train('env.id=constructor'), /unknown env 'constructor'/],
    ['an env called toString', train('env.id=toString'), /unknown env 'toString'/],
    ['an env called __proto__', train('env.id=__proto__'), /unknown env '__proto__'/],
    ['a model beyond all memory', train('policy.model.hiddenSize=1e9'), /policy\.model\.hiddenSize/],
    ['a million threads', train('rollout.envThreads=1000000'), /rollout\.envThreads/],
    ['a hundred million episodes', train('evaluation.episodesPerTask=1e8'), /evaluation\.episodesPerTask/],
    [
      'episodes that only their product shows',
      train('evaluation.episodesPerTask=100000'),
      /make \d+ episodes; at most/,
    ],
    ['aliases that make a bomb', ['train', bomb, '--runs', runs], /aliases cannot be followed/],
    ['an alias inside its own anchor', ['train', circle, '--runs', runs], /aliases cannot be followed/],
    ['a server of a million threads', ['serve-env', 'textcraft', '--threads', '1000000'], /whole number from 1 to 256/],
    ['a deadline that no timer can wait for', ['serve-env', 'textcraft', '--step-seconds', '1e9'], /from 1 to 2147483/],
    ['an engine that is not there', train('engine={name: onnxruntime-node, device: cuda}'), /cuda/],
    [
      'a configuration that is not there',
      ['train', '/nowhere/x.yaml', '--runs', runs],
      /cannot read \/nowhere\/x\.yaml/,
    ],
    ['YAML that is none', ['train', broken, '--runs', runs], /not valid YAML/],
    ['a place that cannot be written', ['train', quickstart, '--runs', '/dev/null/runs'], /cannot make the run folder/],
    ['a run that is not there', ['eval', '/nowhere'], /no such run/],
    ['resuming what is no run', ['train', '--resume', folder], /is no run/],
    ['an unknown command', ['trian'], /Did you mean train\?/],
    ['an unknown flag', ['train', quickstart, '--sed', '3'], /unknown option '--sed'/],
    ['a world that is none', ['play', 'babyay'], /did you mean 'babyai'\?/],
  ])('%s', (_, args, message) => {
    const { status, stderr } = longplay(...args);
    expect(stderr).toMatch(message);
    expect(stderr).not.toMatch(/^\s+at /m);
    expect(status).toBe(2);
    expect(existsSync(runs) ? readdirSync(runs) : []).toEqual([]);
  });

  it('a run folder that exists is left as it is', () => {
    const taken = join(folder, 'taken');
    mkdirSync(join(taken, 'mine'), { recursive: true });
    const { status, stderr } = longplay('train', quickstart, '--runs', taken, '--name', 'mine');
    expect(stderr).toMatch(/mine exists already; choose another name/);
    expect(status).toBe(2);
    expect(readdirSync(join(taken, 'mine'))).toEqual([]);
  });
});

describe('commands that only tell', { timeout: 60_000 }, () => {
  it('lists the worlds, for people and for programs', () => {
    expect(longplay('envs').stdout).toMatch(/textcraft +544 +374 +100/);
    const worlds = JSON.parse(longplay('envs', '--json').stdout) as { id: string; tasks: number }[];
    expect(worlds.map(({ id }) => id)).toContain('babyai');
  });
  it('names an engine that works', () => {
    const { engines, auto } = JSON.parse(longplay('doctor', '--json').stdout);
    expect(engines.find(({ engine }: { engine: string }) => engine === 'reference/cpu').works).toBe(true);
    expect(auto).toMatch(/^onnxruntime-/);
  });
});
