/** `sft`, `dpo` and AgentEvol as typed: data made by our own commands, and one line for what is wrong with it. */
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import * as textcraft from '../../envs/textcraft/index.ts';
import { packageRoot } from '../../src/runtime/module-url.ts';
import { longplay } from '../support/longplay-command.ts';
import { publishedItem } from '../support/published-episodes.ts';
import { temporaryFolder } from '../support/small-run.ts';
import { typed } from '../support/typed.ts';

const config = fileURLToPath(new URL('test/support/small-run.yaml', packageRoot));
const folder = temporaryFolder('offline');
const runs = join(folder, 'runs');
const demo = join(runs, 'demo');
const trace = join(demo, 'traces', '00001.jsonl');
const played = join(runs, 'played');
const good = join(folder, 'good.json');
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs a command that must succeed. */
function succeed(...args: string[]) {
  const result = longplay(...args);
  expect(result.status, result.stderr).toBe(0);
  return result;
}
const learn = (command: 'sft' | 'dpo', ...args: string[]) => longplay(command, config, '--runs', runs, ...args);
const epochsOf = (stdout: string) =>
  stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, number>)
    .filter(({ epoch }) => epoch !== undefined);

beforeAll(() => {
  const set = [
    'stop={updates: 12}',
    'rollout.groupSize=4',
    'evaluation={split: test, horizons: [4], episodesPerTask: 1}',
  ];
  succeed('train', config, '--runs', runs, '--name', 'demo', ...set.flatMap((one) => ['--set', one]));
  const rollout = ['--policy', 'random', '--env', 'textcraft', '--episodes', '40', '--horizon', '4'];
  succeed('rollout', ...rollout, '--runs', runs, '--name', 'played');
  succeed('export', demo, '--purpose', 'train', '--success', '--out', good);
}, 120_000);

