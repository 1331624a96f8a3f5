/** Saved episodes with new rewards: what the function is given, what becomes of its answer, and what of one that fails. */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { episodeLines } from '../../../src/console/episode-frame.ts';
import { episodeReturn, type Trajectory, type Turn } from '../../../src/core/trajectory.ts';
import { readDemonstrations } from '../../../src/run/offline/demonstrations.ts';
import { rescore as rescoreStore } from '../../../src/run/rescore/rescore.ts';
import { makeRescoreRequest } from '../../../src/run/rescore/rescore-request.ts';
import { viewRuns } from '../../../src/run/view-runs.ts';
import { TraceFiles } from '../../../src/storage/trace-files.ts';
import { TraceStore } from '../../../src/storage/trace-store.ts';
import { temporaryFolder } from '../../support/small-run.ts';
import { trajectoryOf } from '../../support/traces.ts';
import { typed } from '../../support/typed.ts';
import { act, fixtures, openMcp, switches } from '../../world/mcp/lab.ts';

const root = temporaryFolder('rescore');
afterAll(() => rmSync(root, { recursive: true, force: true }));
let made = 0;

function moduleOf(code: string): string {
  const path = join(root, `verify-${made++}.mjs`);
  writeFileSync(path, code);
  return path;
}

interface WrittenGroup {
  readonly members: readonly Trajectory[];
  readonly purpose?: string;
  readonly label?: string;
}

/** Trace of groups. @returns its folder */
function traceOf(groups: readonly WrittenGroup[], env: object = { id: 'toy' }): string {
  const dir = join(root, `traces-${made++}`);
  const files = new TraceFiles({ dir, config: { env }, rotateBytes: 1e9, keepBytes: 1e12 });
  for (const { members, purpose = 'train', label = 'easy' } of groups) files.episodes(members, purpose, label);
  files.credit(1, [{ group: 0, advantages: groups[0]!.members.map(() => Float32Array.of(1, 2)) }]);
  files.close();
  return dir;
}

/** Two groups of four episodes; the last of each is a success. */
function smallTrace(): string {
  const groupOf = (group: number) => ({
    label: group === 0 ? 'easy' : 'hard',
    members: Array.from({ length: 4 }, (_, i) =>
      trajectoryOf({ episode: 4 * group + i, group, index: group, success: i === 3 }),
    ),
  });
  return traceOf([groupOf(0), groupOf(1)]);
}

async function rescore(trace: string, code: string, ...more: readonly string[]) {
  const { status, stdout, stderr } = await typed('rescore', trace, '--verify', moduleOf(code), '--json', ...more);
  return { status, stderr, json: stdout === '' ? undefined : JSON.parse(stdout) };
}

function digestsOf(dir: string): readonly string[] {
  return readdirSync(dir).map((name) =>
    createHash('sha256')
      .update(readFileSync(join(dir, name)))
      .digest('hex'),
  );
}

