/** Laws of every server that speaks the three dialects, behind a real socket: what any client of a model may count on. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import type { ModelReply } from '../../src/core/model-call.ts';
import type { DialectId } from '../../src/gateway/dialects/dialect.ts';
import { FIELDS } from '../../src/gateway/dialects/fields.ts';
import type { HttpLimits } from '../../src/http/server.ts';
import { foldReply } from './fold.ts';
import { bodyOf, callReply, DIALECTS, PATHS, type Received, send, textReply } from './lab.ts';
import { errorIn, until } from './open.ts';

/** Server under test, whose replies the test decides. */
export interface ModelServer {
  /** URL without `/v1`. */
  readonly root: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Calls that wait for their reply now. */
  waiting(): number;
  close(): Promise<unknown>;
}

/** Way to start a server. */
export interface ModelServerSubject {
  /** @param reply decides a call by its newest message, for as long as it takes @param maxBodyBytes of a request */
  start(reply: (text: string) => ModelReply | Promise<ModelReply>, limits: HttpLimits): Promise<ModelServer>;
  /** Status of a body that is longer than the limit. */
  readonly tooLarge: number;
  /** True where a call whose client has left is given up; else its reply is kept for a retry. */
  readonly givesUp?: boolean;
  /** Characters of a reply that no client takes at once. Default 8 MiB. */
  readonly longReply?: number;
}

/** Fields in the middle of whose refusal lies nothing else: they are not neutral for any server. */
const STRANGE = 'no_such_field';