describe('off-line learning from the command line', { timeout: 180_000 }, () => {
  it('imitates the good episodes of a run, leaves out what evaluations played, and is evaluated and trained on', () => {
    const { status, stdout, stderr } = learn('sft', '--data', demo, '--min-score', '1', '--epochs', '3', '--json');
    expect(status).toBe(0);
    expect(stderr).toMatch(/demo: [12]00 episodes of evaluations are left out\n/);
    const losses = epochsOf(stdout).map(({ nll }) => nll!);
    expect(losses).toHaveLength(3);
    expect(losses[2]).toBeLessThan(losses[0]!);
    const taught = join(runs, 'small-run-sft');
    const { run } = JSON.parse(stdout.trim().split('\n').at(-1)!) as { run: string };
    expect(run).toBe(taught);
    expect(longplay('eval', taught, '--episodes', '1').stdout).toMatch(/^depth 1 \(\d+ tasks\) .*\[\d+, \d+\]/m);
    const { evaluations } = JSON.parse(longplay('eval', taught, '--episodes', '2', '--json').stdout);
    expect(evaluations.map(({ name }: { name: string }) => name)).toContain('h4 sampled');
    expect(Object.keys(evaluations[0].all.passAtK)).toEqual(['1', '2']);
    expect(evaluations[0].all.success.low).toBeLessThanOrEqual(evaluations[0].all.success.value);

    const evol = ['--set', 'learner.estimator={algorithm: agent_evol}', '--set', `policy.init=${taught}`];
    const one = longplay('train', config, '--runs', runs, '--name', 'evol', ...evol, '--set', 'stop={updates: 3}');
    expect(one.status).toBe(0);
    expect(one.stderr).toMatch(/starting from the weights of .*small-run-sft/);
  });

  it('learns from a rollout, from several sources, and from what export wrote', () => {
    const two = learn('sft', '--data', played, '--data', demo, '--name', 'two', '--epochs', '1');
    expect(two.status).toBe(0);
    const all = Number(/learnt from (\d+) episodes/.exec(two.stdout)![1]);
    expect(all).toBeGreaterThan(40);
    const tokens = ['--set', 'policy.decoder=tokens', '--set', 'policy.masked=false'];
    expect(learn('sft', '--data', good, '--name', 'spelt', '--epochs', '1', ...tokens).status).toBe(0);
  });

  it("learns from the oracle's episodes, which a command makes; the oracle itself learns nothing", () => {
    const planned = [
      'rollout',
      '--policy',
      'oracle',
      '--env',
      'textcraft',
      '--episodes',
      '30',
      '--horizon',
      '30',
      '--json',
    ];
    const { stdout } = succeed(...planned, '--runs', runs, '--name', 'planned');
    const { summary } = JSON.parse(stdout.trim().split('\n').at(-1)!);
    expect(summary.all.success.value).toBeGreaterThan(0.7); // it plans with what the lists offer
    expect(summary.labels[0]).toMatchObject({ label: 'depth 1', success: { value: 1 } });
    const learnt = learn(
      'sft',
      '--data',
      join(runs, 'planned'),
      '--min-score',
      '1',
      '--name',
      'expert',
      '--epochs',
      '1',
    );
    expect(learnt.status, learnt.stderr).toBe(0);
    expect(learnt.stdout).toMatch(/learnt from \d+ episodes/);
    const trained = longplay('train', config, '--runs', runs, '--set', 'policy.kind=oracle');
    expect(trained.stderr).toMatch(/policy.kind/);
    expect(trained.status).toBe(2);
  });

  it('prefers the better of two episodes of a task', () => {
    const { status, stdout } = learn('dpo', '--data', demo, '--epochs', '4', '--json');
    expect(status).toBe(0);
    const epochs = epochsOf(stdout);
    expect(epochs[3]!.loss).toBeLessThan(epochs[0]!.loss!);
    expect(epochs[3]!.accuracy).toBeGreaterThan(0.6);
  });

  it('refuses episodes of the test split, unless `--allow-test` is set', () => {
    const rollout = ['--policy', 'random', '--env', 'textcraft', '--episodes', '8', '--horizon', '4'];
    succeed('rollout', ...rollout, '--split', 'test', '--runs', runs, '--name', 'held');
    const held = ['--data', played, '--data', join(runs, 'held'), '--name', 'peeked', '--epochs', '1'];
    for (const command of ['sft', 'dpo'] as const) {
      const { status, stderr } = learn(command, ...held);
      expect(status).toBe(2);
      expect(stderr).toMatch(/: 8 of 48 episodes are of the test split, which evaluations hold back: .* --allow-test/);
      expect(existsSync(join(runs, 'peeked'))).toBe(false);
    }
    const allowed = learn('sft', ...held, '--allow-test');
    expect(allowed.status).toBe(0);
    expect(allowed.stderr).toMatch(/8 of 48 episodes are of the test split: evaluations on it will flatter/);
  });

  it('imitates published episodes with the default decoder, and refuses goals of the test split', async () => {
    const authors = { order: 'agenttraj' };
    const theirs = textcraft.createEnv(authors);
    const ours = textcraft.createEnv();
    const goals = new Set(ours.tasks.split('test').map((index) => ours.treeUnder(0).goals[index]!.item));
    const train = theirs.tasks.split('train');
    const isTest = (index: number) => goals.has(theirs.treeUnder(0).goals[index]!.item);
    const tested = train.find(isTest)!;
    const untested = train.find((index) => !isTest(index))!;
    const items = [tested, untested].map((index) =>
      publishedItem(theirs, textcraft.createOracle(authors), index, (text) => `Instruction:\n${text}`, ['get 1 stick']),
    );
    const path = join(folder, 'published.json');
    writeFileSync(path, JSON.stringify(await Promise.all(items)));
    const data = ['--data', path, '--epochs', '1', '--name'];

    const refused = learn('sft', ...data, 'refused');
    expect(refused.status).toBe(2);
    expect(refused.stderr).toMatch(
      /1 of 2 episodes are of the test split, .*--set env\.options\.order=agenttraj.*--allow-test/,
    );
    expect(existsSync(join(runs, 'refused'))).toBe(false);
    const allowed = learn('sft', ...data, 'allowed', '--allow-test');
    expect(allowed.stderr).toMatch(/evaluations on it will flatter/);
    expect(allowed.stdout).toMatch(/learnt from 2 episodes/);
    const theirWorld = learn('sft', ...data, 'theirs', '--set', 'env.options.order=agenttraj');
    expect(theirWorld.stderr).toMatch(
      /2 of 2 published episodes played again, 0 left out\n2 of their \d+ replies are not/,
    );
    expect(theirWorld.stdout).toMatch(/learnt from 2 episodes/);
  });

  it('takes a trace whose last line a kill cut off, and reports it', () => {
    const path = join(folder, 'killed.jsonl');
    writeFileSync(path, readFileSync(trace, 'utf8').slice(0, -100));
    const { status, stderr } = learn('sft', '--data', path, '--name', 'killed', '--epochs', '1');
    expect(stderr).toContain(`${path}: its last line is cut off and left out`);
    expect(status).toBe(0);
  });
});

