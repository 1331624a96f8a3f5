/**
 * Weights over HTTP, where they are too large for a broker. The learner's machine serves them in parts, each under the digest of the whole
 * and its number; whoever has fetched a part serves it too, so that the learner's line carries each part a few times and not once a
 * worker. An announcement names the digests of the parts and the key that they are sealed with (AES-256-GCM): what travels can neither be
 * read nor changed by the machines between, relays included, and comes from whoever has it.
 */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { hostname } from 'node:os';
import { messageOf, UserError } from '../core/errors.ts';
import type { Rng } from '../core/rng.ts';
import { BrokerAway } from './broker.ts';

/** Source of weights: part digests, and the key that opens them. */
export interface WeightsSource {
  /** Address of the learner's machine, `http://host:port`. */
  readonly url: string;
  /** 32 bytes, base64. */
  readonly key: string;
  /** SHA-256 of each sealed part. */
  readonly parts: readonly string[];
  /** Bytes of every part but the last before it was sealed. */
  readonly partBytes: number;
}

/** Bytes of weights above which they go over HTTP. */
export const MOST_BROKER_BYTES = 200 * 2 ** 20;
/** Bytes of a part. */
export const PART_BYTES = 64 * 2 ** 20;
/** Bytes that a seal adds. */
const TAG_BYTES = 16;
/** Transfers at once; others are sent to those who have the part by then. */
const MOST_TRANSFERS = 8;
/** Others that are asked for a part, before the learner is. */
const MOST_ASKED = 3;
/** Milliseconds without a byte after which another source is tried. */
const IDLE_MS = 20_000;

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

/** Nonce of a part: keys are used for one version of the weights alone. */
function nonceOf(part: number): Uint8Array {
  const nonce = Buffer.alloc(12);
  nonce.writeUInt32BE(part, 8);
  return nonce;
}

/** Seals weights in parts. @returns the parts, and what opens them but for the address */
export function sealWeights(
  bytes: Uint8Array,
  partBytes = PART_BYTES,
): { readonly parts: readonly Uint8Array[]; readonly source: Omit<WeightsSource, 'url'> } {
  const key = randomBytes(32);
  const parts: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += partBytes) {
    const cipher = createCipheriv('aes-256-gcm', key, nonceOf(parts.length));
    parts.push(Buffer.concat([cipher.update(bytes.subarray(at, at + partBytes)), cipher.final(), cipher.getAuthTag()]));
  }
  return { parts, source: { key: key.toString('base64'), parts: parts.map(sha256), partBytes } };
}

function opened(sealed: Uint8Array, key: Uint8Array, part: number): Uint8Array {
  const decipher = createDecipheriv('aes-256-gcm', key, nonceOf(part));
  decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
  return Buffer.concat([decipher.update(sealed.subarray(0, -TAG_BYTES)), decipher.final()]);
}

/** Address to serve weights at: as others reach it, and where to listen. */
export interface ServedAt {
  readonly host: string;
  readonly port: number;
}

/** Reads `host`, `host:port` or `[address]:port`. @throws {UserError} BAD_ARGUMENT */
export function parseServedAt(text: string): ServedAt {
  const url = URL.canParse(`http://${text}`) ? new URL(`http://${text}`) : undefined;
  const plain = url && url.hostname !== '' && url.pathname === '/' && url.username === '' && url.search === '';
  if (plain) return { host: url.hostname, port: url.port === '' && !/:80$/.test(text) ? 0 : Number(url.port || 80) };
  throw new UserError('BAD_ARGUMENT', `expected an address as others reach it, host or host:port, got '${text}'`);
}

/** Address of this machine for those who use a broker. @param isLoopback true where all of them are on this machine */
export function ownAddress(isLoopback: boolean): ServedAt {
  return { host: isLoopback ? '127.0.0.1' : hostname(), port: 0 };
}

/** Server of parts of weights. */
export class WeightsServer {
  readonly url: string;
  readonly #server: Server;
  /** Parts by the digest of the whole and their number. */
  readonly #parts = new Map<string, Uint8Array>();
  #transfers = 0;
  /** Bytes that were sent. */
  sent = 0;

