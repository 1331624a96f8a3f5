/** The dialects against what real agents sent and read. */
import { describe, expect, it } from 'vitest';
import type { ConversationMessage, ModelReply, ToolCall } from '../../../src/core/model-call.ts';
import { type ParsedRequest, RefusedCall } from '../../../src/gateway/dialects/dialect.ts';
import { DIALECTS } from '../../../src/gateway/dialects/dialects.ts';
import { FIELDS } from '../../../src/gateway/dialects/fields.ts';
import { foldBody, foldReply, readEvents } from '../fold.ts';
import { dialectOf, readNeeds, readRecordings, whyNoRecordings } from '../recordings.ts';
import { makeIds, makeTurn, type ParsedExchange, parseRecording } from './parsed-recordings.ts';

if (whyNoRecordings !== undefined) console.log(`skipped: ${whyNoRecordings}`);

/** Keys that are refused on purpose, in the recordings too. */
const REFUSED = ['thread', 'n'];

function wasRead(exchange: ParsedExchange): exchange is ParsedExchange & { request: ParsedRequest } {
  return !(exchange.request instanceof RefusedCall);
}

/** Paths of the keys of a request that no table lists. */
function listUnknownKeys(body: unknown, { request, nested }: (typeof FIELDS)['chat']): string[] {
  const unknown: string[] = [];
  const walk = (value: unknown, path: string) => {
    if (Array.isArray(value)) for (const one of value) walk(one, `${path}[]`);
    else if (typeof value === 'object' && value !== null) {
      for (const [key, inner] of Object.entries(value)) {
        const at = path === '' ? key : `${path}.${key}`;
        const field = path === '' ? request.get(at) : nested.get(at);
        if (field === undefined) unknown.push(at);
        else if (field.use === 'obeyed' && !field.isFree) walk(inner, at);
      }
    }
  };
  walk(body, '');
  return unknown;
}

/** Calls with their arguments as values; broken ones stay texts. */
function asValues(calls: readonly ToolCall[] | undefined) {
  return calls?.map(({ arguments: given, ...call }) => {
    try {
      return { ...call, arguments: JSON.parse(given) as unknown };
    } catch {
      return { ...call, arguments: given };
    }
  });
}

function normalize(message: ConversationMessage): unknown {
  if (message.role !== 'assistant') return message;
  const { reasoning: _, ...turn } = message; // clients drop it or keep it
  return { ...turn, calls: asValues(turn.calls)?.map(({ id: _id, ...call }) => call) };
}

/** Message as text with the keys of objects in order. */
function printCanonical(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) => {
    if (typeof inner !== 'object' || inner === null || Array.isArray(inner)) return inner;
    return Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}

