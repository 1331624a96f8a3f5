/**
 * File of a recorded message order: versioned JSONL. After the header come runs of messages by actor, batches of environment
 * answers, and at the end the digest of the last weights, which a repetition must reach too.
 */
import { appendFileSync, writeFileSync } from 'node:fs';
import { MAX_DATA_BYTES, readText } from '../core/bounded-file.ts';
import { messageOf, UserError } from '../core/errors.ts';
import type { Failure } from '../core/failure.ts';
import { parseJson } from '../core/json-text.ts';
import type { Begun, OrderSink } from '../runtime/message-order.ts';

const ORDER_FORMAT = 2;

/** First words of the file. */
const FORMAT = 'longplay-order';

/** Answer of the env hosts: only its episode, because the content follows from the actions; or a failure. */
export type Answered = number | { readonly episode: number; readonly failure: Failure };

/** Recorded order of a run's messages, and what else a replay needs. */
export interface RecordedOrder {
  /** Configuration of the run, resolved. */
  readonly config: unknown;
  /** Orders by actor. */
  readonly orders: ReadonlyMap<string, readonly Begun[]>;
  /** Answers that reached the rollouts together, in order. */
  readonly batches: readonly (readonly Answered[])[];
  /** SHA-256 of the last weights; absent where the recording was cut short. */
  readonly weights?: string;
}

type Line =
  | { readonly actor: string /** `*` before a message to itself. */; readonly took: readonly string[] }
  | { readonly answers: readonly Answered[] }
  | { readonly weights: string };

/** Entries kept before they go to the file. */
const FLUSH_AT = 4096;

/** Writes the order of messages as it happens. */
export class OrderRecorder {
  readonly #path: string;
  #lines: Line[] = [];
  #run: { actor: string; took: string[] } | undefined;
  #entries = 0;

  /** @throws {UserError} NO_PERMISSION when the file cannot be made */
  constructor(path: string, config: unknown) {
    this.#path = path;
    try {
      writeFileSync(path, `${JSON.stringify({ format: FORMAT, version: ORDER_FORMAT, config })}\n`);
    } catch (thrown) {
      throw new UserError('NO_PERMISSION', `--record-order ${path}: cannot write: ${messageOf(thrown)}`);
    }
  }

  readonly recordBegun: OrderSink = (actor, { type, self }) => {
    if (this.#run?.actor !== actor) this.#lines.push((this.#run = { actor, took: [] }));
    this.#run.took.push(self ? `*${type}` : type);
    this.#count();
  };

  recordAnswered(answers: readonly Answered[]): void {
    this.#run = undefined;
    this.#lines.push({ answers });
    this.#count();
  }

  weights(sha256: string): void {
    this.#run = undefined;
    this.#lines.push({ weights: sha256 });
  }

  flush(): void {
    if (this.#lines.length > 0)
      appendFileSync(this.#path, this.#lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
    this.#lines = [];
    this.#run = undefined;
    this.#entries = 0;
  }

  #count(): void {
    if (++this.#entries >= FLUSH_AT) this.flush();
  }
}

/**
 * Reads a recorded order.
 * @throws {UserError} BAD_TRACE for a file that is no recorded order, of another version, or damaged
 */
export function readOrder(path: string): RecordedOrder {
  const orders = new Map<string, Begun[]>();
  const batches: (readonly Answered[])[] = [];
  let weights: string | undefined;
  let at = 1;
  try {
    const [first = '', ...rest] = readText(path, MAX_DATA_BYTES).split('\n');
    const header = parseJson(first) as { format?: unknown; version?: unknown; config?: unknown };
    if (header.format !== FORMAT || header.version !== ORDER_FORMAT) {
      throw new Error(`expected a recorded order of version ${ORDER_FORMAT}, got ${header.format} ${header.version}`);
    }
    for (const text of rest) {
      at++;
      if (text === '') continue;
      const line = parseJson(text) as Line;
      if ('actor' in line) {
        let order = orders.get(line.actor);
        if (!order) orders.set(line.actor, (order = []));
        for (const word of line.took) {
          const self = word.startsWith('*');
          order.push({ type: self ? word.slice(1) : word, self });
        }
      } else if ('answers' in line) batches.push(line.answers);
      else weights = line.weights;
    }
    return { config: header.config, orders, batches, ...(weights === undefined ? {} : { weights }) };
  } catch (thrown) {
    throw new UserError(
      'BAD_TRACE',
      `${path}: line ${at}: ${messageOf(thrown)}; orders are recorded by --record-order`,
    );
  }
}
