/** Server of the gateway over real sockets: keys, routes, the bounds of bodies, and the addresses that it answers at. */
import { Agent } from 'node:http';
import { describe, expect, it } from 'vitest';
import type { Episode } from '../../src/gateway/episode.ts';
import { openGateway } from '../../src/gateway/server.ts';
import { ask, bodyOf, PATHS, send, textReply } from './lab.ts';
import { countSockets, errorIn, hasNone, openEpisode, question, readReply, start, until } from './open.ts';

describe('keys', () => {
  const body = bodyOf('chat', question('q'));
  const statusOf = async (url: string, headers: Record<string, string>) =>
    (await send(url, body, { headers }).received).status;

  it('are checked in path and header, in either header', async () => {
    const gateway = await start();
    const [episode, other] = [gateway.open(), gateway.open()];
    const url = episode.root + PATHS.chat;
    expect(await statusOf(url, {})).toBe(401);
    const wrong = [
      `Bearer ${episode.key}x`,
      `Bearer ${episode.key.slice(1)}`,
      'Bearer ',
      'Basic abc',
      episode.key,
      'Bearer é',
    ];
    for (const authorization of wrong) {
      expect([authorization, await statusOf(url, { authorization })]).toEqual([authorization, 401]);
    }
    expect(await statusOf(url, { authorization: `Bearer ${other.key}` })).toBe(403);
    expect(await statusOf(`${gateway.url}/e/none${PATHS.chat}`, { authorization: `Bearer ${episode.key}` })).toBe(404);
    expect(await statusOf(`${gateway.url}${PATHS.chat}`, { authorization: `Bearer ${episode.key}` })).toBe(404);
    const right: Record<string, string>[] = [
      { authorization: `Bearer ${episode.key}` },
      { authorization: `bearer ${episode.key}` },
      { 'x-api-key': episode.key },
      { 'x-api-key': episode.key, authorization: 'Bearer no' },
      { 'x-api-key': 'no', authorization: `Bearer ${episode.key}` },
    ];
    for (const headers of right) {
      const sent = send(url, body, { headers });
      await (await episode.next()).answer(textReply('a'));
      expect((await sent.received).status).toBe(200);
    }
    expect(await hasNone(other)).toBe(true);
  });

  it('and ids are long, and unlike each other', async () => {
    const gateway = await start();
    const episodes = Array.from({ length: 100 }, () => gateway.open());
    const texts = episodes.flatMap(({ key, root }) => [key, root.split('/e/')[1]!]);
    expect(new Set(texts).size).toBe(200);
    for (const text of texts) expect(text.length).toBeGreaterThanOrEqual(24);
  });
});

