/** Continuations of saved episodes: brought back exactly, played on by any policy, and worth what can be computed by hand. */
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Env } from '../../../src/core/env.ts';
import type { Trajectory, Turn } from '../../../src/core/trajectory.ts';
import { readDemonstrations } from '../../../src/run/offline/demonstrations.ts';
import { TraceFiles } from '../../../src/storage/trace-files.ts';
import { TraceStore } from '../../../src/storage/trace-store.ts';
import { startChatServer } from '../../support/chat-server.ts';
import { makePolicyRun } from '../../support/policy-run.ts';
import { temporaryFolder } from '../../support/small-run.ts';
import { trajectoryOf } from '../../support/traces.ts';
import { typed } from '../../support/typed.ts';

const root = temporaryFolder('continue');
afterAll(() => rmSync(root, { recursive: true, force: true }));
let made = 0;

/**
 * Four choices; who has chosen right each time wins. `pick` is chosen in two stages. Each turn but the last is worth a quarter.
 * `lies: hosts` shows something else in the hosts, `lies: crowd` from the second episode of a thread on.
 */
const coin = join(root, 'coin.mjs');
writeFileSync(
  coin,
  `import { isMainThread } from 'node:worker_threads';
let opened = 0;
export function createEnv({ lies, replay } = {}) {
  return {
    id: 'coin',
    description: 'Choose right four times.',
    tasks: { count: 3, labels: ['all'], label: () => 'all', split: () => [0, 1, 2], evalSeed: 0 },
    rewardRange: [0, 1],
    maxObservationChars: 100,
    ...(replay ? { replay } : {}),
    open() {
      let [done, right, isPicking] = [0, true, false];
      const number = opened++;
      const isLie = (lies === 'hosts' && !isMainThread) || (lies === 'crowd' && number > 0);
      const show = () => done + ' done, ' + (right ? 'well' : 'badly') + (isLie && done > 1 ? '!' : '');
      return {
        first: { kind: 'first', observation: show() },
        step(action) {
          if (action === 'crash') throw new Error('no such coin');
          if (action === 'pick' && !isPicking) {
            isPicking = true;
            return { kind: 'mid', observation: 'pick what?', reward: 0, partial: true };
          }
          isPicking = false;
          done++;
          right &&= action === 'right';
          if (done < 4) return { kind: 'mid', observation: show(), reward: 0.25 };
          return { kind: 'terminated', observation: show(), reward: right ? 1 : 0, success: right };
        },
        actions: () => (isPicking ? ['left', 'right'] : ['left', 'right', 'pick']),
        close() {},
      };
    },
  };
}
`,
);

/** Plays actions in the coin's world. */
async function play(actions: readonly string[], options = {}): Promise<Trajectory> {
  const { createEnv } = (await import(pathToFileURL(coin).href)) as { createEnv(options: object): Env };
  const task = { env: 'coin', index: 1, seed: 5 };
  const session = await createEnv(options).open(task);
  const table: string[] = [];
  const turns: Turn[] = [];
  let { observation } = session.first as { observation: string };
  let [end, success]: [Trajectory['end'], boolean] = ['truncated', false];
  for (const action of actions) {
    const listed = Int32Array.from(session.actions(), (text) => {
      if (!table.includes(text)) table.push(text);
      return table.indexOf(text);
    });
    const step = await session.step(action);
    const partial = step.kind === 'mid' && step.partial ? { partial: true as const } : {};
    turns.push({ observation, action, actions: listed, reward: step.reward, ...partial, actMs: 0, envMs: 0 });
    observation = step.observation;
    if (step.kind === 'terminated') [end, success] = ['terminated', step.success];
  }
  const base = trajectoryOf({ episode: 12, group: 3 });
  return { ...base, task, horizon: 6, actionTable: table, turns, finalObservation: observation, end, success };
}

/** Trace of an episode. @returns its folder */
function traceOf(episode: Trajectory, options: object = {}, purpose = 'train'): string {
  const dir = join(root, `traces-${made++}`);
  const env = { id: coin, options };
  const files = new TraceFiles({ dir, config: { env }, rotateBytes: 1e9, keepBytes: 1e12 });
  files.episodes([episode], purpose, 'all');
  files.close();
  return dir;
}

