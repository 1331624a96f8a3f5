/** Laws of an episode's calls over real sockets: who is answered, what is counted once, what a client that leaves costs. */
import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { SimulatedClock } from '../../src/core/clock.ts';
import type { DialectId } from '../../src/gateway/dialects/dialect.ts';
import { CLOSING_TEXT, type Episode } from '../../src/gateway/episode.ts';
import { HOLD_MS } from '../../src/gateway/exchange.ts';
import type { WaitingCall } from '../../src/gateway/gateway.ts';
import { foldReply } from './fold.ts';
import { ask, bodyOf, callReply, DIALECTS, type Sent, type Turn, textReply } from './lab.ts';
import { errorIn, hasNone, openEpisode, question, readReply, until } from './open.ts';

const retry = { headers: { 'x-stainless-retry-count': '1' } };

describe.each(DIALECTS)('calls in %s', (dialect) => {
  it('wait for their reply, plain and streamed, and the two fold to the same', async () => {
    const episode = await openEpisode();
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
    const episode = await openEpisode();
    for (const stream of [false, true]) {
      const sent = ask(episode, dialect, bodyOf(dialect, question('q'), { stream }));
      (await episode.next()).refuse(503, 'the policy is down');
      const received = await sent.received;
      expect([received.status, received.headers['retry-after']]).toEqual([503, '1']);
      expect(errorIn(dialect, received).message).toBe('the policy is down');
    }
  });

  it('that are held keep their connection by what clients ignore', async () => {
    const clock = new SimulatedClock();
    const episode = await openEpisode({ clock });
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
    const texts = new Set([readReply(dialect, await plain.received), readReply(dialect, await streamed.received)]);
    expect(texts).toEqual(new Set(['q', 'r']));
  });

  it('that fail after the first byte end with an error event and a destroyed socket, never with a clean end', async () => {
    const clock = new SimulatedClock();
    const episode = await openEpisode({ clock });
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
    const episode = await openEpisode();
    const given = ask(episode, dialect, bodyOf(dialect, question('given')));
    const call = await episode.next();
    const waiting = ask(episode, dialect, bodyOf(dialect, question('waiting'), { stream: true }));
    await until(() => episode.arrivals === 2);
    episode.finish();
    await call.answer(textReply('too late'));
    for (const sent of [given, waiting]) expect(readReply(dialect, await sent.received)).toBe(CLOSING_TEXT);
    for (let i = 0; i < 3; i++) {
      const later = ask(episode, dialect, bodyOf(dialect, question('later'), { stream: i === 1 }));
      expect(readReply(dialect, await later.received)).toBe(CLOSING_TEXT);
    }
    for (const more of forced(dialect)) {
      const received = await ask(episode, dialect, bodyOf(dialect, question('forced'), more)).received;
      expect(received.status).toBe(400);
      expect(errorIn(dialect, received).message).toContain('over');
    }
    expect(await hasNone(episode)).toBe(true);
    expect(episode.takeUndelivered()).toEqual([]);
  });

  it('after the end are refused with 403, whatever is sent', async () => {
    const episode = await openEpisode();
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
      expect(errorIn(dialect, received).message).toContain('over');
    }
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
    const episode = await openEpisode();
    for (const status of [429, 500, 503, 409]) {
      const sent = ask(episode, 'chat', body);
      (await episode.next()).refuse(status, 'not now');
      expect((await sent.received).status).toBe(status);
    }
    const sent = ask(episode, 'chat', body, retry);
    const call = await episode.next();
    expect([call.number, call.parent]).toEqual([4, null]);
    await call.answer(textReply('a'));
    expect(readReply('chat', await sent.received)).toBe('a');
    expect(episode.takeUndelivered()).toEqual([]);
  });

  it('of a refused call continues what that one did', async () => {
    const episode = await openEpisode();
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
    const episode = await openEpisode();
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
      const episode = await openEpisode();
      const first = ask(episode, 'chat', body);
      const call = await episode.next();
      first.leave();
      await until(() => call.gone.aborted);
      const second = ask(episode, 'chat', body, options);
      await until(() => episode.arrivals === 2);
      await call.answer(textReply('a'));
      expect(readReply('chat', await second.received)).toBe('a');
      expect(await hasNone(episode)).toBe(true);
      expect(episode.takeUndelivered()).toEqual([]);
    }
  });

  it('of a reply that did not arrive gets it again, byte for byte', async () => {
    const episode = await openEpisode();
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
    const episode = await openEpisode();
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
    const episode = await openEpisode();
    const twins = [ask(episode, 'chat', body), ask(episode, 'chat', body)];
    const calls = [await episode.next(), await episode.next()];
    expect(calls.map(({ number }) => number)).toEqual([0, 1]);
    await Promise.all(calls.map((call) => call.answer(textReply(`answer ${call.number}`))));
    const texts = await Promise.all(twins.map(async (twin) => readReply('chat', await twin.received)));
    expect(texts.sort()).toEqual(['answer 0', 'answer 1']);
    ask(episode, 'chat', body);
    expect((await episode.next()).number).toBe(2);
  });

  it('is remembered within bounds', async () => {
    const episode = await openEpisode();
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (let i = 0; i < 70; i++) {
      const sent = ask(episode, 'chat', bodyOf('chat', question(`q${i}`)), { agent });
      await (await episode.next()).answer(textReply(`a${i}`));
      await sent.received;
    }
    const recent = await ask(episode, 'chat', bodyOf('chat', question('q69')), { agent, ...retry }).received;
    expect(readReply('chat', recent)).toBe('a69');
    ask(episode, 'chat', bodyOf('chat', question('q0')), { agent, ...retry });
    expect((await episode.next()).number).toBe(70); // forgotten: sampled anew
    agent.destroy();
  });
});

