/**
 * Replay: what real agents sent goes to the gateway again, the recorded replies are what its policy "says", and its trees,
 * its leaves and its replies are compared with the recorded ones.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { GatewayEpisode, WaitingCall } from '../../src/gateway/gateway.ts';
import { type OpenGateway, openGateway } from '../../src/gateway/server.ts';
import { foldReply } from './fold.ts';
import { type Received, type Sent, send } from './lab.ts';
import { dialectOf, type RecordedExchange, type Recording, readRecordings, whyNoRecordings } from './recordings.ts';

/** Files whose requests are refused by name, and the code or the field that says so: threads held by the server, two choices. */
const REFUSED: Readonly<Record<string, string>> = {
  'anthropic-tool-runner': '"error_code":"thread_unsupported_request"',
  'anthropic-tool-runner-stream': '"error_code":"thread_unsupported_request"',
  'anthropic-tool-runner-threads-lost': '"error_code":"thread_unsupported_request"',
  'openai-chat-n2': '"param":"n"',
};

const OWN_HEADERS = new Set(['host', 'connection', 'content-length', 'authorization', 'x-api-key']);

const recordings = readRecordings();

describe.skipIf(whyNoRecordings !== undefined)(`replay of recordings ${whyNoRecordings ?? ''}`, () => {
  let gateway: OpenGateway;
  const compared = { files: 0, parents: 0, replies: 0, leaves: 0 };
  beforeAll(async () => {
    gateway = await openGateway({ unixMs: () => 1_790_000_000_000 });
  });
  afterAll(() => gateway.close());

  it.each(recordings.filter(({ name }) => !(name in REFUSED)).map((recording) => [recording.name, recording]))(
    '%s',
    async (_, recording) => {
      const episode = gateway.open();
      const replay = new Replay(episode, recording);
      for (const exchange of recording.exchanges) await replay.play(exchange);
      compared.files++;
      compared.replies += replay.replies;
      // Whether a client that leaves in mid-reply was answered is another law's.
      if (!recording.head.scenario.includes('abort')) {
        const recorded = new Map(recording.head.tree.map(({ n, parent }) => [n, parent]));
        for (const [n, parent] of replay.parents) expect([n, parent]).toEqual([n, recorded.get(n)]);
        compared.parents += replay.parents.size;
        expect(replay.leaves()).toBe(recording.head.leaves);
        compared.leaves += recording.head.leaves;
      }
      episode.close();
    },
  );

  it('what is not supported is refused by name', async () => {
    for (const [name, reason] of Object.entries(REFUSED)) {
      const { exchanges } = recordings.find((recording) => recording.name === name)!;
      const episode = gateway.open();
      const { status, text } = await resend(episode, exchanges[0]!).received;
      expect(status).toBe(400);
      expect(text).toContain(reason);
      episode.close();
    }
  });

  it('compared what there is to compare', () => {
    expect(compared.files).toBe(recordings.length - Object.keys(REFUSED).length);
    expect(compared.parents).toBeGreaterThanOrEqual(600);
    expect(compared.replies).toBeGreaterThanOrEqual(580);
    expect(compared.leaves).toBeGreaterThanOrEqual(180);
  });
});

/** Replay of one file. */
class Replay {
  /** Parents by the numbers of the recording; of calls alone that were given to the policy. */
  readonly parents = new Map<number, number | null>();
  replies = 0;
  readonly #episode: GatewayEpisode;
  readonly #recording: Recording;
  readonly #numbers: number[] = [];
  readonly #answered = new Set<number>();

  constructor(episode: GatewayEpisode, recording: Recording) {
    this.#episode = episode;
    this.#recording = recording;
  }

  async play(exchange: RecordedExchange): Promise<void> {
    const { n, request, reply } = exchange;
    const sent = resend(this.#episode, exchange);
    const dialect = dialectOf(request.path);
    if (dialect === undefined) {
      const { status, text } = await sent.received;
      expect([status, JSON.parse(text).object]).toEqual([200, 'response.compaction']);
      return;
    }
    const call = await nextOrRefusal(this.#episode, sent);
    if (!('answer' in call)) {
      expect([n, call.status]).toEqual([n, reply.status]); // refused as it was then
      return;
    }
    expect(call.number).toBe(this.#numbers.length);
    this.#numbers.push(n);
    this.parents.set(n, call.parent === null ? null : this.#numbers[call.parent]!);
    if (reply.status === 0) {
      sent.leave();
      if (!call.gone.aborted) await new Promise((resolve) => call.gone.addEventListener('abort', resolve));
      call.refuse(503, 'as recorded');
      return;
    }
    if (reply.status !== 200 || reply.cut) {
      const status = reply.cut ? 500 : reply.status;
      call.refuse(status, 'as recorded');
      expect((await sent.received).status).toBe(status);
      return;
    }
    if (this.#recording.head.scenario.includes('abort')) {
      const { written } = sent;
      await call.answer({ content: 'The', calls: [], finish: 'stop', usage: { promptTokens: 1, completionTokens: 1 } });
      (await written).destroy();
      expect(this.#episode.takeUndelivered()).toEqual([]); // it was flushed
      return;
    }
    const recorded = foldReply(dialect, reply.chunks!.join(''), reply.headers!['content-type']!);
    const { usage = { promptTokens: 0, completionTokens: 0 }, ...said } = recorded.reply;
    await call.answer({ ...said, usage });
    this.#answered.add(n);
    const received = await sent.received;
    expect(received.status).toBe(200);
    expect(foldReply(dialect, received.text, received.headers['content-type']!)).toEqual(recorded);
    this.replies++;
  }

  /** Number of answered calls that no answered call continues. */
  leaves(): number {
    const continued = new Set([...this.#answered].map((n) => this.parents.get(n)));
    return [...this.#answered].filter((n) => !continued.has(n)).length;
  }
}

/** Sends a recorded request to an episode, with the episode's key. */
function resend(episode: GatewayEpisode, { request }: RecordedExchange): Sent {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(request.headers)) if (!OWN_HEADERS.has(name)) headers[name] = value;
  if ('authorization' in request.headers) headers.authorization = `Bearer ${episode.key}`;
  if ('x-api-key' in request.headers) headers['x-api-key'] = episode.key;
  return send(episode.root + request.path, request.body, { method: request.method, headers });
}

/** Next call, or the answer of a request that became none. */
async function nextOrRefusal(episode: GatewayEpisode, sent: Sent): Promise<WaitingCall | Received> {
  const stop = new AbortController();
  const next = episode.next(stop.signal);
  next.catch(() => {});
  const first = await Promise.race([next, sent.received]);
  if (!('answer' in first)) stop.abort();
  return first;
}
