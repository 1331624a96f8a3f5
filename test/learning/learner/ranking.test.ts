/** Rewards of a judge that compares a group's episodes: what it reads, what becomes of its scores, and a policy that learns by them. */
import { afterEach, describe, expect, it } from 'vitest';
import { loadRunConfig } from '../../../src/config/load.ts';
import { NO_USAGE, printAgentCall, printAgentReply } from '../../../src/core/agent-call.ts';
import type { ChatModel, ChatRequest } from '../../../src/core/chat-model.ts';
import { Judge } from '../../../src/core/judge.ts';
import type { Group, Trajectory } from '../../../src/core/trajectory.ts';
import { rankGroup } from '../../../src/learning/learner/ranking.ts';
import { type ChatServer, startChatServer } from '../../support/chat-server.ts';
import { inFolder, learnToy, toyConfig, withToyRun } from '../../support/toy-run.ts';

const servers: ChatServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

/** Model that answers by a function, and keeps its requests. */
function modelOf(answer: (text: string, n: number) => string): ChatModel & { readonly asked: string[] } {
  const asked: string[] = [];
  return {
    id: 'stand-in',
    asked,
    reply: async ({ messages }: ChatRequest) => {
      const { content } = messages.at(-1)!;
      return { content: answer(content, asked.push(content) - 1), calls: [], finish: 'stop', usage: NO_USAGE };
    },
    close() {},
  };
}

/** Scores each attempt of a question. */
function scoreAttempts(text: string, scoreOf: (attempt: string) => number): string {
  const attempts = text.matchAll(/<attempt number="(\d+)">\n([\s\S]*?)\n<\/attempt>/g);
  const scores = Array.from(attempts, ([, n, shown]) => ({ attempt: Number(n), reason: 'so', score: scoreOf(shown!) }));
  return JSON.stringify({ scores });
}

function trajectory(actions: readonly string[], rest: Partial<Trajectory> = {}): Trajectory {
  const turns = actions.map((action, t) => ({
    observation: t === 0 ? 'find the key' : `room ${t}`,
    actions: new Int32Array(),
    action,
    reward: 0.123,
    actMs: 0,
    envMs: 0,
  }));
  const task = { env: 'x', index: 0, seed: 0 };
  const ids = { episode: 0, group: 0, task, horizon: 9, attempt: 1, actionTable: [] };
  return { ...ids, turns, finalObservation: 'the end', end: 'terminated', success: false, ...rest };
}

const groupOf = (...trajectories: Trajectory[]): Group => ({
  group: 0,
  task: { env: 'x', index: 0, seed: 0 },
  horizon: 9,
  trajectories,
});
const options = { criterion: '', maxChars: 60_000 };

describe('a ranked group', () => {
  it('has the scores as the rewards of its last turns', async () => {
    const model = modelOf((text) => scoreAttempts(text, (shown) => (shown.includes('> north') ? 0.75 : 0.25)));
    const group = groupOf(trajectory(['north', 'take']), trajectory(['south']));
    const ranked = await rankGroup(group, new Judge(model), options);
    expect(ranked.trajectories.map(({ turns }) => turns.map(({ reward }) => reward))).toEqual([[0, 0.75], [0.25]]);
    expect({ ...ranked, trajectories: 0 }).toEqual({ ...group, trajectories: 0 });
    expect(group.trajectories[0]!.turns[0]!.reward).toBe(0.123); // what traces and metrics keep
  });

  it('is shown without its rewards, its common beginning once', async () => {
    const model = modelOf((text) => scoreAttempts(text, () => 0.5));
    const group = groupOf(trajectory(['north', 'take']), trajectory(['south'], { end: 'truncated' }));
    await rankGroup(group, new Judge(model), { ...options, criterion: 'be quick' });
    const [text] = model.asked;
    expect(text).toBe(
      [
        '<task>\nfind the key\n</task>',
        '<attempt number="1">\n> north\nroom 1\n> take\nthe end\n</attempt>',
        '<attempt number="2">\n> south\nthe end\n(cut off by the limit of turns)\n</attempt>',
        '<criterion>\nbe quick\n</criterion>',
      ].join('\n'),
    );
  });

  it('of calls is shown as messages, without the outcome', async () => {
    const call = printAgentCall({ call: 0, parent: null, messages: [{ role: 'user', content: 'hello' }], tools: [] });
    const action = printAgentReply({
      content: '',
      calls: [{ name: 'look', arguments: '{"at":1}' }],
      finish: 'calls',
      usage: NO_USAGE,
    });
    const turn = { observation: call, actions: new Int32Array(), action, reward: 0.5, actMs: 0, envMs: 0 };
    const one = trajectory([], { turns: [turn], finalObservation: '{"reward":0.5,"success":true,"metrics":{}}' });
    const model = modelOf((text) => scoreAttempts(text, () => 0.5));
    await rankGroup(groupOf(one, one), new Judge(model), options);
    expect(model.asked[0]).toContain('<task>\nuser: hello\n</task>\n<attempt number="1">\n> look {"at":1}\n</attempt>');
    expect(model.asked[0]).not.toContain('0.5');
  });

  it('is cut between characters', async () => {
    const model = modelOf((text) => scoreAttempts(text, () => 0.5));
    const long = trajectory(['😀'.repeat(2000)]);
    await rankGroup(groupOf(long, trajectory(['south'])), new Judge(model), { ...options, maxChars: 1001 });
    expect(model.asked[0]!.isWellFormed()).toBe(true);
    expect(model.asked[0]).toContain('characters left out');
  });

  it('loses the middle of long episodes', async () => {
    const model = modelOf((text) => scoreAttempts(text, () => 0.5));
    const long = trajectory([`begin ${'x'.repeat(5000)} finish`]);
    await rankGroup(groupOf(long, trajectory(['south'])), new Judge(model), { ...options, maxChars: 1000 });
    expect(model.asked[0]!.length).toBeLessThan(1300);
    expect(model.asked[0]).toMatch(/> begin x+\n\[… 4,\d\d\d characters left out …\]\nx+ finish\nthe end/);
  });
});

