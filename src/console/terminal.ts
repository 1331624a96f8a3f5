/**
 * Terminal: the one place that writes to stdout and stderr. Results go to `out`, everything else to `err`. Whatever is
 * written is made printable, loses the secrets of this process, and is bounded.
 */
import { StringDecoder } from 'node:string_decoder';
import { printable, printableJson, printableLines, shorten } from '../core/printable.ts';
import { redact } from '../core/secrets.ts';
import { cut, type Line, render } from './text.ts';

/** A stream that is perhaps a terminal: stdout, stderr, or a test's. */
export interface TerminalStream {
  write(text: string): unknown;
  on(event: 'error', listener: (error: NodeJS.ErrnoException) => void): unknown;
  on(event: 'resize', listener: () => void): unknown;
  off(event: 'resize', listener: () => void): unknown;
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
}

/** UTF-16 units of one message on stderr, and of one on stdout. */
const NOTICE_CHARS = 4000;
const RESULT_CHARS = 1_000_000;
/** Length of a line that something else in this process writes. */
const FOREIGN_CHARS = 2000;

/** Writes to one stream. A reader that goes away (`| head -1`) is no error: the rest is dropped. */
export class TerminalWriter {
  readonly #stream: TerminalStream;
  readonly #write: (text: string) => unknown;
  readonly #maxChars: number;
  readonly #further: string;
  /** A status line stands on the terminal's last line. */
  #status = false;
  #failed = false;
  #capture: ((text: string) => void) | undefined;

  /**
   * @param maxChars UTF-16 units of one message
   * @param further put before each line of a message but the first, so that a name with a line end in it cannot pass for a
   *   message of its own
   */
  constructor(stream: TerminalStream, maxChars = NOTICE_CHARS, further = '') {
    this.#stream = stream;
    this.#write = stream.write.bind(stream);
    this.#maxChars = maxChars;
    this.#further = further;
    stream.on('error', (error) => {
      if (this.#failed) return;
      this.#failed = true;
      if (error.code === 'EPIPE' || error.code === 'ERR_STREAM_DESTROYED') return;
      if (stream === process.stdout) err.line(`longplay: cannot write the output: ${error.message}`);
      process.exitCode = 1;
    });
  }

  get isTTY(): boolean {
    return this.#stream.isTTY === true;
  }

  /** Columns and rows of the terminal; 80 × 24 where there is none, or one that does not know its size and reports 0. */
  get columns(): number {
    return this.#stream.columns || 80;
  }

  get rows(): number {
    return this.#stream.rows || 24;
  }

  /** True where colours are welcome: a terminal, and no `NO_COLOR`. */
  get colors(): boolean {
    return this.isTTY && !process.env.NO_COLOR;
  }

  /** Calls back when the terminal's size changes. @returns ends that */
  onResize(listener: () => void): () => void {
    this.#stream.on('resize', listener);
    return () => void this.#stream.off('resize', listener);
  }

  /** Writes a message of one or more lines. */
  line(text: string): void {
    this.#put(`${this.#clean(text)}\n`);
  }

  /** Writes a question, without an end of the line. */
  ask(text: string): void {
    this.#put(this.#clean(text));
  }

  /** Writes lines of styled text, in colour where it is welcome. */
  writeStyled(lines: readonly Line[]): void {
    this.#put(redact(lines.map((line) => `${render(line, this.colors)}\n`).join('')));
  }

  /** Writes a value as one line of JSON, whatever its length. */
  json(value: unknown): void {
    this.#put(`${redact(printableJson(value))}\n`);
  }

  /** Writes a frame with its escape codes; what it shows is made of spans, which are printable. */
  screen(codes: string): void {
    this.#put(redact(codes));
  }

  /** Shows a line that the next one replaces, on a terminal only. `undefined` takes it away. */
  status(text: string | undefined): void {
    if (!this.isTTY) return;
    const shown = text === undefined ? '' : cut(printable(redact(text)), this.columns - 1);
    if (shown === '' && !this.#status) return;
    this.#send(`\r\x1b[2K${shown}`);
    this.#status = shown !== '';
  }

  /** Hands everything written until the end of `work` to `take` instead: tests read a command's words. */
  async capture<T>(take: (text: string) => void, work: () => Promise<T>): Promise<T> {
    this.#capture = take;
    try {
      return await work();
    } finally {
      this.#capture = undefined;
    }
  }

  #clean(text: string): string {
    // Struck out first: a cut could leave half a secret.
    const lines = printableLines(shorten(redact(text), this.#maxChars));
    return this.#further === '' ? lines : lines.replaceAll('\n', `\n${this.#further}`);
  }

  #put(text: string): void {
    if (this.#status) this.status(undefined);
    this.#send(text);
  }

  #send(text: string): void {
    if (this.#capture) this.#capture(text);
    else if (!this.#failed) this.#write(text);
  }
}

/** Results, for people or for programs. */
export const out = new TerminalWriter(process.stdout, RESULT_CHARS);
/** Notices, progress and errors. */
export const err = new TerminalWriter(process.stderr, NOTICE_CHARS, '  ');

/** Lines of a foreign text, cut out of what is written piece by piece. */
class ForeignText {
  readonly #decoder = new StringDecoder('utf8');
  #rest = '';

  take(chunk: string | Uint8Array): void {
    this.#rest += typeof chunk === 'string' ? chunk : this.#decoder.write(Buffer.from(chunk));
    for (;;) {
      const end = this.#rest.indexOf('\n');
      if (end < 0 && this.#rest.length <= FOREIGN_CHARS) return;
      if (end < 0) this.#rest = redact(this.#rest); // before it is cut: half a secret would not be known any more
      this.#writeForeign(this.#rest.slice(0, end < 0 ? FOREIGN_CHARS : end));
      this.#rest = this.#rest.slice(end < 0 ? FOREIGN_CHARS : end + 1);
    }
  }

  end(): void {
    if (this.#rest !== '') this.#writeForeign(this.#rest);
    this.#rest = '';
  }

  #writeForeign(line: string): void {
    foreignLine(shorten(line, FOREIGN_CHARS));
  }
}

let foreignLine: (line: string) => void = (line) => err.line(line);

/** Shows foreign lines somewhere else than on stderr, while a screen of ours stands there. @returns ends that */
export function divertForeign(show: (line: string) => void): () => void {
  const before = foreignLine;
  foreignLine = show;
  return () => {
    foreignLine = before;
  };
}

/**
 * Sink for what something else writes (an environment in a process of its own). Whole lines of it go to stderr, never
 * to stdout, where a program may be reading.
 */
export function foreignSink(): { take(chunk: string | Uint8Array): void; end(): void } {
  return new ForeignText();
}

/**
 * Takes stdout and stderr for `out` and `err` alone. What else writes there in this process or its threads (an
 * environment's `console.log`, a library's warning) goes to stderr as foreign text.
 */
export function takeTerminal(): void {
  for (const stream of [process.stdout, process.stderr]) {
    const foreign = new ForeignText();
    process.once('exit', () => foreign.end());
    stream.write = ((chunk: string | Uint8Array, encoding?: unknown, done?: unknown) => {
      foreign.take(chunk);
      const callback = typeof encoding === 'function' ? encoding : done;
      if (typeof callback === 'function') process.nextTick(callback as () => void);
      return true;
    }) as typeof stream.write;
  }
}
