/**
 * Reads HTTP/1.1 requests from bytes as they come. Strict: what two readers could take for different requests (two
 * lengths, a length beside chunks, folded lines, blanks in a name) is refused, so that no proxy in front can be made
 * to disagree with us. Pure: no socket, no clock.
 *
 * @see RFC 9112
 */

export interface ReadRequest {
  readonly method: string;
  /** Path and query, as it came. */
  readonly target: string;
  readonly contentType: string | undefined;
  readonly authorization: string | undefined;
  readonly origin: string | undefined;
  /** UTF-8. */
  readonly body: string;
  /** Whether the client wants to send another one on this connection. */
  readonly keepAlive: boolean;
  /** False for HTTP/1.0, which knows no chunks. */
  readonly chunks: boolean;
}

/** Not to be answered but with `status`; the connection is of no more use. */
export class BadRequest extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export interface RequestLimits {
  readonly maxBodyBytes: number;
  /** Default 16 KiB. */
  readonly maxHeadBytes?: number;
}

interface Head {
  /** Gets its body last. */
  readonly request: { -readonly [K in keyof ReadRequest]: ReadRequest[K] };
  /** Bytes of the body; −1 where it comes in chunks. */
  readonly length: number;
  readonly expectsContinue: boolean;
}

/** What is read next: the head; bytes of a body or of a chunk; the lines around chunks. */
type State = 'head' | 'body' | 'size' | 'chunk' | 'chunkEnd' | 'trailer';

const EMPTY = Buffer.alloc(0);
const MAX_SIZE_LINE = 256;

export class RequestReader {
  readonly #limits: RequestLimits;
  #state: State = 'head';
  #pending: Buffer = EMPTY;
  #head: Head | undefined;
  #pieces: Buffer[] = [];
  #size = 0;
  /** Bytes of the body, or of the chunk, that are still to come. */
  #left = 0;
  #trailer = 0;
  #told = false;

  constructor(limits: RequestLimits) {
    this.#limits = limits;
  }

  /** Bytes that belong to no whole request yet. */
  get waiting(): boolean {
    return this.#state !== 'head' || this.#pending.length > 0;
  }

  /** Bytes held and not taken into a request. */
  get held(): number {
    return this.#pending.length;
  }

  /** True once for each request whose client wants to hear `100 Continue` before it sends the body. */
  takeContinue(): boolean {
    if (!this.#head?.expectsContinue || this.#told) return false;
    this.#told = true;
    return true;
  }

  push(chunk: Buffer): void {
    this.#pending = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
  }

  /** The next whole request. @returns undefined until it is there @throws {BadRequest} */
  next(): ReadRequest | undefined {
    while (this.#step()) if (this.#state === 'head' && this.#head) return this.#finish();
    return undefined;
  }

  /** @returns whether there was enough to go on */
  #step(): boolean {
    switch (this.#state) {
      case 'head':
        return this.#readHead();
      case 'body':
        if (!this.#takeBytes()) return false;
        this.#state = 'head';
        return true;
      case 'size':
        return this.#readSize();
      case 'chunk':
        if (!this.#takeBytes()) return false;
        this.#state = 'chunkEnd';
        return true;
      case 'chunkEnd': {
        const line = this.#line(0);
        if (line === undefined) return false;
        if (line !== '') throw new BadRequest(400, 'a chunk is longer than it says');
        this.#state = 'size';
        return true;
      }
      case 'trailer': {
        const line = this.#line(this.#maxHead);
        if (line === undefined) return false;
        this.#trailer += line.length;
        if (this.#trailer > this.#maxHead) throw new BadRequest(431, 'the trailer is too long');
        if (line === '') this.#state = 'head';
        return true;
      }
    }
  }

  get #maxHead(): number {
    return this.#limits.maxHeadBytes ?? 16 * 1024;
  }

  #readHead(): boolean {
    let pending = this.#pending;
    // Some clients send an empty line behind a body; RFC 9112 §2.2 has servers skip it.
    while (pending.length >= 2 && pending[0] === 13 && pending[1] === 10) pending = pending.subarray(2);
    const end = pending.indexOf('\r\n\r\n');
    if (end < 0 ? pending.length > this.#maxHead : end > this.#maxHead) {
      throw new BadRequest(431, `the head of the request exceeds ${this.#maxHead} bytes`);
    }
    if (end < 0) {
      this.#pending = pending;
      return false;
    }
    const head = readHead(pending.toString('latin1', 0, end));
    if (head.length > this.#limits.maxBodyBytes) throw this.#tooLong();
    this.#head = head;
    this.#told = false;
    this.#pending = pending.subarray(end + 4);
    this.#left = head.length;
    this.#trailer = 0;
    this.#state = head.length < 0 ? 'size' : head.length > 0 ? 'body' : 'head';
    return true;
  }

  #readSize(): boolean {
    const line = this.#line(MAX_SIZE_LINE);
    if (line === undefined) return false;
    const size = /^([0-9a-fA-F]{1,8})[ \t]*(?:;.*)?$/.exec(line)?.[1];
    if (size === undefined) throw new BadRequest(400, 'a chunk without its size');
    this.#left = Number.parseInt(size, 16);
    if (this.#size + this.#left > this.#limits.maxBodyBytes) throw this.#tooLong();
    this.#state = this.#left === 0 ? 'trailer' : 'chunk';
    return true;
  }

  /** @returns whether all that was left has come */
  #takeBytes(): boolean {
    const pending = this.#pending;
    const take = Math.min(this.#left, pending.length);
    if (take === 0) return false;
    this.#pieces.push(take === pending.length ? pending : pending.subarray(0, take));
    this.#pending = take === pending.length ? EMPTY : pending.subarray(take);
    this.#size += take;
    this.#left -= take;
    return this.#left === 0;
  }

  #line(most: number): string | undefined {
    const end = this.#pending.indexOf('\r\n');
    if (end > most || (end < 0 && this.#pending.length > most + 1)) throw new BadRequest(400, 'malformed chunks');
    if (end < 0) return undefined;
    const line = this.#pending.toString('latin1', 0, end);
    this.#pending = this.#pending.subarray(end + 2);
    return line;
  }

  #finish(): ReadRequest {
    const { request } = this.#head!;
    const pieces = this.#pieces;
    if (pieces.length > 0) {
      request.body = (pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces)).toString();
      this.#pieces = [];
    }
    this.#head = undefined;
    this.#size = 0;
    return request;
  }

  #tooLong(): BadRequest {
    return new BadRequest(413, `the body exceeds ${this.#limits.maxBodyBytes} bytes`);
  }
}

const REQUEST_LINE = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+) ([!-~\x80-\xff]+) HTTP\/1\.([01])$/;
const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: that is what must not be there
const CONTROL = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)|(?<!\r)\n/;