describe.skipIf(whyNoRecordings !== undefined)('the dialects, given what agents sent', () => {
  const recordings = readRecordings();
  const exchanges = recordings.flatMap(parseRecording);
  const read = exchanges.filter(wasRead);

  it('read every request, but for keys that are refused by name', () => {
    expect(exchanges.length).toBeGreaterThan(630);
    const refused = exchanges.filter((exchange) => !wasRead(exchange));
    for (const { request, where } of refused) {
      expect(request, where).toMatchObject({ status: 400 });
      expect(REFUSED, `${where}: ${(request as RefusedCall).message}`).toContain((request as RefusedCall).param);
    }
    expect(refused.length).toBe(14);
  });
  it('know every key of every request', () => {
    const unknown = new Set<string>();
    for (const { dialect, exchange } of exchanges) {
      for (const key of listUnknownKeys(exchange.request.body, FIELDS[dialect])) unknown.add(`${dialect}: ${key}`);
    }
    expect([...unknown]).toEqual([]);
    expect(listUnknownKeys({ messages: [{ role: 'user', mood: 1 }], newKey: 1 }, FIELDS.chat)).toEqual([
      'messages[].mood',
      'newKey',
    ]);
  });
  it('echo model, stream and limits', () => {
    let limits = 0;
    for (const { request, exchange, where } of read) {
      const { body } = exchange.request;
      expect(request.model, where).toBe(body.model);
      expect(request.stream, where).toBe(body.stream === true);
      const limit = body.max_completion_tokens ?? body.max_tokens ?? body.max_output_tokens;
      expect(request.call.maxTokens, where).toBe(limit);
      expect(request.call.sampling.temperature, where).toBe(body.temperature);
      if (limit !== undefined) limits++;
      const tools = (body.tools ?? []) as { name?: string; function?: { name: string } }[];
      expect(request.call.tools.map(({ name }) => name)).toEqual(tools.map((tool) => tool.name ?? tool.function?.name));
    }
    expect(limits).toBeGreaterThan(180);
  });
  it('give each request the context of its recorded parent, its reply included, as a beginning', () => {
    let compared = 0;
    for (const recording of recordings) {
      if (recording.head.scenario.includes('abort')) continue;
      const parsed = new Map(parseRecording(recording).map((exchange) => [exchange.exchange.n, exchange]));
      for (const { n, parent } of recording.head.tree) {
        const [own, earlier] = [parsed.get(n)!, parsed.get(parent ?? -1)];
        if (!earlier || !wasRead(own) || !wasRead(earlier) || !earlier.folded) continue;
        const context = [...earlier.request.call.messages, makeTurn(earlier.folded.reply)].map(normalize);
        const beginning = own.request.call.messages.slice(0, context.length).map(normalize);
        expect(beginning.map(printCanonical), own.where).toEqual(context.map(printCanonical));
        expect(own.request.call.messages.length, own.where).toBeGreaterThan(context.length);
        compared++;
      }
    }
    expect(compared).toBeGreaterThan(380);
  });

  it('print each recorded reply, plain and streamed, so that its client reads the same', () => {
    let compared = 0;
    for (const { dialect, folded, request, where } of read) {
      if (!folded) continue;
      const { print, events } = DIALECTS[dialect];
      const usage = folded.reply.usage ?? { promptTokens: 1, completionTokens: 2 };
      const reply: ModelReply = { ...folded.reply, usage };
      const expected = { ...folded, reply: { ...reply, calls: asValues(reply.calls) } };
      const ids = makeIds(folded);
      const plain = foldBody(dialect, print(reply, request, ids));
      const text = events(reply, { ...request, includeUsage: true }, ids).join('');
      const streamed = foldReply(dialect, text, 'text/event-stream');
      for (const got of [plain, streamed]) {
        expect({ ...got, reply: { ...got.reply, calls: asValues(got.reply.calls) } }, where).toEqual(expected);
      }
      compared++;
    }
    expect(compared).toBeGreaterThan(580);
  });

  describe('print what a client breaks without', () => {
    const breaking = readNeeds().filter(({ result }) => result !== 'ok');
    const byMode = new Map<string, Set<string>>();
    for (const { dialect, mode, change } of breaking) {
      const key = `${dialect} ${mode}`;
      byMode.set(key, (byMode.get(key) ?? new Set()).add(change));
    }

    /** Places of a field, each with the types of the events, items and blocks that it lies in. */
    function findField(value: unknown, path: readonly string[], kinds: string, places: Set<string>): void {
      if (path.length === 0) places.add(kinds);
      else if (typeof value === 'object' && value !== null) {
        const { type } = value as { type?: string };
        const inside = type === undefined ? kinds : `${kinds}/${type}`;
        const [key, ...rest] = path;
        if (key === '*') for (const one of Object.values(value)) findField(one, rest, inside, places);
        else if (Object.hasOwn(value, key!)) findField((value as Record<string, unknown>)[key!], rest, inside, places);
      }
    }

    function listPlaces(bodies: readonly unknown[], field: string): Set<string> {
      const places = new Set<string>();
      for (const body of bodies) findField(body, field.split('.'), '', places);
      return places;
    }

    function readBodies(text: string, isStream: boolean): unknown[] {
      if (!isStream) return [JSON.parse(text) as unknown];
      return readEvents(text).flatMap(({ data }) => (data === '[DONE]' ? [] : [JSON.parse(data) as unknown]));
    }

    it('in each of its places', () => {
      let found = 0;
      expect(breaking.length).toBeGreaterThan(130);
      for (const { dialect, folded, request, exchange, where } of read) {
        if (!folded) continue;
        const reply: ModelReply = { usage: { promptTokens: 1, completionTokens: 2 }, ...folded.reply };
        const { print, events } = DIALECTS[dialect];
        const ids = makeIds(folded);
        const recorded = readBodies(exchange.reply.chunks!.join(''), request.stream);
        const ours = request.stream
          ? readBodies(events(reply, request, ids).join(''), true)
          : [JSON.parse(JSON.stringify(print(reply, request, ids)))];
        for (const change of byMode.get(`${dialect} ${request.stream ? 'stream' : 'plain'}`) ?? []) {
          const field = /^- (?!event )(.*)$/.exec(change)?.[1];
          if (field === undefined) continue;
          const places = listPlaces(ours, field);
          for (const place of listPlaces(recorded, field)) {
            expect([...places], `${where}: ${change}`).toContain(place);
            found++;
          }
        }
        const types = (bodies: readonly unknown[]) => new Set(bodies.map((body) => (body as { type?: string }).type));
        const [printed, known] = [types(ours), types(recorded)];
        // No event of our own, and each of theirs.
        expect([...printed].sort(), where).toEqual([...known].sort());
      }
      expect(found).toBeGreaterThan(4000);
    });
    it('and notice a field that is taken away', () => {
      const bodies = [{ type: 'a', item: { type: 'call', id: 'x' } }];
      expect(listPlaces(bodies, 'item.id')).toEqual(new Set(['/a/call']));
      expect(listPlaces(bodies, 'item.role').size).toBe(0);
    });
  });

  it('know the routes of agents', () => {
    expect(dialectOf('/e/key/v1/messages?beta=true')).toBe('messages');
    expect(dialectOf('/v1/messages/count_tokens')).toBeUndefined();
  });
});
