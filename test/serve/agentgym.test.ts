/** Beyond the recordings of AgentGym's servers: Python's words for broken JSON, and play past the end. */
import { crc32, inflateSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { agentgym as babyai } from '../../envs/babyai/agentgym.ts';
import { agentgym as textcraft } from '../../envs/textcraft/agentgym.ts';
import type { AgentGymDialect } from '../../src/core/agentgym.ts';
import type { Draw } from '../../src/core/draw.ts';
import type { HttpRequest } from '../../src/http/app.ts';
import { AgentGymProtocol } from '../../src/serve/agentgym/protocol.ts';
import { findJsonMistake } from '../../src/serve/agentgym/python-json.ts';
import type { EpisodeAnswer, Episodes } from '../../src/serve/episodes.ts';

describe('a text that is no JSON', () => {
  // Messages and positions as CPython 3.10 gives them.
  it.each([
    ['', 'Expecting value', 0],
    ['{bad json}', 'Expecting property name enclosed in double quotes', 1],
    ['{"a" 1}', "Expecting ':' delimiter", 5],
    ['{"a": }', 'Expecting value', 6],
    ['{"a": 1 "b": 2}', "Expecting ',' delimiter", 8],
    ['[1, 2', "Expecting ',' delimiter", 5],
    ['{"a": 1} x', 'Extra data', 9],
    ['"abc', 'Unterminated string starting at', 0],
    ['"a\nb"', 'Invalid control character at', 2],
    ['"\\x"', 'Invalid \\escape: ', 1],
    ['["\u{1f600}", }', 'Expecting value', 6],
  ])('%j: %s', (text, message, position) => {
    expect(findJsonMistake(text)).toEqual({ message, position });
  });

  it('is read where Python reads more than JSON allows', () => {
    expect(findJsonMistake('{"a": [NaN, -Infinity], "b": {}}')).toBeUndefined();
  });
});

/** Hosts that report which episode took which actions; `end` terminates, and so does any action behind it. */
function hosts() {
  let next = 0;
  const open = new Map<number, string[]>();
  const answer = (episode: number): EpisodeAnswer => {
    const actions = open.get(episode)!;
    const observation = `${actions.join(',')}`;
    const ended = actions.at(-1) === 'end';
    if (ended) open.delete(episode);
    const step = ended
      ? ({ kind: 'terminated', observation, reward: 1, success: true } as const)
      : actions.length === 0
        ? ({ kind: 'first', observation: 'begin' } as const)
        : ({ kind: 'mid', observation, reward: 0.5 } as const);
    return { episode, turn: actions.length, step, actions: [] };
  };
  const episodes: Episodes = {
    async open(_, { replay = [] }) {
      open.set(next, [...replay]);
      return answer(next++);
    },
    async step(episode, turn, action) {
      expect(open.get(episode)!.push(action)).toBe(turn);
      return answer(episode);
    },
    close: (episode) => void open.delete(episode),
    get count() {
      return open.size;
    },
    healthy: true,
  };
  return { episodes, open };
}

function client(dialect: AgentGymDialect, limits = {}, draw?: Draw) {
  const { episodes, open } = hosts();
  let now = 0;
  const served = { env: 'world', original: 'world/original', server: dialect.server!, draw };
  const protocol = new AgentGymProtocol(served, episodes, limits, () => now);
  const send = async (method: string, path: string, body?: unknown) => {
    const [route, query = ''] = path.split('?');
    const request: HttpRequest = {
      method,
      path: route!,
      query,
      contentType: 'application/json',
      body: body === undefined ? '' : JSON.stringify(body),
      gone: new AbortController().signal,
    };
    const { status, body: text } = await protocol.handle(route!, request);
    return { status, body: JSON.parse(text as string) };
  };
  return { send, open, protocol, pass: (ms: number) => (now += ms) };
}

it('TextCraft goes on past its end, as the original does', async () => {
  const { send, open } = client(textcraft);
  await send('POST', '/create', {});
  await send('POST', '/step', { id: 0, action: 'a' });
  expect((await send('POST', '/step', { id: 0, action: 'end' })).body).toEqual({
    observation: 'a,end',
    reward: 1,
    done: true,
  });
  expect((await send('POST', '/step', { id: 0, action: 'b' })).body).toEqual({
    observation: 'a,end,b',
    reward: 0.5,
    done: false,
  });
  expect((await send('POST', '/step', { id: 0, action: 'c' })).body.observation).toBe('a,end,b,c');
  expect(open.size).toBe(1);
});

it('BabyAI adds its rewards up, and refuses to go on', async () => {
  const { send } = client(babyai);
  await send('POST', '/create');
  await send('POST', '/reset', { id: 0, data_idx: 3 });
  expect((await send('POST', '/step', { id: 0, action: 'a' })).body.score).toBe(0.5);
  expect((await send('POST', '/step', { id: 0, action: 'end' })).body).toMatchObject({
    reward: 1,
    score: 1.5,
    done: true,
  });
  expect((await send('POST', '/step', { id: 0, action: 'a' })).body.error).toContain('has finished');
  expect((await send('POST', '/reset', { id: 0, data_idx: 3 })).body).toMatchObject({ score: 0, done: false });
});

it('BabyAI draws its grid as a PNG', async () => {
  const { draw } = await import('../../envs/babyai/draw.ts');
  const { send } = client(babyai, {}, draw);
  await send('POST', '/create');
  expect((await send('POST', '/render', { id: 0 })).body).toEqual({ error: '0' });
  await send('POST', '/reset', { id: 0, data_idx: 3 });
  const before = pixels((await send('POST', '/render', { id: 0 })).body as unknown as string);
  await send('POST', '/step', { id: 0, action: 'turn left' });
  const after = pixels((await send('POST', '/render', { id: 0 })).body as unknown as string);
  expect([after.width, after.height]).toEqual([before.width, before.height]);
  const grid = gridOf(draw, ['turn left']);
  expect([after.width, after.height]).toEqual([32 * grid[0]!.length, 32 * grid.length]);
  grid.forEach((row, y) => {
    row.forEach(({ glyph }, x) => {
      const [red, green, blue] = after.at(32 * x + 16, 32 * y + 16);
      if (['>', 'v', '<', '^'].includes(glyph)) expect(red! - Math.max(green!, blue!)).toBeGreaterThan(100);
      if (glyph === '█') expect(red! === green! && green === blue && red! >= 100).toBe(true);
      if (glyph === '·') expect(Math.max(red!, green!, blue!)).toBeLessThan(100);
    });
  });
  expect(after.bytes.equals(before.bytes)).toBe(false); // the agent has turned
  expect((await send('POST', '/render', { id: 5 })).body).toEqual({ error: 'The id 5 is not valid.' });
  expect((await client(babyai).send('POST', '/render', { id: 0 })).status).toBe(404); // nothing to draw with
});

function gridOf(draw: Draw, actions: readonly string[]) {
  const turns = actions.map((action) => ({ action, observation: '' }));
  const { panels } = draw({ env: 'babyai', index: 3, seed: 0 }, { kind: 'first', observation: 'begin' }, turns);
  const grid = panels.find((panel) => panel.kind === 'grid');
  return grid?.kind === 'grid' ? grid.rows : [];
}

/** Reads an uncompressed-filter RGB PNG back. */
function pixels(url: string) {
  const file = Buffer.from(/^data:image\/png;base64,(.+)$/.exec(url)![1]!, 'base64');
  const parts = new Map<string, Buffer>();
  for (let at = 8; at < file.length; ) {
    const length = file.readUInt32BE(at);
    const body = file.subarray(at + 4, at + 8 + length);
    expect(file.readUInt32BE(at + 8 + length)).toBe(crc32(body));
    parts.set(body.toString('latin1', 0, 4), body.subarray(4));
    at += 12 + length;
  }
  const [width, height] = [parts.get('IHDR')!.readUInt32BE(0), parts.get('IHDR')!.readUInt32BE(4)];
  const bytes = inflateSync(parts.get('IDAT')!);
  const at = (x: number, y: number) => [...bytes.subarray(y * (1 + 3 * width) + 1 + 3 * x).subarray(0, 3)];
  return { width, height, bytes, at };
}

it('answers requests of one environment in order, holds one episode for each, and lets idle ones go', async () => {
  const { send, open, protocol, pass } = client(textcraft, { maxSessions: 3, idleMs: 1000 });
  for (let i = 0; i < 3; i++) expect((await send('POST', '/create', {})).body.id).toBe(i);
  expect((await send('POST', '/create', {})).status).toBe(503);
  const actions = ['a', 'b', 'c', 'd'];
  const answers = await Promise.all(actions.map((action) => send('POST', '/step', { id: 1, action })));
  expect(answers.map(({ body }) => body.observation)).toEqual(['a', 'a,b', 'a,b,c', 'a,b,c,d']);
  for (let i = 0; i < 5; i++) await send('POST', '/reset', { id: 1, data_idx: i });
  expect(open.size).toBe(3);
  pass(900);
  await send('GET', '/observation?id=2');
  pass(900);
  expect(protocol.sessions.sweep(1800)).toBe(2);
  expect(open.size).toBe(1);
  expect((await send('GET', '/observation?id=1')).body).toEqual({ error: 'The id 1 is not valid.' });
});

it('answers a request whose environment another one closes meanwhile as one of an unknown environment', async () => {
  const { send, open } = client(textcraft);
  await send('POST', '/create', {});
  const step = send('POST', '/step', { id: 0, action: 'a' });
  await send('POST', '/close', { id: 0 });
  expect(await step).toEqual({ status: 200, body: { error: 'The id 0 is not valid.' } });
  expect(open.size).toBe(0);
});