async function goOn(trace: string, ...args: readonly string[]) {
  const { status, stdout, stderr } = await typed('replay', trace, '--json', ...args);
  return { status, stderr, json: stdout === '' ? undefined : JSON.parse(stdout) };
}

const lost = ['right', 'right', 'left', 'right'];

describe('continuations', { timeout: 120_000 }, () => {
  it('estimate what each state is worth, and show where the episode was lost', async () => {
    const trace = traceOf(await play(lost));
    const args = ['--every-turn', '--policy', 'random', '--group', '300', '--concurrency', '2000'];
    // Where three actions are listed, `pick` leads to a fair choice of the other two: right has probability ½ all the same.
    const { status, json, stderr } = await goOn(trace, ...args);
    expect([status, stderr]).toEqual([0, '']);
    expect(json).toMatchObject({
      episode: 12,
      group: 300,
      seed: 1,
      recorded: { turns: 4, success: false, return: 0.75 },
    });
    const exact = [
      [1 / 16, 0.75 + 1 / 16, 0],
      [1 / 8, 0.5 + 1 / 8, 0.25],
      [1 / 4, 0.25 + 1 / 4, 0.5],
      [0, 0, 0.75],
    ];
    expect(json.turns.map(({ turn, action }: never) => [turn, action])).toEqual([...lost.entries()]);
    for (const [k, [success, value, earned]] of exact.entries()) {
      const one = json.turns[k];
      expect(one.returns).toHaveLength(300);
      expect(one.earned).toBe(earned);
      for (const [estimate, truth] of [
        [one.success, success],
        [one.value, value],
      ] as const) {
        // Four standard errors, and no less than what 300 draws without a success leave open.
        const half = Math.max(estimate.high - estimate.value, estimate.value - estimate.low);
        expect(Math.abs(estimate.value - truth!), `turn ${k}`).toBeLessThanOrEqual(2 * half);
      }
    }
    expect(json.fall).toMatchObject({ turn: 3, action: 'left', what: 'success', to: 0, isClear: true });
  });

  it('repeat under the same seed, however many are played at once, and differ under another', async () => {
    const trace = traceOf(await play(lost));
    const args = ['--every-turn', '--policy', 'random', '--group', '12'];
    const [first, narrow, other] = [
      await goOn(trace, ...args),
      await goOn(trace, ...args, '--concurrency', '12'),
      await goOn(trace, ...args, '--seed', '2'),
    ];
    expect(narrow.json).toEqual(first.json);
    expect(other.json.turns).not.toEqual(first.json.turns);
    // A turn alone is worth what it was among the others.
    const alone = await goOn(trace, '--from-turn', '1', '--policy', 'random', '--group', '12', '--episode', '12');
    expect(alone.json.turns).toEqual([first.json.turns[1]]);
  });

  it('are a trace that names their parent, shares its beginning and checks', async () => {
    const episode = await play(lost);
    const out = join(root, 'continued');
    const args = ['--from-turn', '2', '--policy', 'random', '--group', '5', '--out', out];
    const { json } = await goOn(traceOf(episode), ...args);
    const store = TraceStore.open(out);
    expect(store.size).toBe(5);
    for (let at = 0; at < 5; at++) {
      const one = store.read(at);
      expect(one).toMatchObject({ parent: { episode: 12, turn: 2 }, purpose: 'rollout', label: 'all', horizon: 6 });
      expect(one.turns.slice(0, 2)).toEqual(episode.turns.slice(0, 2));
      expect(one.turns[2]!.observation).toBe(episode.turns[2]!.observation);
      expect(one.turns.slice(2).reduce((sum, { reward }) => sum + reward, 0)).toBe(json.turns[0].returns[at]);
    }
    expect(store.groupOf(0)).toHaveLength(5);
    const checked = await typed('replay', out, '--check');
    expect([checked.status, checked.stdout]).toEqual([
      0,
      expect.stringMatching(/^episodes 5, steps \d+, differing 0$/m),
    ]);
    expect((await typed('replay', out)).stdout).toContain('episode 12 up to turn 2');
    expect(readDemonstrations(out)).toHaveLength(5);
    // Those of an evaluation stay of it: its tasks may be held out.
    const held = join(root, 'held');
    await goOn(traceOf(episode, {}, 'h6 sampled'), ...args.slice(0, -1), held);
    expect(TraceStore.open(held).episodes.map(({ purpose }) => purpose)).toEqual(Array(5).fill('h6 sampled'));
    expect(readDemonstrations(held)).toEqual([]);
  });

  it('begin at whole actions, and between the stages of one where that is asked for', async () => {
    const trace = traceOf(await play(['right', 'pick', 'right', 'right', 'left']));
    const every = await goOn(trace, '--every-turn', '--policy', 'random', '--group', '4');
    expect(every.json.turns.map(({ turn }: never) => turn)).toEqual([0, 1, 3, 4]);
    const spoilt = traceOf(await play(['right', 'pick', 'left', 'right', 'left']));
    const lostAt = await goOn(spoilt, '--every-turn', '--policy', 'random', '--group', '64');
    expect(lostAt.json.fall).toMatchObject({ turn: 2, action: 'pick', to: 0 });
    const staged = await goOn(trace, '--from-turn', '2', '--policy', 'random', '--group', '4');
    expect([staged.status, staged.json.turns[0].returns.length]).toEqual([0, 4]);
  });

  it('use up the turns that the horizon has left', async () => {
    const out = join(root, 'short');
    const episode = { ...(await play(lost)), horizon: 3 };
    await goOn(traceOf(episode), '--from-turn', '2', '--policy', 'random', '--group', '3', '--out', out);
    const store = TraceStore.open(out);
    for (let at = 0; at < 3; at++) {
      const { turns, end } = store.read(at);
      expect([turns.filter(({ partial }) => !partial).length, end]).toEqual([3, 'truncated']);
    }
  });
});

