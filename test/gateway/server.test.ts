/** Laws of the gateway over real sockets: who is answered, what is counted once, what a client that leaves costs. */
import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, describe, expect, it } from 'vitest';
import { SimulatedClock } from '../../src/core/clock.ts';
import type { DialectId } from '../../src/gateway/dialects/dialect.ts';
import { CLOSING_TEXT, type Episode } from '../../src/gateway/episode.ts';
import { HOLD_MS } from '../../src/gateway/exchange.ts';
import type { WaitingCall } from '../../src/gateway/gateway.ts';
import { type GatewayOptions, type OpenGateway, openGateway } from '../../src/gateway/server.ts';
import { foldReply } from './fold.ts';
import {
  ask,
  bodyOf,
  callReply,
  DIALECTS,
  PATHS,
  type Received,
  type Sent,
  send,
  type Turn,
  textReply,
} from './lab.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;
const isLong = process.env.LONGPLAY_LONG === '1';

let gateways: OpenGateway[] = [];
afterEach(async () => {
  await Promise.all(gateways.map((gateway) => gateway.close()));
  gateways = [];
});

async function start(options?: GatewayOptions): Promise<OpenGateway> {
  const gateway = await openGateway(options);
  gateways.push(gateway);
  return gateway;
}

async function open(options?: GatewayOptions): Promise<Episode> {
  return (await start(options)).open();
}

/** Waits until a condition holds. */
async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await sleep(1);
}

const question = (text: string): Turn[] => [{ user: text }];
const retry = { headers: { 'x-stainless-retry-count': '1' } };

/** Reply that a client reads. */
function read(dialect: DialectId, { status, text, headers }: Received): string {
  expect(status).toBe(200);
  return foldReply(dialect, text, headers['content-type']!).reply.content;
}

/** Type of an error in a dialect's form. */
function errorOf(dialect: DialectId, { text }: { readonly text: string }): { message: string; code?: string } {
  const body = JSON.parse(text) as { type?: string; error: { message: string; type: string } };
  if (dialect === 'messages') expect(body.type).toBe('error');
  expect(body.error.type).toMatch(/^[a-z_]+$/);
  return body.error;
}

/** True where no call waits. */
async function hasNone(episode: Episode): Promise<boolean> {
  const next = episode.next(AbortSignal.timeout(20));
  return next.then(
    () => false,
    () => true,
  );
}