describe('routes', () => {
  const get = (episode: Episode, path: string, headers = {}) =>
    send(episode.root + path, '', { method: 'GET', headers: { authorization: `Bearer ${episode.key}`, ...headers } })
      .received;

  it('are found below /v1 once or twice, whatever the query', async () => {
    const episode = await openEpisode();
    const headers = { authorization: `Bearer ${episode.key}` };
    for (const path of ['/v1/messages?beta=true', '/v1/v1/messages', '/v1/v1/messages?beta=true']) {
      const sent = send(episode.root + path, bodyOf('messages', question('q')), { headers });
      await (await episode.next()).answer(textReply('a'));
      expect(readReply('messages', await sent.received)).toBe('a');
    }
    const models = JSON.parse((await get(episode, '/v1/models')).text) as { data: { id: string }[] };
    expect(models.data.map(({ id }) => id)).toEqual(['policy']);
  });

  it('that are none are refused in the form of the nearest dialect, upgrades too', async () => {
    const episode = await openEpisode();
    for (const [path, dialect] of [
      ['/v1/embeddings', 'chat'],
      ['/v1/messages/batches', 'messages'],
      ['/v1/responses/resp_0', 'responses'],
      ['/v1/chat/completions', 'chat'],
      ['/messages', 'messages'],
      ['/v1/v1/v1/models', 'chat'],
    ] as const) {
      const received = await get(episode, path);
      expect([path, received.status]).toEqual([path, 404]);
      errorIn(dialect, received);
    }
    const upgrade = {
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-key': 'a'.repeat(22),
      'sec-websocket-version': '13',
    };
    expect((await get(episode, '/v1/responses', upgrade)).status).toBe(404);
    expect(await hasNone(episode)).toBe(true);
  });

  it('count tokens without a call', async () => {
    const episode = await openEpisode({ countTokens: ({ messages }) => 10 * messages.length });
    const headers = { 'x-api-key': episode.key };
    const { max_tokens: _, ...body } = bodyOf('messages', [{ user: 'q' }, { text: 'a' }, { user: 'r' }]);
    const { status, text } = await send(`${episode.root}/v1/messages/count_tokens`, body, { headers }).received;
    expect([status, JSON.parse(text)]).toEqual([200, { input_tokens: 30 }]);
    expect((await send(`${episode.root}/v1/messages/count_tokens`, '[]', { headers }).received).status).toBe(400);
    expect(await hasNone(episode)).toBe(true);
  });

  it('keep what later requests of responses name by id, instructions left out', async () => {
    const episode = await openEpisode();
    const say = async (body: object, reply: string | undefined = undefined) => {
      const sent = ask(episode, 'responses', { model: 'policy', ...body });
      if (reply === undefined) return { received: await sent.received, call: undefined };
      const call = await episode.next();
      await call.answer({ ...textReply(reply), reasoning: 'hm' });
      return { received: await sent.received, call };
    };
    await say({ instructions: 'Be brief.', input: 'q' }, 'a');
    const { call } = await say({ instructions: 'Be brief.', previous_response_id: 'resp_0', input: 'r' }, 'b');
    expect([call!.parent, call!.fresh]).toEqual([0, [{ role: 'user', content: 'r' }]]);
    const changed = await say({ instructions: 'Be long.', previous_response_id: 'resp_1', input: 's' }, 'c');
    expect(changed.call!.parent).toBe(null);
    expect(changed.call!.call.messages.map(({ content }) => content)).toEqual(['Be long.', 'q', 'a', 'r', 'b', 's']);
    const input = [
      { role: 'user', content: 'q' },
      { type: 'item_reference', id: 'rs_0' },
      { type: 'item_reference', id: 'msg_0' },
    ];
    const referred = await say({ instructions: 'Be brief.', input: [...input, { role: 'user', content: 'r' }] }, 'd');
    expect(referred.call!.parent).toBe(0);
    for (const unknown of [
      { previous_response_id: 'resp_99', input: 'q' },
      { input: [{ type: 'item_reference', id: 'x' }] },
    ]) {
      expect((await say(unknown)).received.status).toBe(404);
    }
    const compact = { authorization: `Bearer ${episode.key}` };
    const url = `${episode.root}/v1/responses/compact`;
    const unknown = await send(url, { model: 'm', previous_response_id: 'resp_99' }, { headers: compact }).received;
    expect(unknown.status).toBe(404);
    // A compacted history stands for the whole one: the next call continues the chain.
    const compacted = await send(url, { model: 'm', previous_response_id: 'resp_1' }, { headers: compact }).received;
    const { output } = JSON.parse(compacted.text) as { output: { role?: string; type: string }[] };
    expect(output.map(({ role, type }) => role ?? type)).toEqual(['user', 'user', 'compaction']);
    const onwards = await say({ instructions: 'Be brief.', input: [...output, { role: 'user', content: 't' }] }, 'e');
    expect([onwards.call!.parent, onwards.call!.fresh]).toEqual([1, [{ role: 'user', content: 't' }]]);
    episode.finish();
    const closing = await say({ previous_response_id: 'resp_1', input: 'x' });
    const { id } = JSON.parse(closing.received.text) as { id: string };
    expect((await say({ previous_response_id: id, input: 'y' })).received.status).toBe(200);
  });

  it('take one reward of the program', async () => {
    const episode = await openEpisode();
    const url = `${episode.root}/reward`;
    const post = (body: unknown, headers: Record<string, string> = { authorization: `Bearer ${episode.key}` }) =>
      send(url, body, { headers }).received.then(({ status }) => status);
    expect(episode.postedReward()).toBe(undefined);
    expect(await post({ reward: 1 }, {})).toBe(401);
    for (const bad of [
      {},
      { reward: '1' },
      { reward: null },
      [1],
      'no',
      { reward: 1, success: 1 },
      { reward: 1, metrics: { a: 'b' } },
    ]) {
      expect([bad, await post(bad)]).toEqual([bad, 400]);
    }
    expect(await post(`{"reward":1,"metrics":{"a":"${'a'.repeat(100_000)}"}}`)).toBe(413);
    expect(episode.postedReward()).toBe(undefined);
    const reward = { reward: 0.5, success: true, metrics: { steps: 3 } };
    expect(await post(reward)).toBe(200);
    expect(await post(reward)).toBe(200); // its client sent it twice
    expect(await post({ reward: 1 })).toBe(400);
    expect(episode.postedReward()).toEqual(reward);
  });
});