/** Recordings that the world does not repeat, each with the action behind which it shows. */
const CHANGES: readonly (readonly [string, (turns: Turn[]) => Turn[], RegExp])[] = [
  [
    'another observation',
    (turns) => change(turns, 2, { observation: '2 done, ill' }),
    /behind 2 actions another observation: recorded "2 done, ill", now "2 done, well"/,
  ],
  ['another opening', (turns) => change(turns, 0, { observation: 'hello' }), /behind 0 actions another observation/],
  [
    'another reward',
    (turns) => change(turns, 1, { reward: 0.5 }),
    /behind 2 actions another reward: recorded "0.5", now "0.25"/,
  ],
  [
    'other actions',
    (turns) => change(turns, 1, { actions: Int32Array.of(1, 0, 2) }),
    /behind 1 actions another list of actions/,
  ],
  [
    'a whole action',
    (turns) => change(turns, 1, { partial: true }),
    /behind 2 actions a whole action was a stage of one/,
  ],
  [
    'an action that throws',
    (turns) => change(turns, 1, { action: 'crash' }),
    /behind 2 actions the env threw: no such coin/,
  ],
  ['an end', (turns) => [...turns, turns[3]!], /behind 4 actions the episode has ended here, and had not/],
];

function change(turns: readonly Turn[], at: number, to: Partial<Turn>): Turn[] {
  return turns.map((turn, t) => (t === at ? { ...turn, ...to } : turn));
}