describe('a new reward', () => {
  it('stands in a new trace, the recorded one beside it, and the old trace stays', async () => {
    const trace = smallTrace();
    const before = digestsOf(trace);
    const out = join(root, 'out');
    const code =
      'export const verify = ({ episode }) => ({ reward: episode / 2, success: episode === 1, metrics: { n: 2 } });';
    const { status, json } = await rescore(trace, code, '--out', out);
    expect(status).toBe(0);
    expect(json.episodes).toHaveLength(8);
    expect(json.episodes[3]).toMatchObject({ old: { reward: 1, success: true }, new: { reward: 1.5, success: false } });
    expect(json.all).toMatchObject({ episodes: 8, changed: 7, old: 0.25, new: 1.75 });
    expect(json.parts.map(({ label, old, new: fresh }: never) => [label, old, fresh])).toEqual([
      ['easy', 0.25, 0.75],
      ['hard', 0.25, 2.75],
    ]);
    // 0, 0, 0, 1 became 0, ½, 1, 1½: two members that were discouraged alike are not any more, one of them is reinforced.
    expect(json.groups).toEqual({ groups: 2, changed: 2, reversed: 2, gained: 0, lost: 0 });
    expect(digestsOf(trace)).toEqual(before);

    const store = TraceStore.open(out);
    const old = TraceStore.open(trace);
    for (let at = 0; at < 8; at++) {
      const { rescored, ...one } = store.read(at);
      const was = old.read(at);
      expect(episodeReturn(one)).toBe(at / 2);
      expect(store.episodes[at]).toMatchObject({ return: at / 2, success: at === 1, purpose: 'train' });
      expect(rescored).toMatchObject({ metrics: { n: 2 }, sha256: json.sha256 });
      expect(rescored!.old).toEqual({ success: was.success, rewards: was.turns.map(({ reward }) => reward) });
      // Advantages were computed from the recorded rewards; all else is as it was.
      expect(one.turns.some((turn) => 'advantage' in turn)).toBe(false);
      const rewards = one.turns.map(({ reward, ...turn }) => turn);
      expect(rewards).toEqual(was.turns.map(({ reward, advantage, ...turn }) => turn));
    }
    const shown = episodeLines(store.read(3), 80)
      .flat()
      .map(({ text }) => text)
      .join('');
    expect(shown).toContain('return 1.50');
    expect(shown).toMatch(/verify-\d+\.mjs; recorded: solved, return 1\)/);
  });

  it('is what offline training and the viewer read', async () => {
    const out = join(root, 'learnt');
    await rescore(smallTrace(), 'export const verify = ({ episode }) => episode % 3;', '--out', out);
    expect(readDemonstrations(out).map(({ score }) => score)).toEqual([0, 1, 2, 0, 1, 2, 0, 1]);
    const server = await viewRuns([out]);
    try {
      const seen = (await (await fetch(new URL('api/runs/0/episodes/2', server.url))).json()) as { episode: never };
      expect(seen.episode).toMatchObject({
        rescored: { old: { rewards: [0, 0] } },
        turns: [{ reward: 0 }, { reward: 2 }],
      });
    } finally {
      await server.close();
    }
  });

  it('of a trace of evaluations and training is asked for by purpose, and each goes into its own series', async () => {
    const trace = traceOf([
      { members: [trajectoryOf()] },
      { members: [trajectoryOf({ episode: 1, group: 1 })], purpose: 'h8 sampled' },
    ]);
    const out = join(root, 'both');
    const code = 'export const verify = () => true;';
    expect((await rescore(trace, code, '--purpose', 'h8 sampled')).json.episodes).toHaveLength(1);
    expect((await rescore(trace, code, '--purpose', 'nothing')).stderr).toMatch(
      /no episode matches; it holds 2 of purpose/,
    );
    await rescore(trace, code, '--out', out);
    expect(readdirSync(join(out, 'traces')).sort()).toEqual([
      ...['00001.index.jsonl', '00001.jsonl'],
      ...['evaluation-00001.index.jsonl', 'evaluation-00001.jsonl'],
    ]);
    expect(readDemonstrations(out).map(({ score }) => score)).toEqual([1]);
  });
});

/** Functions that fail on episode 2, each with what is reported. */
const FAILURES: readonly (readonly [what: string, code: string, reason: RegExp])[] = [
  ['throws', 'throw new Error("no verdict")', /^no verdict$/],
  ['rejects', 'return Promise.reject(new Error("later"))', /^later$/],
  ['answers NaN', 'return NaN', /got reward NaN$/],
  ['answers infinity', 'return { reward: Infinity }', /got reward Infinity$/],
  ['answers nothing', 'return undefined', /expected a number, true, false or \{ reward \}/],
  ['answers a text', 'return "1"', /of verify, got/],
  ['gives a part that is no number', 'return { reward: 1, metrics: { n: "1" } }', /got metrics/],
  ['never answers', 'return new Promise(() => {})', /^no answer within 1 s$/],
  ['never ends', 'for (;;);', /^no answer within 1 s$/],
  ['ends its thread', 'process.exit(0)', /^it ended its thread with code 0$/],
  [
    'throws where nobody waits',
    'setTimeout(() => { throw new Error("late"); }); return new Promise(() => {})',
    /late$/,
  ],
  ['calls a server', 'return call("state")', /^call\('state'\): a saved episode has no server to call any more$/],
];