/** Every mistake: one line that names it, exit code 2, and no run folder. */
describe('data that will not do', { timeout: 60_000 }, () => {
  const file = (name: string, text: () => string) => {
    const path = join(folder, name);
    return () => {
      writeFileSync(path, text());
      return path;
    };
  };
  const lines = () => readFileSync(trace, 'utf8').split('\n');
  const broken = file('broken.jsonl', () => lines().with(2, lines()[2]!.slice(0, 200)).join('\n'));
  const half = file('half.json', () => readFileSync(good, 'utf8').slice(0, 500));
  const babyai = fileURLToPath(new URL('experiments/babyai.yaml', packageRoot));
  const spelt = ['--set', 'policy.decoder=tokens'];
  const agentTraj = (item: object) => file('item.json', () => JSON.stringify([item]));

  const cases: [string, () => string[], RegExp][] = [
    ['no such file', () => ['sft', config, '--data', '/nowhere.jsonl'], /\/nowhere\.jsonl does not exist/],
    ['no such JSON', () => ['sft', config, '--data', '/nowhere.json'], /cannot read \/nowhere\.json: ENOENT/],
    ['a run without traces', () => ['dpo', config, '--data', folder], /no trace here/],
    [
      'a trace with a cut line',
      () => ['sft', config, '--data', broken()],
      /broken\.jsonl: line 3 is no line of a trace/,
    ],
    [
      'half a JSON',
      () => ['sft', config, '--data', half(), ...spelt],
      /cannot read .*half\.json: .*( in JSON at position 500|end of JSON input)/,
    ],
    ['something else', () => ['sft', config, '--data', config], /expected a trace of version 1/],
    ['another world, from a trace', () => ['sft', babyai, '--data', demo], /played in textcraft, .* world is babyai/],
    [
      'another world, by name',
      () => ['sft', babyai, '--data', good, ...spelt],
      /played in textcraft, .* world is babyai/,
    ],
    [
      'an item that is none',
      () => ['sft', config, '--data', agentTraj({ item_id: 'x' })(), ...spelt],
      /item 0: expected conversations; AgentTraj is/,
    ],
    [
      'a score that no episode reached',
      () => ['sft', config, '--data', demo, '--min-score', '2'],
      /scored 2 or more; the best scored 1/,
    ],
    ['no pairs', () => ['dpo', config, '--data', good, ...spelt], /no two episodes of one task with different scores/],
    [
      'no weights to start from',
      () => ['sft', config, '--data', demo, '--set', 'policy.init=/no'],
      /there is no checkpoint/,
    ],
    ['no data', () => ['sft', config], /required option '--data/],
  ];
  it.each(cases)('%s', async (_, args, message) => {
    const before = readdirSync(runs);
    const { status, stderr } = await typed(...args(), '--runs', runs, '--name', 'bad');
    expect(stderr).toMatch(message);
    expect(stderr.split('\n').filter((line) => /^(longplay|error):/.test(line))).toHaveLength(1);
    expect(stderr).not.toMatch(/^\s+at /m);
    expect(status).toBe(2);
    expect(readdirSync(runs)).toEqual(before);
    expect(existsSync(join(runs, 'bad'))).toBe(false);
  });
});
