/** Models that worlds talk to, and judges behind them, against a local stand-in of an OpenAI-compatible server. */
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { ChatModelOptions } from '../../../src/core/chat-model.ts';
import { messageOf } from '../../../src/core/errors.ts';
import { Judge, type JudgeOptions } from '../../../src/core/judge.ts';
import { Rubric } from '../../../src/core/rubric.ts';
import { isUnanswered } from '../../../src/http/retry.ts';
import { openChatModel } from '../../../src/policy/remote/chat-model.ts';
import { type ScriptedAnswer, startChatServer } from '../../support/chat-server.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  vi.unstubAllEnvs();
  for (const close of closing.splice(0)) await close();
});

type Body = Readonly<Record<string, unknown>>;
type Script = (body: Body, n: number) => ScriptedAnswer | Promise<ScriptedAnswer>;
const text = (content: string): ScriptedAnswer => ({ message: { role: 'assistant', content } });

async function standIn(script: Script, more: Partial<ChatModelOptions> = {}, key?: string) {
  const server = await startChatServer(script, key === undefined ? {} : { key });
  const model = openChatModel({ url: server.url, model: 'stand-in', ...more });
  closing.push(() => model.close(), server.close);
  return { server, model };
}

const hello = { messages: [{ role: 'user', content: 'Hello.' }] } as const;
const never: Script = () => new Promise(() => {});

describe('a model', () => {
  it('gets the conversation, the tools and its settings, and replies with text and calls', async () => {
    const tool = { name: 'look', description: 'Looks.', parameters: { type: 'object', properties: {} } };
    const call = { id: 'c1', type: 'function', function: { name: 'look', arguments: '{}' } };
    const { server, model } = await standIn(
      () => ({ message: { role: 'assistant', content: 'Hm.', tool_calls: [call] } }),
      {
        maxTokens: 99,
        body: { reasoning_effort: 'low' },
      },
    );
    const reply = await model.reply({ ...hello, tools: [tool], seed: 7 });
    expect(reply).toMatchObject({ content: 'Hm.', calls: [{ name: 'look', arguments: '{}' }] });
    expect(server.bodies).toMatchObject([
      { model: 'stand-in', messages: hello.messages, temperature: 0, seed: 7, max_tokens: 99, reasoning_effort: 'low' },
    ]);
    expect(server.bodies[0]).toMatchObject({ tools: [{ type: 'function', function: { name: 'look' } }] });
  });

  it('sends its key, and says which variable lacks one', async () => {
    vi.stubEnv('STAND_IN_KEY', 'sk-stand-in-0001');
    const { model } = await standIn(() => text('Yes.'), { apiKeyEnv: 'STAND_IN_KEY' }, 'sk-stand-in-0001');
    expect((await model.reply(hello)).content).toBe('Yes.');
    expect(() => openChatModel({ url: 'http://127.0.0.1:1', model: 'm', apiKeyEnv: 'NO_SUCH_KEY' })).toThrow(
      'expected a key in NO_SUCH_KEY, which is not set',
    );
  });

  it('is asked again where the fault may pass, and fails at once where it will not', async () => {
    const { server, model } = await standIn((_, n) =>
      n === 0
        ? { status: 503, headers: { 'retry-after-ms': '1' } }
        : n === 1
          ? text('Yes.')
          : { status: 404, error: 'none' },
    );
    expect((await model.reply(hello)).content).toBe('Yes.');
    await expect(model.reply(hello)).rejects.toMatchObject({
      code: 'REMOTE_FAILED',
      message: /stand-in at .*HTTP 404/,
    });
    expect(server.bodies).toHaveLength(3);
  });

  it('fails in time where no answer comes, and when it is closed', async () => {
    const { model } = await standIn(never, { timeoutMs: 50, attempts: 1 });
    await expect(model.reply(hello)).rejects.toThrow('no whole answer within 50 ms');
    const { model: slow } = await standIn(never, { concurrency: 1 });
    const asked = [slow.reply(hello), slow.reply(hello)];
    slow.close();
    for (const one of asked) await expect(one).rejects.toThrow('the client was closed');
  });

  it('has no more requests in flight than it may, and answers all', async () => {
    let flying = 0;
    let most = 0;
    const { model } = await standIn(
      async () => {
        most = Math.max(most, ++flying);
        await new Promise((resolve) => setTimeout(resolve, 5));
        flying--;
        return text('Yes.');
      },
      { concurrency: 2 },
    );
    await Promise.all(Array.from({ length: 7 }, () => model.reply(hello)));
    expect(most).toBe(2);
  });

  it.each<[Partial<Record<keyof ChatModelOptions | 'name', unknown>>, string]>([
    [{ url: 'ftp://a' }, 'model.url: expected a URL'],
    [{ model: '' }, 'model.model: expected the name of a model, got ""'],
    [{ name: 'x' }, 'model.name: expected one of the options url, model'],
    [{ temperature: 3 }, 'model.temperature: expected a number in [0, 2], got 3'],
    [{ attempts: 0 }, 'model.attempts: expected an integer in [1, 100], got 0'],
    [{ timeoutMs: 1.5 }, 'model.timeoutMs: expected an integer'],
    [{ body: [] }, 'model.body: expected an object of fields, got []'],
  ])('refuses %j', (change, message) => {
    expect(() => openChatModel({ url: 'http://127.0.0.1:1', model: 'm', ...change } as ChatModelOptions)).toThrow(
      message,
    );
  });
});