describe('a function that', () => {
  it.each(FAILURES)('%s has failed on the episode, and on no other', async (_, code, reason) => {
    const out = join(root, `failed-${made++}`);
    const whole = `export const verify = ({ episode, call }) => { if (episode === 2) { ${code} } return 1; };`;
    const { status, stderr, json } = await rescore(smallTrace(), whole, '--out', out, '--limit', '1');
    expect(status).toBe(1);
    expect(stderr.match(/^longplay: 1 of 8 episodes have no new reward: verify failed on 1, first: /gm)).toHaveLength(
      1,
    );
    expect(json.episodes.map((one: { new?: { reward: number } }) => one.new?.reward)).toEqual([
      1,
      1,
      undefined,
      1,
      1,
      1,
      1,
      1,
    ]);
    expect(json.episodes[2].failed).toMatch(reason);
    expect(json.all).toMatchObject({ episodes: 7, failed: 1, new: 1 });
    expect(json.groups.groups).toBe(1); // the other group is not whole
    const store = TraceStore.open(out);
    expect(store.episodes.map(({ episode }) => episode)).toEqual([0, 1, 3, 4, 5, 6, 7]);
    const about = JSON.parse(readFileSync(join(out, 'rescored.json'), 'utf8'));
    expect(about).toMatchObject({ asked: 8, episodes: 7, failed: [{ episode: 2 }] });
  });

  it('prints does not spoil the result, and several threads give the same one in the same order', async () => {
    const code = 'export const verify = ({ episode }) => { console.log("scoring"); return episode; };';
    const trace = smallTrace();
    const [one, four] = ['one', 'four'].map((name) => join(root, name)) as [string, string];
    const first = await rescore(trace, code, '--out', one);
    const other = await rescore(trace, code, '--out', four, '--threads', '4');
    expect(first.stderr).toContain('scoring');
    expect({ ...other.json, verify: '', out: '' }).toEqual({ ...first.json, verify: '', out: '' });
    const read = (dir: string) => TraceStore.open(dir).episodes.map(({ episode, return: reward }) => [episode, reward]);
    expect(read(four)).toEqual(read(one));
  });

  it('leaves an error behind takes no other episode along', async () => {
    const late = 'if (episode === 2) setTimeout(() => { throw new Error("late"); }, 20);';
    const code = `export const verify = async ({ episode }) => { ${late} await new Promise((end) => setTimeout(end, 15)); return episode; };`;
    const { status, json } = await rescore(smallTrace(), code);
    expect([status, json.all.episodes]).toEqual([0, 8]);
  });

  it('is slow may be stopped: what is scored is written, and a group that was not reached whole is not compared', async () => {
    const trace = smallTrace();
    const out = join(root, 'stopped');
    const code = 'export const verify = ({ episode }) => episode < 6 ? episode : new Promise(() => {});';
    let stop = (_: string) => {};
    const interrupted = new Promise<string>((resolve) => {
      stop = resolve;
    });
    const scored = await rescoreStore({
      ...{ store: TraceStore.open(trace), path: trace, env: { id: 'toy', options: {} }, verify: moduleOf(code), out },
      ...{ limitMs: 60_000, threads: 2, onNotice() {}, interrupted },
      onProgress: (done) => void (done === 6 && stop('SIGINT')),
    });
    expect([scored.asked, scored.episodes.length, scored.groups.groups]).toEqual([8, 6, 1]);
    expect(TraceStore.open(out).episodes.map(({ episode }) => episode)).toEqual([0, 1, 2, 3, 4, 5]);
  });

  it.each([
    ['is not there', 'export const answer = 42;', /expected a function as the export verify, got nothing/],
    ['is a number', 'export const verify = 42;', /expected a function as the export verify, got 42/],
    ['cannot be read', 'export const = 1;', /it cannot be loaded/],
    ['breaks as it is loaded', 'throw new Error("no key");', /it cannot be loaded: no key/],
  ])('%s is refused in one line, and nothing is written', async (_, code, reason) => {
    const out = join(root, 'nothing');
    const { status, stderr } = await rescore(smallTrace(), code, '--out', out);
    expect([status, stderr.trim().split('\n').length, existsSync(out)]).toEqual([2, 1, false]);
    expect(stderr).toMatch(reason);
  });
});