describe.each(DIALECTS)('calls in %s', (dialect) => {
  it('wait for their reply, plain and streamed, and the two fold to the same', async () => {
    const episode = await open();
    const folded: unknown[] = [];
    for (const stream of [false, true]) {
      const sent = ask(episode, dialect, bodyOf(dialect, question('q'), { stream, ...includeUsage(dialect, stream) }));
      const call = await episode.next();
      expect([call.parent, call.fresh]).toEqual([null, [{ role: 'user', content: 'q' }]]);
      await call.answer({ ...callReply('a', 'b'), content: 'Let me see.', reasoning: 'hm' });
      const { text, headers } = await sent.received;
      expect(headers['x-request-id']).toBe(`req_${stream ? 1 : 0}`);
      const { reply } = foldReply(dialect, text, headers['content-type']!);
      folded.push({
        ...reply,
        calls: reply.calls.map(({ id, ...made }) => ({ ...made, id: id.replace(/_\d_/, '_n_') })),
      });
      expect(reply.calls.map(({ id }) => id)).toEqual([0, 1].map((i) => `${prefixOf(dialect)}_${stream ? 1 : 0}_${i}`));
    }
    expect(folded[0]).toEqual(folded[1]);
  });

  it('are refused in the form of the dialect, before a byte', async () => {
    const episode = await open();
    for (const stream of [false, true]) {
      const sent = ask(episode, dialect, bodyOf(dialect, question('q'), { stream }));
      (await episode.next()).refuse(503, 'the policy is down');
      const received = await sent.received;
      expect([received.status, received.headers['retry-after']]).toEqual([503, '1']);
      expect(errorOf(dialect, received).message).toBe('the policy is down');
    }
  });

  it('that are held keep their connection by what clients ignore', async () => {
    const clock = new SimulatedClock();
    const episode = await open({ clock });
    const plain = ask(episode, dialect, bodyOf(dialect, question('q')));
    const streamed = ask(episode, dialect, bodyOf(dialect, question('r'), { stream: true }));
    const calls = [await episode.next(), await episode.next()];
    clock.advance(HOLD_MS - 1);
    await sleep(10);
    expect([plain.text(), streamed.text()]).toEqual(['', '']);
    for (let beats = 1; beats <= 3; beats++) {
      clock.advance(beats === 1 ? 1 : HOLD_MS);
      await until(() => plain.text() === ' '.repeat(beats) && streamed.text() === ': keep-alive\n\n'.repeat(beats));
    }
    for (const call of calls) await call.answer(textReply(call.call.messages[0]!.content));
    const texts = new Set([read(dialect, await plain.received), read(dialect, await streamed.received)]);
    expect(texts).toEqual(new Set(['q', 'r']));
  });

  it('that fail after the first byte end with an error event and a destroyed socket, never with a clean end', async () => {
    const clock = new SimulatedClock();
    const episode = await open({ clock });
    for (const stream of [true, false]) {
      const sent = ask(episode, dialect, bodyOf(dialect, question('q'), { stream }));
      const call = await episode.next();
      clock.advance(HOLD_MS);
      await until(() => sent.text() !== '');
      call.refuse(503, 'the policy is down');
      await expect(sent.received).rejects.toThrow(/aborted|hang up|ECONNRESET/);
      expect(sent.text().includes('the policy is down')).toBe(stream);
    }
  });

  it('after the horizon get the closing text, those that wait too, and nothing is sampled', async () => {
    const episode = await open();
    const given = ask(episode, dialect, bodyOf(dialect, question('given')));
    const call = await episode.next();
    const waiting = ask(episode, dialect, bodyOf(dialect, question('waiting'), { stream: true }));
    await until(() => episode.arrivals === 2);
    episode.finish();
    await call.answer(textReply('too late'));
    for (const sent of [given, waiting]) expect(read(dialect, await sent.received)).toBe(CLOSING_TEXT);
    for (let i = 0; i < 3; i++) {
      const later = ask(episode, dialect, bodyOf(dialect, question('later'), { stream: i === 1 }));
      expect(read(dialect, await later.received)).toBe(CLOSING_TEXT);
    }
    for (const more of forced(dialect)) {
      const received = await ask(episode, dialect, bodyOf(dialect, question('forced'), more)).received;
      expect(received.status).toBe(400);
      expect(errorOf(dialect, received).message).toContain('over');
    }
    expect(await hasNone(episode)).toBe(true);
    expect(episode.takeUndelivered()).toEqual([]);
  });

  it('after the end are refused with 403, whatever is sent', async () => {
    const episode = await open();
    const waiting = ask(episode, dialect, bodyOf(dialect, question('q')));
    const call = await episode.next();
    const next = episode.next();
    episode.close();
    episode.close();
    await expect(next).rejects.toThrow('closed');
    await expect(episode.next()).rejects.toThrow('closed');
    await call.answer(textReply('too late'));
    expect((await waiting.received).status).toBe(403);
    for (const body of [bodyOf(dialect, question('q')), 'no JSON', Buffer.alloc(100_000)]) {
      const received = await ask(episode, dialect, body).received;
      expect(received.status).toBe(403);
      expect(errorOf(dialect, received).message).toContain('over');
    }
  });

  it('with a hostile body are refused with the place, and others go on', async () => {
    const episode = await open();
    const nested = `{"model":"m","messages":${'['.repeat(100_000)}${']'.repeat(100_000)}}`;
    const bodies = [
      '',
      'no JSON',
      '[]',
      'null',
      '"\\ud800"',
      '{"a":1,"a":2}',
      '{"__proto__":{"model":"m"}}',
      nested,
      '\0',
    ];
    for (const body of bodies) {
      const received = await ask(episode, dialect, body).received;
      expect([body.slice(0, 40), received.status]).toEqual([body.slice(0, 40), 400]);
      expect(errorOf(dialect, received).message.length).toBeGreaterThan(5);
    }
    const twice = JSON.stringify(bodyOf(dialect, question('q'))).replace('{', '{"model":"other",');
    const received = await ask(episode, dialect, twice).received;
    expect([received.status, errorOf(dialect, received).message]).toEqual([400, expect.stringContaining('model')]);
    const bad: Turn[][] = [[], [{ result: 'r', id: 'call_9_9' }]];
    for (const turns of bad) {
      expect((await ask(episode, dialect, bodyOf(dialect, turns)).received).status).toBe(400);
    }
    const sent = ask(episode, dialect, bodyOf(dialect, question('q')));
    await (await episode.next()).answer(textReply('a'));
    expect(read(dialect, await sent.received)).toBe('a');
  });
});