/** Verdicts of a stand-in judge that finds a statement true where the text has it. */
const honest: Script = ({ messages }) => {
  const [, { content }] = messages as [unknown, { content: string }];
  const judged = /<text>\n(.*)\n<\/text>/s.exec(content)![1]!;
  const statements = [...content.matchAll(/^\d+\. (.*)$/gm)].map(([, one]) => one!);
  const verdicts = statements.map((one, i) => ({ statement: i + 1, reason: 'r', holds: judged.includes(one) }));
  return text(`\`\`\`json\n${JSON.stringify({ verdicts: verdicts.reverse() })}\n\`\`\``);
};
const verdict = (...holds: unknown[]) =>
  text(JSON.stringify({ verdicts: holds.map((one, i) => ({ statement: i + 1, holds: one })) }));

async function openJudge(script: Script, options?: JudgeOptions, more?: Partial<ChatModelOptions>) {
  const { server, model } = await standIn(script, more);
  return { server, judge: new Judge(model, options) };
}

describe('a judge', () => {
  it('checks all statements in one request at temperature 0, in whatever order the verdicts come', async () => {
    const { server, judge } = await openJudge(honest);
    expect(await judge.check('cats purr', ['purr', 'bark', 'cats'])).toEqual([true, false, true]);
    expect(await judge.check('cats purr', ['cats', 'purr', 'bark'])).toEqual([true, true, false]);
    expect(server.bodies.map(({ temperature }) => temperature)).toEqual([0, 0]);
  });

  it('is asked once for the same, also at the same time, and once for each vote', async () => {
    const { server, judge } = await openJudge(honest, { votes: 3 });
    await Promise.all([judge.check('a', ['a']), judge.check('a', ['a'])]);
    await judge.check('a', ['a']);
    expect(server.bodies).toHaveLength(3);
    expect(new Set(server.bodies.map(({ seed }) => seed)).size).toBe(3);
    await judge.check('b', ['a']);
    expect(server.bodies).toHaveLength(6);
    const { server: uncached, judge: forgetful } = await openJudge(honest, { cache: 0 });
    for (let i = 0; i < 2; i++) await forgetful.check('a', ['a']);
    expect(uncached.bodies).toHaveLength(2);
    const { server: small, judge: narrow } = await openJudge(honest, { cache: 1 });
    for (const one of ['a', 'b', 'b', 'a']) await narrow.check(one, ['a']);
    expect(small.bodies).toHaveLength(3);
  });

  it('goes by the majority of its votes, and by the median of their scores', async () => {
    const { judge } = await openJudge((_, n) => verdict(n !== 1, n === 1), { votes: 3 });
    expect(await judge.check('t', ['s', 'u'])).toEqual([true, false]);
    const scores = [0.1, 1, 0.4];
    const { judge: scoring } = await openJudge((_, n) => text(`{"score": ${scores[n]}}`), { votes: 3 });
    expect(await scoring.score('t', 'c')).toBe(0.4);
  });

  it.each<[string, ScriptedAnswer]>([
    ['no JSON', text('It holds.')],
    ['JSON that is cut off', text('{"verdicts": [{"statement": 1, "holds"')],
    ['another form', text('{"holds": true}')],
    ['too few verdicts', verdict(true)],
    ['too many verdicts', verdict(true, true, true)],
    ['a verdict that is no boolean', verdict(true, 'yes')],
    ['a statement twice', text('{"verdicts": [{"statement": 1, "holds": true}, {"statement": 1, "holds": true}]}')],
    ['nothing', text('')],
  ])('that answers with %s is asked again under another seed, and then fails', async (_, answer) => {
    const { server, judge } = await openJudge((_body, n) => (n === 1 ? verdict(true, false) : answer));
    expect(await judge.check('t', ['s', 'u'])).toEqual([true, false]);
    expect(server.bodies[0]!.seed).not.toBe(server.bodies[1]!.seed);
    const { server: other, judge: broken } = await openJudge(() => answer, { retries: 1 });
    const message = /^judge stand-in at .*: asked 2 times: expected .*, got /;
    await expect(broken.check('t', ['s', 'u'])).rejects.toMatchObject({ code: 'REMOTE_FAILED', message });
    expect(other.bodies).toHaveLength(2);
    await expect(broken.check('t', ['s', 'u'])).rejects.toThrow('asked 2 times'); // a failure is not kept
    expect(other.bodies).toHaveLength(4);
  });

  it('that does not answer in time makes a part fail, and the rubric with it', async () => {
    const { judge } = await openJudge(never, {}, { timeoutMs: 50, attempts: 1 });
    const tone = judge.part<string>({ name: 'tone', weight: 2, criterion: 'It is polite.', show: (one) => one });
    const rubric = new Rubric([tone, { name: 'length', score: ({ length }) => length }]);
    const failed: unknown = await rubric.score('hm').catch((thrown: unknown) => thrown);
    expect(messageOf(failed)).toMatch(/^the part "tone" of the reward failed: model stand-in at/);
    expect(isUnanswered(failed)).toBe(true); // so the episode fails as `unreachable`
    const { judge: kind } = await openJudge(() => text('{"reason": "r", "score": 0.5}'));
    const asked = new Rubric([kind.part<string>({ name: 'tone', weight: 2, criterion: 'polite', show: (one) => one })]);
    expect(await asked.score('hm')).toEqual({ reward: 1, metrics: { tone: 0.5 } });
  });

  it('refuses to judge nothing, and settings outside their ranges', async () => {
    const { judge } = await openJudge(honest);
    await expect(judge.check('t', [])).rejects.toThrow('expected one statement or more, got none');
    const { model } = await standIn(honest);
    for (const options of [{ votes: 2 }, { votes: 0 }, { votes: 17 }, { retries: -1 }, { cache: 0.5 }]) {
      expect(() => new Judge(model, options)).toThrow(/^judge: expected (?:votes|retries|cache) to be/);
    }
  });
});