describe('an episode as the function is given it', () => {
  it('of a world of texts', () => {
    const line = { ...trajectoryOf({ episode: 3, success: true }), purpose: 'train', label: 'easy' };
    expect(makeRescoreRequest(line)).toMatchObject({
      task: { env: 'toy', index: 0, seed: 7 },
      answer: 'go',
      end: 'terminated',
      success: true,
      reward: 1,
      label: 'easy',
      turns: [
        { action: 'look', reward: 0, actions: ['look', 'go'] },
        { observation: 'observation 1 of 3', action: 'go', reward: 1 },
      ],
      transcript: [
        { role: 'user', content: 'observation 0 of 3' },
        { role: 'assistant', content: 'look' },
        { role: 'user', content: 'observation 1 of 3' },
        { role: 'assistant', content: 'go' },
        { role: 'user', content: 'the end' },
      ],
    });
  });

  it('of a world of tools is what its own verifier was given, so that the same function gives the same reward', async () => {
    const module = moduleOf(`
      export const tasks = [{ prompt: 'Press red.', worth: 3 }, { prompt: 'Press blue.', worth: 5 }];
      export const verify = ({ task, index, seed, answer, transcript }) => ({
        reward: task.worth + JSON.stringify([index, seed, answer, transcript]).length,
        success: false,
        metrics: { messages: transcript.length },
      });`);
    const { verify: _verify, tasks: _tasks, ...options } = switches({ module });
    const { env, dispose } = await openMcp(options);
    const task = { env: env.id, index: 1, seed: 9 };
    const session = await env.open(task);
    const turns: Turn[] = [];
    let observation = session.first.observation;
    for (const action of [act([['press', { color: 'red' }]], 'first'), act([], 'I am done.')]) {
      const step = await session.step(action);
      turns.push({ observation, action, actions: new Int32Array(0), reward: step.reward, actMs: 0, envMs: 0 });
      observation = step.observation;
    }
    await session.close();
    await dispose();
    const base = { ...trajectoryOf(), task, actionTable: [], turns, finalObservation: observation };
    const trace = traceOf([{ members: [{ ...base, end: 'terminated' }] }], { id: 'mcp', options });
    const { stdout } = await typed('rescore', trace, '--verify', module, '--json');
    const [{ old, new: fresh }] = JSON.parse(stdout).episodes;
    expect(fresh.reward).toBe(old.reward);
    expect(fresh).toMatchObject({ success: false, metrics: { messages: 5 } });
    // Where the list of tasks is gone, that is said; the function reads what it can.
    const lost = traceOf([{ members: [base] }], {
      id: 'mcp',
      options: { ...options, module: join(fixtures, 'gone.mjs') },
    });
    const seen = await rescore(lost, 'export const verify = ({ task }) => task.index;');
    expect(seen.stderr).toMatch(
      /the world's list of tasks cannot be read .* verify gets \{ env, index, seed \} as the task/,
    );
    expect(seen.json.episodes[0].new.reward).toBe(1);
  });
});