function prefixOf(dialect: DialectId): string {
  return dialect === 'messages' ? 'toolu' : 'call';
}

function includeUsage(dialect: DialectId, stream: boolean): object {
  return dialect === 'chat' && stream ? { stream_options: { include_usage: true } } : {};
}

/** Demands that a closing text cannot meet. */
function forced(dialect: DialectId): readonly Record<string, unknown>[] {
  const schema = { type: 'object', properties: {}, additionalProperties: false };
  switch (dialect) {
    case 'chat':
      return [
        { tool_choice: 'required' },
        { tool_choice: { type: 'function', function: { name: 'search' } } },
        { response_format: { type: 'json_schema', json_schema: { name: 's', schema } } },
      ];
    case 'responses':
      return [
        { tool_choice: 'required' },
        { tool_choice: { type: 'function', name: 'search' } },
        { text: { format: { type: 'json_schema', name: 's', schema } } },
      ];
    case 'messages':
      return [
        { tool_choice: { type: 'any' } },
        { tool_choice: { type: 'tool', name: 'search' } },
        { output_config: { format: { type: 'json_schema', schema } } },
      ];
  }
}

describe('a retry', () => {
  const body = bodyOf('chat', question('q'));

  it('of a refused call is a new call, and the only one that is answered', async () => {
    const episode = await open();
    for (const status of [429, 500, 503, 409]) {
      const sent = ask(episode, 'chat', body);
      (await episode.next()).refuse(status, 'not now');
      expect((await sent.received).status).toBe(status);
    }
    const sent = ask(episode, 'chat', body, retry);
    const call = await episode.next();
    expect([call.number, call.parent]).toEqual([4, null]);
    await call.answer(textReply('a'));
    expect(read('chat', await sent.received)).toBe('a');
    expect(episode.takeUndelivered()).toEqual([]);
  });

  it('of a refused call continues what that one did', async () => {
    const episode = await open();
    const twins = [ask(episode, 'chat', body), ask(episode, 'chat', body)];
    for (const _ of twins) await (await episode.next()).answer(textReply('same'));
    const onwards = bodyOf('chat', [...question('q'), { text: 'same' }, { user: 'r' }]);
    for (let tries = 0; tries < 3; tries++) {
      ask(episode, 'chat', onwards);
      const call = await episode.next();
      expect(call.parent).toBe(0); // what was refused does not count as its continuation
      call.refuse(503, 'not now');
    }
  });

  it('that is marked joins the call that still runs: one generation, the same bytes', async () => {
    const episode = await open();
    const first = ask(episode, 'chat', body);
    const call = await episode.next();
    const second = ask(episode, 'chat', body, retry);
    await until(() => episode.arrivals === 2);
    expect(await hasNone(episode)).toBe(true);
    await call.answer(textReply('a'));
    expect((await second.received).text).toBe((await first.received).text);
  });

  it('joins a call that its client has left, marked or not', async () => {
    for (const options of [{}, retry]) {
      const episode = await open();
      const first = ask(episode, 'chat', body);
      const call = await episode.next();
      first.leave();
      await until(() => call.gone.aborted);
      const second = ask(episode, 'chat', body, options);
      await until(() => episode.arrivals === 2);
      await call.answer(textReply('a'));
      expect(read('chat', await second.received)).toBe('a');
      expect(await hasNone(episode)).toBe(true);
      expect(episode.takeUndelivered()).toEqual([]);
    }
  });

  it('of a reply that did not arrive gets it again, byte for byte', async () => {
    const episode = await open();
    const first = ask(episode, 'chat', body);
    const call = await episode.next();
    first.leave();
    await until(() => call.gone.aborted);
    await call.answer(callReply('a'));
    const again = await ask(episode, 'chat', body).received;
    expect(foldReply('chat', again.text, 'application/json').reply.calls[0]!.id).toBe('call_0_0');
    expect((await ask(episode, 'chat', body, retry).received).text).toBe(again.text); // the mark wins over the delivery
    expect(await hasNone(episode)).toBe(true);
    expect(episode.takeUndelivered()).toEqual([]);
  });

  it('of a reply whose loss was counted is a new call, and nothing continues the lost one', async () => {
    const episode = await open();
    const first = ask(episode, 'chat', body);
    const call = await episode.next();
    first.leave();
    await until(() => call.gone.aborted);
    await call.answer(textReply('a'));
    expect(episode.takeUndelivered()).toEqual([0]);
    expect(episode.takeUndelivered()).toEqual([]);
    ask(episode, 'chat', body);
    const again = await episode.next();
    expect(again.number).toBe(1);
    await again.answer(textReply('a'));
    ask(episode, 'chat', bodyOf('chat', [{ user: 'q' }, { text: 'a' }, { user: 'r' }]));
    expect((await episode.next()).parent).toBe(1);
  });

  it('is none where the reply was delivered, or the first still runs, and no mark says so', async () => {
    const episode = await open();
    const twins = [ask(episode, 'chat', body), ask(episode, 'chat', body)];
    const calls = [await episode.next(), await episode.next()];
    expect(calls.map(({ number }) => number)).toEqual([0, 1]);
    await Promise.all(calls.map((call) => call.answer(textReply(`answer ${call.number}`))));
    const texts = await Promise.all(twins.map(async (twin) => read('chat', await twin.received)));
    expect(texts.sort()).toEqual(['answer 0', 'answer 1']);
    ask(episode, 'chat', body);
    expect((await episode.next()).number).toBe(2);
  });

  it('is remembered within bounds', async () => {
    const episode = await open();
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (let i = 0; i < 70; i++) {
      const sent = ask(episode, 'chat', bodyOf('chat', question(`q${i}`)), { agent });
      await (await episode.next()).answer(textReply(`a${i}`));
      await sent.received;
    }
    const recent = await ask(episode, 'chat', bodyOf('chat', question('q69')), { agent, ...retry }).received;
    expect(read('chat', recent)).toBe('a69');
    ask(episode, 'chat', bodyOf('chat', question('q0')), { agent, ...retry });
    expect((await episode.next()).number).toBe(70); // forgotten: sampled anew
    agent.destroy();
  });
});

