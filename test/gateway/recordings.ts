/** Recordings of what real agents send to a model server, and what it replied (`golden/gateway/README.md`). */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DialectId } from '../../src/gateway/dialects/dialect.ts';

/** One exchange, in order of arrival. */
export interface RecordedExchange {
  readonly n: number;
  readonly request: {
    readonly method: string;
    readonly path: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly body: Readonly<Record<string, unknown>>;
  };
  readonly reply: {
    /** HTTP status; 0 where nothing was answered. */
    readonly status: number;
    readonly headers?: Readonly<Record<string, string>>;
    /** Pieces that were written to the socket. */
    readonly chunks?: readonly string[];
    readonly aborted?: boolean;
    readonly hung?: boolean;
    readonly dropped?: boolean;
    readonly cut?: boolean;
  };
}

/** Line 1 of a file. */
export interface RecordedHead {
  readonly client: string;
  readonly scenario: string;
  readonly node: string;
  readonly versions: Readonly<Record<string, string>>;
  readonly outcome: { readonly ok: boolean; readonly answer?: string; readonly log?: string; readonly error?: string };
  readonly tree: readonly { readonly n: number; readonly answered: boolean; readonly parent: number | null }[];
  readonly leaves: number;
}

/** File of recordings: one client in one scenario. */
export interface Recording {
  /** Name of the file without `.jsonl`. */
  readonly name: string;
  readonly head: RecordedHead;
  readonly exchanges: readonly RecordedExchange[];
}

/** Change of one reply, and whether the agent still came to its answer. */
export interface RecordedNeed {
  readonly client: string;
  readonly dialect: string;
  readonly mode: string;
  readonly change: string;
  readonly result: string;
}

const folder = join(process.env.LONGPLAY_GOLDEN ?? join(import.meta.dirname, '../../../shared/golden'), 'gateway');

/** Reason why there are no recordings; undefined where there are some. */
export const whyNoRecordings = existsSync(folder)
  ? undefined
  : `no recordings of agents at ${folder} (set LONGPLAY_GOLDEN)`;

function readLines(file: string): unknown[] {
  const lines = readFileSync(join(folder, file), 'utf8').trimEnd().split('\n');
  return lines.map((line) => JSON.parse(line) as unknown);
}

/** Reads all recordings; none where the folder is absent. */
export function readRecordings(): readonly Recording[] {
  if (whyNoRecordings !== undefined) return [];
  const files = readdirSync(folder).filter((file) => file.endsWith('.jsonl') && file !== 'needs.jsonl');
  return files.sort().map((file) => {
    const [head, ...exchanges] = readLines(file);
    const name = file.slice(0, -'.jsonl'.length);
    return { name, head: head as RecordedHead, exchanges: exchanges as RecordedExchange[] };
  });
}

/** Reads the recorded changes of replies; none where the file is absent. */
export function readNeeds(): readonly RecordedNeed[] {
  return existsSync(join(folder, 'needs.jsonl')) ? (readLines('needs.jsonl') as RecordedNeed[]) : [];
}

/** Finds the dialect of a path; undefined for a route that asks no model, as `count_tokens` and `compact`. */
export function dialectOf(path: string): DialectId | undefined {
  const [route] = path.split('?');
  if (route!.endsWith('/v1/chat/completions')) return 'chat';
  if (route!.endsWith('/v1/responses')) return 'responses';
  return route!.endsWith('/v1/messages') ? 'messages' : undefined;
}

/** Whole reply to a request that asked a model. */
export interface WholeReply {
  /** File and number, for messages. */
  readonly where: string;
  readonly dialect: DialectId;
  readonly recording: Recording;
  readonly exchange: RecordedExchange;
  readonly text: string;
  readonly contentType: string;
  readonly isStream: boolean;
}

/** Lists the replies that came whole to their clients; files whose client left in the middle are left out. */
export function listWholeReplies(recordings: readonly Recording[]): readonly WholeReply[] {
  return recordings
    .filter(({ head }) => !head.scenario.includes('abort')) // these carry no mark of it
    .flatMap((recording) => recording.exchanges.map((exchange) => ({ recording, exchange })))
    .filter(({ exchange: { reply } }) => reply.status === 200 && !reply.aborted && !reply.cut && !reply.hung)
    .flatMap(({ recording, exchange }) => {
      const dialect = dialectOf(exchange.request.path);
      if (dialect === undefined) return [];
      const { n, request, reply } = exchange;
      const contentType = reply.headers!['content-type']!;
      const [where, text, isStream] = [`${recording.name} ${n}`, reply.chunks!.join(''), request.body.stream === true];
      return [{ where, dialect, recording, exchange, text, contentType, isStream }];
    });
}