describe('bodies', () => {
  it('beyond the limit, or what a context could hold, are refused unread', async () => {
    const episode = await openEpisode({ limits: { maxBodyBytes: 100_000 }, maxContextBytes: 10_000 });
    const filled = (length: number) => bodyOf('chat', question('x'.repeat(length)));
    const tooLarge = await ask(episode, 'chat', filled(200_000)).received;
    expect(tooLarge.status).toBe(413);
    const tooLong = await ask(episode, 'chat', filled(20_000)).received;
    expect([tooLong.status, errorIn('chat', tooLong).code]).toEqual([400, 'context_length_exceeded']);
    const headers = { 'transfer-encoding': 'chunked' };
    expect((await ask(episode, 'chat', filled(20_000), { headers }).received).status).toBe(400);
    expect(await hasNone(episode)).toBe(true);
  });

  it('of more messages or tools than a client sends are refused by their count, and those at the bound are not', async () => {
    const gateway = await start();
    const episode = gateway.open();
    const { key, root } = episode;
    const headers = { authorization: `Bearer ${key}` };
    const many = (count: number, entry: object) => Array.from({ length: count }, () => entry);
    const turn = { role: 'user', content: '' };
    const cases = [
      ['chat', 'messages', turn, 16_384],
      ['messages', 'messages', turn, 16_384],
      ['responses', 'input', turn, 16_384],
      ['chat', 'tools', { type: 'function', function: { name: 'f' } }, 2048],
    ] as const;
    for (const [dialect, name, entry, max] of cases) {
      const body = { ...bodyOf(dialect, question('q')), [name]: many(max + 1, entry) };
      const refused = await send(root + PATHS[dialect], body, { headers }).received;
      const message = `${name}: expected at most ${max} of them, got ${max + 1}; shorten the conversation or its tools`;
      expect([refused.status, errorIn(dialect, refused).message]).toEqual([400, message]);
    }
    expect(await hasNone(episode)).toBe(true);
    const sent = send(
      root + PATHS.chat,
      { ...bodyOf('chat', question('q')), messages: many(16_384, turn) },
      { headers },
    );
    const call = await episode.next();
    expect(call.fresh).toHaveLength(16_384);
    await call.answer(textReply('a'));
    expect((await sent.received).status).toBe(200);
  });

  it('of 64 MB reach the client as a refusal, through its own fetch', async () => {
    const episode = await openEpisode();
    const post = (megabytes: number) =>
      fetch(`${episode.baseURL}/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${episode.key}` },
        body: JSON.stringify(bodyOf('chat', question('x'.repeat(megabytes * 1024 * 1024)))),
      }).then(async (response) => [
        response.status,
        ((await response.json()) as { error: { message: string } }).error.message,
      ]);
    expect(await post(63)).toEqual([400, expect.stringMatching(/prompt is too long/)]);
    expect(await post(65)).toEqual([413, expect.stringMatching(/67108864/)]);
  });
});

describe('addresses', () => {
  it('are the loopback of either protocol, and others with the episode’s key alone', async () => {
    const hosts = ['127.0.0.1', '::1', '0.0.0.0'];
    const servers = await Promise.all(hosts.map((host) => start({ host })));
    for (const { open: _open, url } of servers) expect(new URL(url).port).not.toBe('0');
    for (const gateway of servers) {
      const episode = gateway.open();
      const root = episode.root.replace('0.0.0.0', '127.0.0.1');
      const headers = { authorization: `Bearer ${episode.key}`, host: 'host.docker.internal' };
      const sent = send(root + PATHS.chat, bodyOf('chat', question('q')), { headers });
      if (gateway.url.includes('0.0.0.0')) {
        await (await episode.next()).answer(textReply('a'));
        expect((await sent.received).status).toBe(200);
        expect((await send(root + PATHS.chat, '{}', {}).received).status).toBe(401);
      } else expect((await sent.received).status).toBe(403); // a page's own name may point at this machine
    }
  });

  it('are let go by close, with no socket left', async () => {
    const gateway = await openGateway();
    const episode = gateway.open();
    const agent = new Agent({ keepAlive: true });
    const idle = ask(episode, 'chat', bodyOf('chat', question('q')), { agent });
    await (await episode.next()).answer(textReply('a'));
    await idle.received;
    const held = ask(episode, 'chat', bodyOf('chat', question('r')), { agent });
    const call = await episode.next();
    await gateway.close();
    await expect(held.received.then(({ status }) => status)).resolves.toBe(403);
    await call.answer(textReply('too late'));
    await until(() => countSockets() === 0);
    agent.destroy();
  });
});