describe('an episode that does not repeat itself', () => {
  it.each(CHANGES)('by %s is an error that says where', async (_, make, reason) => {
    const { turns, ...rest } = await play(lost);
    const changed = make([...turns]);
    const trace = traceOf({ ...rest, turns: changed });
    const last = String(changed.length - 1);
    const { status, stderr, json } = await goOn(trace, '--from-turn', last, '--policy', 'random');
    expect([status, json, stderr.trim().split('\n').length]).toEqual([1, undefined, 1]);
    expect(stderr).toMatch(/^longplay: episode 12 \(coin\/1#5\) does not repeat itself: /);
    expect(stderr).toMatch(reason);
    // What lies behind the turn that it goes on from is not looked at.
    if (last !== '4')
      expect((await goOn(trace, '--from-turn', '0', '--policy', 'random')).status).toBe(
        reason.source.includes('behind 0') ? 1 : 0,
      );
  });

  it('in the env hosts alone is no value either', { timeout: 60_000 }, async () => {
    const trace = traceOf(await play(lost), { lies: 'hosts' });
    const { status, stderr, json } = await goOn(trace, '--from-turn', '2', '--policy', 'random');
    expect([status, json]).toEqual([1, undefined]);
    expect(stderr).toMatch(
      /every episode failed .*taking the 2 recorded actions again shows another observation than recorded/,
    );
    expect((await goOn(trace, '--from-turn', '1', '--policy', 'random')).status).toBe(0); // the lie comes later
    // From each turn: those that could be played are there, the others are missing and named.
    const every = await goOn(trace, '--every-turn', '--policy', 'random', '--group', '3');
    expect([every.status, every.json.turns.map(({ turn }: never) => turn)]).toEqual([1, [0, 1]]);
    expect(every.stderr).toMatch(/^turn 2: protocol: taking the 2 recorded actions again shows another/m);
    expect(every.stderr).toMatch(/^longplay: 6 of 12 continuations are missing/m);
  });

  it('because its actions must not be taken again is refused', async () => {
    const trace = traceOf(await play(lost), { replay: 'never' });
    const { status, stderr } = await goOn(trace, '--from-turn', '2', '--policy', 'random');
    expect([status, stderr]).toEqual([2, expect.stringContaining('coin cannot be brought back to a turn')]);
  });
});

describe('a policy that goes on', { timeout: 120_000 }, () => {
  const rollout = join(root, 'runs/solved');
  beforeAll(async () => {
    const args = [
      '--env',
      'textcraft',
      '--policy',
      'oracle',
      '--episodes',
      '3',
      '--horizon',
      '9',
      '--tasks',
      'selection',
    ];
    const { status, stderr } = await typed('rollout', ...args, '--runs', join(root, 'runs'), '--name', 'solved');
    expect(status, stderr).toBe(0);
  });

  it('may be the oracle, from its own actions', async () => {
    const own = await goOn(rollout, '--episode', '1', '--every-turn', '--policy', 'oracle', '--group', '2');
    expect(own.json.turns.map(({ success }: never) => (success as { value: number }).value)).toEqual(
      own.json.turns.map(() => 1),
    );
    const out = join(root, 'random');
    await goOn(rollout, '--episode', '1', '--from-turn', '0', '--policy', 'random', '--group', '1', '--out', out);
    const { status, stderr } = await goOn(out, '--every-turn', '--policy', 'oracle');
    expect([status, stderr]).toEqual([2, expect.stringContaining('the oracle goes on from its own actions alone')]);
  });

  it('may be a trained one; its run stays as it was, and the actions of another policy are its history', async () => {
    const run = join(root, 'trained');
    await makePolicyRun(run, 'textcraft', ['policy.model={hiddenSize: 16, layers: 1, heads: 2}']);
    const before = readFileSync(join(run, 'config.yaml'));
    const args = ['--episode', '1', '--every-turn', '--policy', run, '--group', '3'];
    const first = await goOn(rollout, ...args);
    expect(first.status, first.stderr).toBe(0);
    expect(first.json.turns.length).toBeGreaterThan(1);
    expect((await goOn(rollout, ...args, '--concurrency', '3')).json).toEqual(first.json);
    expect(readFileSync(join(run, 'config.yaml'))).toEqual(before);
    expect(existsSync(join(run, 'traces')) || existsSync(join(run, 'metrics.jsonl'))).toBe(false);
    const greedy = await goOn(rollout, ...args.slice(0, -2), '--temperature', '0');
    expect(greedy.json).toMatchObject({ group: 1, temperature: 0 });
  });

  it('may be a model behind a server, which reads the recorded turns before it answers', async () => {
    const server = await startChatServer(() => ({ message: { role: 'assistant', content: 'Action: inventory' } }));
    try {
      const { turns } = TraceStore.open(rollout).read(1);
      const args = [
        '--episode',
        '1',
        '--from-turn',
        '1',
        '--policy',
        'openai',
        '--base-url',
        server.url,
        '--group',
        '2',
      ];
      const { status, stderr, json } = await goOn(rollout, ...args);
      expect(status, stderr).toBe(0);
      expect(json.turns[0]).toMatchObject({ success: { value: 0, n: 2 }, returns: [0, 0] });
      const [{ messages }] = server.bodies as unknown as [{ messages: { role: string; content: string }[] }];
      const said = messages.slice(-3).map(({ role, content }) => [role, content]);
      expect(said).toMatchObject([
        ['user', expect.stringContaining(turns[0]!.observation)],
        ['assistant', expect.stringContaining(turns[0]!.action)],
        ['user', expect.stringContaining(turns[1]!.observation)],
      ]);
    } finally {
      await server.close();
    }
  });
});