describe('a judge that ranks', () => {
  it('reads the texts in another order for each vote, and takes medians', async () => {
    // A judge that favours the first place: three votes have three texts there.
    const model = modelOf((text) => {
      const first = /number="1">\n(\w)/.exec(text)![1];
      return scoreAttempts(text, (shown) => (shown === first ? 1 : { a: 0.1, b: 0.2, c: 0.3 }[shown]!));
    });
    expect(await new Judge(model, { votes: 3 }).rank(['a', 'b', 'c'], '')).toEqual([0.1, 0.2, 0.3]);
    expect(new Set(model.asked.map((text) => /number="1">\n(\w)/.exec(text)![1]))).toEqual(new Set(['a', 'b', 'c']));
  });

  it.each([
    ['one score too few', (text: string) => scoreAttempts(text, () => 0.5).replace(/\{"attempt":2[^}]*\},?/, '')],
    ['a score above 1', (text: string) => scoreAttempts(text, () => 7)],
    ['no JSON', () => 'I prefer the first.'],
  ])('asks again after %s, and then fails', async (_, answer) => {
    const model = modelOf(answer);
    const judged = new Judge(model).rank(['a', 'b'], '');
    await expect(judged).rejects.toThrow(/judge stand-in: asked 3 times: expected/);
    expect(model.asked).toHaveLength(3);
  });

  it('needs two texts', async () => {
    await expect(new Judge(modelOf(() => '')).rank(['a'], '')).rejects.toThrow('two texts or more to rank, got 1');
  });
});

describe('learner.ranking', () => {
  const serve = async (answer: (text: string) => string) => {
    const server = await startChatServer((body) => {
      const messages = body.messages as readonly { readonly content: string }[];
      return { message: { role: 'assistant', content: answer(messages.at(-1)!.content) } };
    });
    servers.push(server);
    return server;
  };

  it('trains on the scores of the judge in place of the rewards', async () => {
    // The arm that pays least is the one that the judge likes.
    const server = await serve((text) => scoreAttempts(text, (shown) => (shown.includes('> left') ? 0.9 : 0.2)));
    const ranking = { url: server.url, model: 'hosted' };
    const { score, rows } = await learnToy(toyConfig('bandit', { stop: { updates: 20 }, learner: { ranking } }));
    expect(score).toBeLessThan(0.4); // 0.2 of that arm, 0.8 of the best
    expect(rows.at(-1)!.judgeScore).toBeGreaterThan(0.7);
    expect(rows.at(-1)!.judgeScore).toBeLessThan(0.9 + 1e-6); // the mean of an episode, of which none has more
    expect(rows.at(-1)!.return).toBeLessThan(0.5); // of the world
    expect(server.bodies.length).toBeGreaterThan(20);
  });

  it('ends the run in one line where the judge cannot be read, and trains on no group', async () => {
    const server = await serve(() => 'hm');
    const ranking = { url: server.url, model: 'hosted' };
    await inFolder((dir) =>
      withToyRun(toyConfig('bandit', { stop: { updates: 2 }, learner: { ranking } }), dir, async ({ run, rows }) => {
        await expect(run.train()).rejects.toThrow(/learner\.ranking: judge hosted at .*: asked 3 times: expected JSON/);
        expect(rows).toEqual([]);
      }),
    );
  });

  it('needs no judge for what is left over after the last update', async () => {
    let asked = 0;
    const server = await serve((text) => (asked++ < 8 ? scoreAttempts(text, () => asked % 2) : 'hm'));
    const ranking = { url: server.url, model: 'hosted' };
    const config = toyConfig('bandit', {
      stop: { updates: 2 },
      rollout: { concurrentGroups: 12 },
      learner: { ranking, maxLag: 3, filterGroups: false },
    });
    await inFolder((dir) =>
      withToyRun(config, dir, async ({ run, rows }) => {
        const { status } = await run.train();
        expect(status.version).toBe(2);
        await run.flush();
        expect(rows.length).toBe(2);
        expect((await run.save()).ok).toBe(true); // the learner is alive
      }),
    );
    expect(asked).toBeGreaterThan(8);
  });

  const base = ['env.id=textcraft', 'horizon.type=fixed', 'horizon.rounds=8', 'stop.updates=1'];
  it.each<[string, readonly string[], string]>([
    ['a group of one', ['rollout.groupSize=1', 'learner.estimator.algorithm=ppo'], 'learner.ranking: a judge compares'],
    [
      'a teacher that is the only signal',
      ['learner.distillation={teacher: {type: run, path: runs/x}}'],
      'learner.ranking: nothing is learnt from rewards',
    ],
    ['dynamic sampling', ['learner.oversampling=2'], 'learner.oversampling: which groups have a signal'],
    ['self-imitation', ['learner.selfImitation={}'], 'learner.selfImitation: scores of a judge'],
    ['an even number of votes', ['learner.ranking.votes=2'], 'learner.ranking.votes: expected an odd number'],
    ['no URL', ['learner.ranking.url=localhost'], 'learner.ranking.url'],
    ['a key in the URL', ['learner.ranking.url=http://u:p@h/v1'], 'learner.ranking.url'],
  ])('%s is refused', (_, set, message) => {
    const ranking = ['learner.ranking.url=http://127.0.0.1:9/v1', 'learner.ranking.model=m'];
    expect(() => loadRunConfig('', 'x.yaml', [...base, ...ranking, ...set])).toThrow(message);
  });
});