describe('a client that leaves', () => {
  it('before its call was given takes the call along', async () => {
    const episode = await open();
    const sent = ask(episode, 'chat', bodyOf('chat', question('q')));
    await until(() => episode.arrivals === 1);
    const stays = ask(episode, 'chat', bodyOf('chat', question('r')));
    await until(() => episode.arrivals === 2);
    sent.leave();
    await until(() => episode.waiting === 1);
    const call = await episode.next();
    expect([call.number, call.fresh[0]!.content]).toEqual([0, 'r']);
    await call.answer(textReply('a'));
    await stays.received;
    expect(episode.takeUndelivered()).toEqual([]);
  });

  it('before the last byte was written has no reply; the call is nobody’s parent once that was counted', async () => {
    const episode = await open();
    const sent = ask(episode, 'chat', bodyOf('chat', question('q')), { isPaused: true });
    const call = await episode.next();
    const long = 'x'.repeat(32 * 1024 * 1024); // more than the buffers of both ends hold
    const arrival = call.answer(textReply(long));
    await sent.begun;
    sent.leave();
    await arrival;
    expect(episode.takeUndelivered()).toEqual([0]);
  });

  it('after the last byte was written has its reply', async () => {
    const episode = await open();
    const sent = ask(episode, 'chat', bodyOf('chat', question('q')));
    await (await episode.next()).answer(textReply('a'));
    (await sent.written).destroy();
    await sleep(20);
    expect(episode.takeUndelivered()).toEqual([]);
  });

  it('and builds on the reply all the same did get it', async () => {
    const episode = await open();
    const sent = ask(episode, 'chat', bodyOf('chat', question('q')));
    const call = await episode.next();
    sent.leave();
    await until(() => call.gone.aborted);
    await call.answer(textReply('a'));
    ask(episode, 'chat', bodyOf('chat', [{ user: 'q' }, { text: 'a' }, { user: 'r' }]));
    expect((await episode.next()).parent).toBe(0);
    expect(episode.takeUndelivered()).toEqual([]);
  });

  it('with all its calls in flight frees them all, and the episode closes once', async () => {
    const episode = await open();
    const sents = Array.from({ length: 8 }, (_, i) =>
      ask(episode, DIALECTS[i % 3]!, bodyOf(DIALECTS[i % 3]!, question(`q${i}`))),
    );
    const calls: WaitingCall[] = [];
    for (let i = 0; i < 8; i++) calls.push(await episode.next());
    for (const sent of sents) sent.leave();
    await until(() => calls.every(({ gone }) => gone.aborted));
    await Promise.all(calls.map((call) => call.answer(textReply('a'))));
    expect(episode.takeUndelivered()).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    episode.close();
  });

  it('slowly delays nobody else', async () => {
    const episode = await open({ limits: { sendMs: 100 } });
    const slow = ask(episode, 'chat', bodyOf('chat', question('slow')), { isPaused: true });
    const arrival = (await episode.next()).answer(textReply('x'.repeat(32 * 1024 * 1024)));
    await slow.begun;
    for (let i = 0; i < 20; i++) {
      const sent = ask(episode, 'chat', bodyOf('chat', question(`q${i}`)));
      await (await episode.next()).answer(textReply('a'));
      expect(read('chat', await sent.received)).toBe('a');
    }
    await arrival; // it took nothing: its connection was ended
    expect(episode.takeUndelivered()).toEqual([0]);
    slow.leave();
  });
});

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
    const episode = await open();
    const headers = { authorization: `Bearer ${episode.key}` };
    for (const path of ['/v1/messages?beta=true', '/v1/v1/messages', '/v1/v1/messages?beta=true']) {
      const sent = send(episode.root + path, bodyOf('messages', question('q')), { headers });
      await (await episode.next()).answer(textReply('a'));
      expect(read('messages', await sent.received)).toBe('a');
    }
    const models = JSON.parse((await get(episode, '/v1/models')).text) as { data: { id: string }[] };
    expect(models.data.map(({ id }) => id)).toEqual(['policy']);
  });

  it('that are none are refused in the form of the nearest dialect, upgrades too', async () => {
    const episode = await open();
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
      errorOf(dialect, received);
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
    const episode = await open({ countTokens: ({ messages }) => 10 * messages.length });
    const headers = { 'x-api-key': episode.key };
    const { max_tokens: _, ...body } = bodyOf('messages', [{ user: 'q' }, { text: 'a' }, { user: 'r' }]);
    const { status, text } = await send(`${episode.root}/v1/messages/count_tokens`, body, { headers }).received;
    expect([status, JSON.parse(text)]).toEqual([200, { input_tokens: 30 }]);
    expect((await send(`${episode.root}/v1/messages/count_tokens`, '[]', { headers }).received).status).toBe(400);
    expect(await hasNone(episode)).toBe(true);
  });

  it('keep what later requests of responses name by id, instructions left out', async () => {
    const episode = await open();
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
    const episode = await open();
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
    const episode = await open({ limits: { maxBodyBytes: 100_000 }, maxContextBytes: 10_000 });
    const filled = (length: number) => bodyOf('chat', question('x'.repeat(length)));
    const tooLarge = await ask(episode, 'chat', filled(200_000)).received;
    expect(tooLarge.status).toBe(413);
    const tooLong = await ask(episode, 'chat', filled(20_000)).received;
    expect([tooLong.status, errorOf('chat', tooLong).code]).toEqual([400, 'context_length_exceeded']);
    const headers = { 'transfer-encoding': 'chunked' };
    expect((await ask(episode, 'chat', filled(20_000), { headers }).received).status).toBe(400);
    expect(await hasNone(episode)).toBe(true);
  });

  it('of 64 MB reach the client as a refusal, through its own fetch', async () => {
    const episode = await open();
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

describe('concurrency', () => {
  it('of 16 calls in mixed dialects and forms gives the tree of their order', async () => {
    const trees: (readonly (number | null)[])[] = [];
    for (const isConcurrent of [false, true]) {
      const episode = await open();
      const parents: (number | null)[] = [];
      const roots = await playRound(episode, isConcurrent, parents, (_i) => question(`q`));
      expect(new Set(roots.map(({ id }) => id)).size).toBe(16);
      await playRound(episode, isConcurrent, parents, (i) => {
        const { id } = roots[15 - i]!; // in another order than their own: the ids alone tell them apart
        return [
          ...question('q'),
          { calls: [{ id, name: 'search', arguments: '{"query":"same"}' }] },
          { result: 'r', id },
        ];
      });
      trees.push(parents);
    }
    expect(trees[1]).toEqual(trees[0]);
    expect(trees[0]).toEqual([...Array(16).fill(null), ...[...Array(16).keys()].reverse()]);
  });

  /** Sends 16 calls, and answers each with the same call of a tool. @returns the ids that came back */
  async function playRound(
    episode: Episode,
    isConcurrent: boolean,
    parents: (number | null)[],
    turns: (i: number) => readonly Turn[],
  ): Promise<readonly { id: string }[]> {
    const sents: { dialect: DialectId; sent: Sent }[] = [];
    const calls: WaitingCall[] = [];
    const answer = (call: WaitingCall) => {
      parents.push(call.parent);
      return call.answer(callReply('same'));
    };
    for (let i = 0; i < 16; i++) {
      const dialect = DIALECTS[i % 3]!;
      const arrivals = episode.arrivals;
      const stream = i % 2 === 0;
      sents.push({ dialect, sent: ask(episode, dialect, bodyOf(dialect, turns(i), { stream })) });
      await until(() => episode.arrivals > arrivals);
      if (isConcurrent) calls.push(await episode.next());
      else await answer(await episode.next());
    }
    await Promise.all(calls.map(answer));
    return Promise.all(
      sents.map(async ({ dialect, sent }) => {
        const { text, headers } = await sent.received;
        return { id: foldReply(dialect, text, headers['content-type']!).reply.calls[0]!.id };
      }),
    );
  }

  it('at the horizon samples as many as the horizon has, and closes the rest', async () => {
    const episode = await open();
    const sents = Array.from({ length: 16 }, (_, i) => ask(episode, 'chat', bodyOf('chat', question(`q${i}`))));
    for (let i = 0; i < 5; i++) await (await episode.next()).answer(textReply('sampled'));
    episode.finish();
    const texts = await Promise.all(sents.map(async (sent) => read('chat', await sent.received)));
    expect(texts.filter((text) => text === 'sampled').length).toBe(5);
    expect(texts.filter((text) => text === CLOSING_TEXT).length).toBe(11);
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

function countSockets(): number {
  return process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length;
}

describe('two runs', () => {
  it('put the same bytes on the wire', async () => {
    const run = async () => {
      const episode = await open({ unixMs: () => 1_790_000_000_000 });
      const texts: string[] = [];
      for (const dialect of DIALECTS) {
        for (const stream of [false, true]) {
          const sent = ask(episode, dialect, bodyOf(dialect, question('q'), { stream }));
          await (await episode.next()).answer(callReply('a', 'b'));
          const { status, text, headers } = await sent.received;
          const { date: _, ...rest } = headers;
          texts.push(JSON.stringify([status, rest, text]));
        }
      }
      return texts;
    };
    const runs = [await run(), await run()];
    expect(runs[1]).toEqual(runs[0]);
    expect(runs[0]!.length).toBe(6);
  });
});

describe('memory', () => {
  const heapAfter = async () => {
    for (let i = 0; i < 4; i++) {
      await sleep(5);
      collectGarbage();
    }
    return process.memoryUsage().heapUsed / 2 ** 20;
  };

  it(`is flat over ${isLong ? 2000 : 200} episodes, and no socket is left`, async () => {
    const gateway = await start();
    const episodes = isLong ? 2000 : 200;
    const play = async (count: number) => {
      for (let i = 0; i < count; i++) {
        const agent = new Agent({ keepAlive: true });
        const episode = gateway.open();
        const turns: Turn[] = [{ user: 'x'.repeat(100_000) }];
        for (let n = 0; n < 4; n++) {
          const dialect = DIALECTS[(i + n) % 3]!;
          const sent = ask(episode, dialect, bodyOf(dialect, turns, { stream: n % 2 === 0 }), { agent });
          const call = await episode.next();
          if (n === 3) break; // it ends in the middle of a call
          expect(call.parent).toBe(n === 0 ? null : n - 1);
          await call.answer(textReply(`answer ${n}`));
          await sent.received;
          turns.push({ text: `answer ${n}` }, { user: `more ${n}` });
        }
        episode.close();
        agent.destroy();
      }
    };
    await play(episodes / 4);
    const before = await heapAfter();
    await play(episodes);
    expect((await heapAfter()) - before).toBeLessThan(4 + episodes / 400); // their texts are 20 MB in 200
    await until(() => countSockets() === 0);
  });

  it(`is flat over ${isLong ? 10_000 : 1000} calls after the end`, async () => {
    const episode = await open();
    episode.close();
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const late = async (count: number) => {
      for (let i = 0; i < count; i++) {
        const { status } = await ask(episode, 'chat', bodyOf('chat', question('x'.repeat(10_000))), { agent }).received;
        expect(status).toBe(403);
      }
    };
    await late(200);
    const before = await heapAfter();
    await late(isLong ? 10_000 : 1000);
    expect((await heapAfter()) - before).toBeLessThan(4);
    agent.destroy();
  });

  it(`of a call in an episode of ${isLong ? 10_000 : 2000} is little more than its hash`, async () => {
    const episode = await open();
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const calls = isLong ? 10_000 : 2000;
    const play = async (from: number, count: number) => {
      for (let i = from; i < from + count; i++) {
        const sent = ask(episode, 'chat', bodyOf('chat', question(`${i} ${'x'.repeat(10_000)}`)), { agent });
        await (await episode.next()).answer(textReply('a'));
        await sent.received;
      }
    };
    await play(0, 200);
    const before = await heapAfter();
    await play(200, calls);
    expect(((await heapAfter()) - before) * 2 ** 20).toBeLessThan(2 ** 21 + calls * 1500); // its texts alone are 10 KB
    agent.destroy();
  });
});