/** @param text the head without its empty line @throws {BadRequest} */
function readHead(text: string): Head {
  let end = text.indexOf('\r\n');
  const line = REQUEST_LINE.exec(end < 0 ? text : text.slice(0, end));
  if (!line) throw new BadRequest(400, 'no request line of HTTP/1.1');
  if (CONTROL.test(text)) throw new BadRequest(400, 'a control character in the head');
  let contentType: string | undefined;
  let authorization: string | undefined;
  let origin: string | undefined;
  let connection: string | undefined;
  let length: string | undefined;
  let coding: string | undefined;
  let expect: string | undefined;
  let host: string | undefined;
  while (end >= 0) {
    const start = end + 2;
    end = text.indexOf('\r\n', start);
    const header = end < 0 ? text.slice(start) : text.slice(start, end);
    const colon = header.indexOf(':');
    const name = header.slice(0, Math.max(0, colon)).toLowerCase();
    if (!NAME.test(name)) throw new BadRequest(400, 'a malformed header');
    const value = header.slice(colon + 1).trim();
    switch (name) {
      case 'content-type':
        contentType = value;
        break;
      case 'authorization':
        authorization = value;
        break;
      case 'origin':
        origin = value;
        break;
      case 'connection':
        connection = connection === undefined ? value : `${connection},${value}`;
        break;
      case 'content-length':
        if (length !== undefined) throw new BadRequest(400, 'two lengths');
        length = value;
        break;
      case 'transfer-encoding':
        if (coding !== undefined) throw new BadRequest(400, 'two transfer encodings');
        coding = value;
        break;
      case 'expect':
        expect = value;
        break;
      case 'host':
        if (host !== undefined) throw new BadRequest(400, 'two hosts');
        host = value;
        break;
    }
  }
  const newest = line[3] === '1';
  if (newest && host === undefined) throw new BadRequest(400, 'a request of HTTP/1.1 names its host');
  if (length !== undefined && !/^\d{1,15}$/.test(length)) throw new BadRequest(400, 'a length that is no number');
  if (coding !== undefined) {
    if (length !== undefined || !newest) throw new BadRequest(400, 'chunks beside a length, or in HTTP/1.0');
    if (coding.toLowerCase() !== 'chunked') throw new BadRequest(501, `transfer encoding ${coding} is not known here`);
  }
  const wish = connection?.toLowerCase();
  return {
    request: {
      method: line[1]!,
      target: originForm(line[2]!),
      contentType,
      authorization,
      origin,
      body: '',
      keepAlive: newest ? !(wish && /\bclose\b/.test(wish)) : wish !== undefined && /\bkeep-alive\b/.test(wish),
      chunks: newest,
    },
    length: coding === undefined ? Number(length ?? 0) : -1,
    expectsContinue: newest && expect?.toLowerCase() === '100-continue',
  };
}

/** Proxies ask for whole URLs. */
function originForm(target: string): string {
  if (target.startsWith('/')) return target;
  const rest = /^https?:\/\/[^/?]*(.*)$/i.exec(target)?.[1];
  return rest === undefined ? target : rest.startsWith('/') ? rest : `/${rest}`;
}