  private constructor(server: Server, url: string) {
    this.#server = server;
    this.url = url;
    server.on('request', (request, response) => this.#answer(request, response));
  }

  /** @throws {UserError} BAD_ARGUMENT where the port cannot be had */
  static async open({ host, port }: ServedAt): Promise<WeightsServer> {
    const server = createServer();
    const bare = host.replace(/^\[|\]$/g, '');
    const isLoopback = bare === 'localhost' || bare === '::1' || bare.startsWith('127.');
    await new Promise<void>((resolve, reject) => {
      server.once('error', (error) =>
        reject(new UserError('BAD_ARGUMENT', `weights cannot be served at ${host}:${port}: ${messageOf(error)}`)),
      );
      server.listen(port, isLoopback ? bare : undefined, resolve);
    });
    return new WeightsServer(server, `http://${host}:${(server.address() as AddressInfo).port}`);
  }

  put(digest: string, part: number, bytes: Uint8Array): void {
    this.#parts.set(`${digest}/${part}`, bytes);
  }

  /** Removes the weights of a digest; transfers under way go on. */
  remove(digest: string): void {
    for (const name of this.#parts.keys()) if (name.startsWith(`${digest}/`)) this.#parts.delete(name);
  }

  /** Keeps those of some digests alone. */
  keep(digests: readonly string[]): void {
    for (const name of this.#parts.keys()) if (!digests.includes(name.split('/')[0]!)) this.#parts.delete(name);
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const name = /^\/weights\/([0-9a-f]{64}\/\d{1,6})$/.exec(request.url ?? '')?.[1];
    const bytes = name === undefined ? undefined : this.#parts.get(name);
    if (request.method !== 'GET' || !bytes) {
      response.writeHead(404).end();
      return;
    }
    if (this.#transfers >= MOST_TRANSFERS) {
      response.writeHead(503, { 'retry-after': '1' }).end();
      return;
    }
    const range = /^bytes=(\d{1,15})-$/.exec(request.headers.range ?? '');
    const from = range ? Number(range[1]) : 0;
    if (from >= bytes.length) {
      response.writeHead(416, { 'content-range': `bytes */${bytes.length}` }).end();
      return;
    }
    const headers = {
      'content-type': 'application/octet-stream',
      'content-length': bytes.length - from,
      'accept-ranges': 'bytes',
      ...(range ? { 'content-range': `bytes ${from}-${bytes.length - 1}/${bytes.length}` } : {}),
    };
    this.#transfers++;
    response.once('close', () => {
      this.#transfers--;
      this.sent += bytes.length - from;
    });
    response.writeHead(range ? 206 : 200, headers).end(bytes.subarray(from));
  }
}

export interface FetchOptions {
  /** Digest of the whole, and its bytes. */
  readonly digest: string;
  readonly bytes: number;
  /** Addresses of others that may have parts; asked first, in any order. */
  readonly relays: () => readonly string[];
  readonly rng: Rng;
  /** Server that hands the parts on as they come. */
  readonly server?: WeightsServer | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds without a byte after which another source is tried. Default 20000. */
  readonly idleMs?: number | undefined;
}

/**
 * Fetches weights, each part from whoever has it; one that breaks off is gone on with where it broke off.
 * @throws {BrokerAway} where a part cannot be had now
 */
export async function fetchWeights(source: WeightsSource, options: FetchOptions): Promise<Uint8Array> {
  const key = Buffer.from(source.key, 'base64');
  const { digest, bytes, server, rng } = options;
  const whole = Buffer.alloc(bytes);
  // Everybody begins elsewhere, so that the first parts are not all asked of the learner.
  const first = rng.int(Math.max(1, source.parts.length));
  for (let n = 0; n < source.parts.length; n++) {
    const part = (first + n) % source.parts.length;
    const at = part * source.partBytes;
    const size = Math.min(source.partBytes, bytes - at);
    if (size <= 0) throw new BrokerAway(`the announcement names ${source.parts.length} parts for ${bytes} bytes`);
    const sealed = await fetchPart(source, options, part, size + TAG_BYTES);
    server?.put(digest, part, sealed);
    whole.set(opened(sealed, key, part), at);
  }
  return whole;
}

async function fetchPart(
  source: WeightsSource,
  options: FetchOptions,
  part: number,
  size: number,
): Promise<Uint8Array> {
  const { digest, relays, rng } = options;
  const found = Buffer.alloc(size);
  let have = 0;
  let why = 'nobody has it';
  // The learner twice: what it is asked to go on with may have begun with a stranger's bytes.
  const others = rng.shuffle(relays().filter((one) => one !== source.url)).slice(0, MOST_ASKED);
  for (const url of [...others, source.url, source.url]) {
    try {
      have = await read(`${url}/weights/${digest}/${part}`, found, have, options);
    } catch (thrown) {
      why = messageOf(thrown);
    }
    if (have < size) continue;
    if (sha256(found) === source.parts[part]) return found;
    have = 0; // of a stranger who sent something else
    why = 'its bytes have another digest';
  }
  throw new BrokerAway(`part ${part} of the weights cannot be fetched: ${why}`);
}

/** Reads on from a place. @returns how many bytes there are now */
async function read(
  url: string,
  into: Uint8Array,
  from: number,
  { signal, idleMs = IDLE_MS }: FetchOptions,
): Promise<number> {
  let have = from;
  const ending = new AbortController();
  const end = () => ending.abort();
  signal?.addEventListener('abort', end, { once: true });
  let timer = setTimeout(end, idleMs);
  try {
    if (signal?.aborted) end();
    const headers: Record<string, string> = from > 0 ? { range: `bytes=${from}-` } : {};
    const response = await fetch(url, { headers, signal: ending.signal, redirect: 'error' });
    if (from > 0 && response.status === 200) have = 0; // it sends the whole again
    if (!response.ok || !response.body) throw new Error(`${new URL(url).host} answered ${response.status}`);
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
      clearTimeout(timer);
      timer = setTimeout(end, idleMs);
      if (have + chunk.length > into.length) throw new Error(`${new URL(url).host} sent more than was announced`);
      into.set(chunk, have);
      have += chunk.length;
    }
    return have;
  } catch (thrown) {
    if (have > from) return have < into.length ? have : 0;
    throw thrown;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', end);
  }
}