export function testModelServerLaws(
  name: string,
  { start, tooLarge, givesUp, longReply = 8 * 2 ** 20 }: ModelServerSubject,
): void {
  describe(`the model server: ${name}`, () => {
    let server: ModelServer | undefined;
    afterEach(async () => {
      await server?.close();
      server = undefined;
    });
    const open = async (
      reply: (text: string) => ModelReply | Promise<ModelReply> = () => textReply('done'),
      limits: HttpLimits = {},
    ) => {
      server = await start(reply, limits);
    };
    const ask = (dialect: DialectId, body: unknown, isPaused = false) =>
      send(server!.root + PATHS[dialect], body, { headers: server!.headers, isPaused });
    const go = (dialect: DialectId, more: object = {}) => bodyOf(dialect, [{ user: 'go' }], { ...more });
    const fold = (dialect: DialectId, { text, headers }: Received) =>
      foldReply(dialect, text, headers['content-type']!);

    describe.each(DIALECTS)('in %s', (dialect) => {
      it.each([
        ['a text', textReply('Hello, wörld "quoted".\n')],
        ['a thought', { ...textReply('Hello.'), reasoning: 'Greet.' }],
        ['calls', callReply('one', 'two')],
        ['a reply that was cut', { ...textReply('Hel'), finish: 'length' as const }],
      ])('a stream folds to the plain reply, usage included: %s', async (_, made) => {
        await open(() => made);
        const plain = await ask(dialect, go(dialect)).received;
        const usage = dialect === 'chat' ? { stream_options: { include_usage: true } } : {};
        const streamed = await ask(dialect, go(dialect, { stream: true, ...usage })).received;
        expect(streamed.headers['content-type']).toMatch(/^text\/event-stream/);
        const [a, b] = [fold(dialect, plain), fold(dialect, streamed)];
        const unnamed = ({ calls, ...rest }: typeof a.reply) => ({
          ...rest,
          calls: calls.map((one) => ({ ...one, id: '' })),
        });
        expect(unnamed(b.reply)).toEqual(unnamed(a.reply));
        expect([a.reply.content, a.reply.reasoning, a.reply.finish]).toEqual([
          made.content,
          made.reasoning,
          made.finish,
        ]);
        const ids = a.reply.calls.map(({ id }) => id);
        expect(new Set([...ids, ...b.reply.calls.map(({ id }) => id)]).size).toBe(2 * made.calls.length); // unlike each other
        expect(a.reply.calls.map(({ arguments: text }) => JSON.parse(text))).toEqual(
          made.calls.map(({ arguments: text }) => JSON.parse(text)),
        );
      });

      it('a hostile body is refused with the place, and others go on', async () => {
        await open();
        const nested = `{"model":"policy","messages":${'['.repeat(100_000)}${']'.repeat(100_000)}}`;
        const whole = JSON.stringify(go(dialect));
        const hostile = [
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
        const twice = whole.replace('{', '{"model":"other",');
        for (const body of [...hostile, twice]) {
          const received = await ask(dialect, body).received;
          expect([body.slice(0, 40), received.status]).toEqual([body.slice(0, 40), 400]);
          expect(errorIn(dialect, received).message.length).toBeGreaterThan(5);
          if (body === twice) expect(errorIn(dialect, received).message).toContain('model');
        }
        for (const turns of [[], [{ result: 'r', id: 'call_9_9' }]]) {
          expect((await ask(dialect, bodyOf(dialect, turns)).received).status).toBe(400);
        }
        expect(fold(dialect, await ask(dialect, go(dialect)).received).reply.content).toBe('done');
      });

      it('drops no field without a word: what it does not know or refuses is a 400 that names it', async () => {
        await open();
        const refused = [...FIELDS[dialect].request].flatMap(([key, { use }]) => (use === 'refused' ? [key] : []));
        for (const key of [STRANGE, ...refused]) {
          const received = await ask(dialect, go(dialect, { [key]: { strange: ['value'] } })).received;
          expect([key, received.status]).toEqual([key, 400]);
          expect(errorIn(dialect, received).message).toContain(key);
        }
        expect(refused.length).toBeGreaterThan(2);
      });

      it('a body beyond the limit is refused, and others go on', async () => {
        await open(undefined, { maxBodyBytes: 100_000 });
        const received = await ask(dialect, bodyOf(dialect, [{ user: 'x'.repeat(200_000) }])).received;
        expect(received.status).toBe(tooLarge);
        expect(fold(dialect, await ask(dialect, go(dialect)).received).reply.content).toBe('done');
      });
    });

    it('a client that leaves takes its call along, and others go on', async () => {
      let release!: (made: ModelReply) => void;
      const held = new Promise<ModelReply>((resolve) => {
        release = resolve;
      });
      await open((text) => (text === 'hold' ? held : textReply('done')));
      const sent = ask('chat', bodyOf('chat', [{ user: 'hold' }]));
      await until(() => server!.waiting() === 1);
      sent.leave();
      expect(fold('chat', await ask('chat', go('chat')).received).reply.content).toBe('done');
      if (!givesUp) release(textReply('late'));
      await until(() => server!.waiting() === 0);
    });

    it('a client that reads nothing delays nobody else', async () => {
      await open((text) => textReply(text === 'slow' ? 'x'.repeat(longReply) : 'done'), { sendMs: 200 });
      const slow = ask('chat', bodyOf('chat', [{ user: 'slow' }]), true);
      await slow.begun;
      for (let i = 0; i < 10; i++) {
        expect(fold('chat', await ask('chat', go('chat')).received).reply.content).toBe('done');
      }
      slow.leave();
    });

    it('calls beside each other, in all dialects and forms, are all answered, each with its own', async () => {
      await open(async (text) => {
        await sleep(Number(text) % 7);
        return textReply(`to ${text}`);
      });
      const asked = Array.from({ length: 24 }, async (_, i) => {
        const dialect = DIALECTS[i % 3]!;
        const body = bodyOf(dialect, [{ user: `${i}` }], { stream: i % 2 === 0 });
        return fold(dialect, await ask(dialect, body).received).reply.content;
      });
      expect(await Promise.all(asked)).toEqual(Array.from({ length: 24 }, (_, i) => `to ${i}`));
    });

    it('listens on the loopback, and is gone once it is closed', async () => {
      await open();
      expect(new URL(server!.root).hostname).toBe('127.0.0.1');
      await server!.close();
      await expect(ask('chat', go('chat')).received).rejects.toThrow(/ECONNREFUSED|ECONNRESET/);
    });
  });
}