describe('a client that leaves', () => {
  it('before its call was given takes the call along', async () => {
    const episode = await openEpisode();
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
    const episode = await openEpisode();
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
    const episode = await openEpisode();
    const sent = ask(episode, 'chat', bodyOf('chat', question('q')));
    await (await episode.next()).answer(textReply('a'));
    (await sent.written).destroy();
    await sleep(20);
    expect(episode.takeUndelivered()).toEqual([]);
  });

  it('and builds on the reply all the same did get it', async () => {
    const episode = await openEpisode();
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
    const episode = await openEpisode();
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
    const episode = await openEpisode({ limits: { sendMs: 100 } });
    const slow = ask(episode, 'chat', bodyOf('chat', question('slow')), { isPaused: true });
    const arrival = (await episode.next()).answer(textReply('x'.repeat(32 * 1024 * 1024)));
    await slow.begun;
    for (let i = 0; i < 20; i++) {
      const sent = ask(episode, 'chat', bodyOf('chat', question(`q${i}`)));
      await (await episode.next()).answer(textReply('a'));
      expect(readReply('chat', await sent.received)).toBe('a');
    }
    await arrival; // it took nothing: its connection was ended
    expect(episode.takeUndelivered()).toEqual([0]);
    slow.leave();
  });
});

describe('concurrency', () => {
  it('of 16 calls in mixed dialects and forms gives the tree of their order', async () => {
    const trees: (readonly (number | null)[])[] = [];
    for (const isConcurrent of [false, true]) {
      const episode = await openEpisode();
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
    const episode = await openEpisode();
    const sents = Array.from({ length: 16 }, (_, i) => ask(episode, 'chat', bodyOf('chat', question(`q${i}`))));
    for (let i = 0; i < 5; i++) await (await episode.next()).answer(textReply('sampled'));
    episode.finish();
    const texts = await Promise.all(sents.map(async (sent) => readReply('chat', await sent.received)));
    expect(texts.filter((text) => text === 'sampled').length).toBe(5);
    expect(texts.filter((text) => text === CLOSING_TEXT).length).toBe(11);
  });
});

describe('two runs', () => {
  it('put the same bytes on the wire', async () => {
    const run = async () => {
      const episode = await openEpisode({ unixMs: () => 1_790_000_000_000 });
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
