/**
 * Transport to an MCP server that is a child process: a message is a line of its standard input or output. It differs from the
 * official client's in what a bad server needs:
 *
 *     group      the process leads a group of its own (Linux), and the whole group ends with it: `npx` starts others
 *     mark       it inherits the mark of the env host, so that it ends with a host that is killed
 *     bounds     a message may have 64 MiB, and 10,000 messages may come that nobody has asked for
 *     noise      a line that is no message is passed over; the end of standard error is kept for the message of a failure
 */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import type { Readable, Writable } from 'node:stream';
import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client';
import { messageOf } from '../../core/errors.ts';
import { GrowingBuffer } from '../../core/growing-buffer.ts';
import { parseJson } from '../../core/json-text.ts';
import { isRecord } from '../../core/record.ts';
import { HOST_MARK } from '../../runtime/host-mark.ts';

/** Command of a server. */
export interface ServerCommand {
  /** Program and its arguments. */
  readonly words: readonly string[];
  /** Working folder. */
  readonly folder: string;
  /** Variables beside the inherited ones. */
  readonly env: Readonly<Record<string, string>>;
  /** Names of further variables to inherit. */
  readonly variables: readonly string[];
}

/** Bytes of the longest message. */
const MAX_MESSAGE_BYTES = 64 * 2 ** 20;
/** Messages and other lines in a row that answer no request: more of them are a flood. */
const MAX_UNASKED = 10_000;
/** UTF-16 units of standard error that are kept. */
const MAX_ERRORS = 2000;
/** Milliseconds that a server has to end by itself, once its input has ended and after each signal. */
const GRACE_MS = 500;
/** Variables that a server inherits: where programs, homes and languages are, and no secrets. */
const INHERITED = ['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'TERM', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR', 'TEMP', 'TMP'];
/** The same on Windows, beside them. */
const INHERITED_WINDOWS = ['SYSTEMROOT', 'SYSTEMDRIVE', 'COMSPEC', 'PATHEXT', 'APPDATA', 'LOCALAPPDATA', 'USERPROFILE'];
/** Elsewhere a process that leaves the host's group could not be found again. */
const LEADS_GROUP = process.platform === 'linux';

/** Servers that run, ended at the latest with this process. */
const running = new Set<ServerProcess>();
let isWatchingExit = false;

/** Process of a server, as a transport. */
export class ServerProcess implements Transport {
  onclose?: (() => void) | undefined;
  onerror?: ((error: Error) => void) | undefined;
  onmessage?: Transport['onmessage'];
  readonly #command: ServerCommand;
  readonly #read: (json: unknown) => JSONRPCMessage;
  #child: ChildProcessByStdio<Writable, Readable, Readable> | undefined;
  #line = new GrowingBuffer(MAX_MESSAGE_BYTES);
  /** Ids of requests that wait for an answer. */
  readonly #asked = new Set<unknown>();
  #unasked = 0;
  #errors = '';
  #ended: Promise<void> | undefined;
  #closing: Promise<void> | undefined;
  #isClosed = false;
  /** True once it has broken a bound: nothing more is read. */
  #isBroken = false;
  /** End of the server as a message describes it: set once it has gone, or has broken a bound. */
  #end: string | undefined;

  /** @param read makes a message of JSON, or throws */
  constructor(command: ServerCommand, read: (json: unknown) => JSONRPCMessage) {
    this.#command = command;
    this.#read = read;
  }

  /** Id of the process; the client recognises a transport of this kind by it. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** End of what it has written to standard error. */
  get stderr(): string {
    return this.#errors;
  }

  /** Description of how the server ended by itself, or broke a bound; undefined while it runs, and where it was closed. */
  get end(): string | undefined {
    return this.#end;
  }

  async start(): Promise<void> {
    const { words, folder, env, variables } = this.#command;
    const [file, ...args] = words;
    const child = spawn(file!, args, {
      cwd: folder,
      env: { ...inherit([...INHERITED, ...INHERITED_WINDOWS, ...variables, HOST_MARK]), ...env },
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: LEADS_GROUP,
      windowsHide: true,
    });
    this.#child = child;
    this.#ended = new Promise((resolve) => {
      child.once('error', () => resolve());
      child.once('exit', (code, signal) => {
        if (!this.#closing) this.#end ??= code === null ? `was ended by ${signal}` : `exited with code ${code}`;
        this.#signal('SIGKILL'); // what it has started goes with it, and lets its pipes go
        resolve();
      });
    });
    child.stdin.on('error', () => {}); // its end is reported by the process
    child.stdout.on('data', (chunk: Buffer) => this.#take(chunk));
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#errors = (this.#errors + text).slice(-MAX_ERRORS);
    });
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve);
      child.once('error', (error) => {
        // A folder that is not there is reported as a program that is not there.
        const reason = existsSync(folder) ? messageOf(error) : `cwd: there is no folder ${folder}`;
        this.#end = `cannot be started: ${reason}`;
        reject(error);
      });
    });
    running.add(this);
    if (!isWatchingExit) process.on('exit', endRunning);
    isWatchingExit = true;
    child.once('close', () => this.#leave());
    void this.#ended.then(() => setTimeout(() => this.#leave(), GRACE_MS).unref()); // a pipe may have got into other hands
  }

  send(message: JSONRPCMessage): Promise<void> {
    const child = this.#child;
    if (!child || this.#isClosed || this.#end !== undefined) return Promise.reject(new Error('the server is gone'));
    if ('method' in message && 'id' in message) this.#asked.add(message.id);
    child.stdin.write(`${JSON.stringify(message)}\n`);
    return Promise.resolve(); // one that reads nothing is noticed by the time its answer takes
  }

  /** Ends the process and all that it has started: its input ends first, then come signals. Twice does no harm. */
  close(): Promise<void> {
    this.#closing ??= this.#shut();
    return this.#closing;
  }

  /** Kills it at once, without waiting. */
  kill(): void {
    this.#signal('SIGKILL');
  }

  async #shut(): Promise<void> {
    const child = this.#child;
    if (child && running.has(this)) {
      child.stdin.end();
      for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
        if (await this.#endsWithin(GRACE_MS)) break;
        this.#signal(signal);
      }
      await this.#endsWithin(10 * GRACE_MS);
      this.#signal('SIGKILL');
    }
    this.#leave();
  }

  async #endsWithin(ms: number): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<boolean>((resolve) => {
      timer = setTimeout(() => resolve(false), ms);
    });
    const isEnded = await Promise.race([this.#ended!.then(() => true), late]);
    clearTimeout(timer);
    return isEnded;
  }

  #signal(signal: NodeJS.Signals): void {
    const child = this.#child;
    if (child?.pid === undefined) return;
    try {
      if (LEADS_GROUP) process.kill(-child.pid, signal);
      else child.kill(signal);
    } catch {
      // gone already
    }
  }

  #leave(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    running.delete(this);
    const child = this.#child;
    child?.stdin.destroy();
    child?.stdout.destroy();
    child?.stderr.destroy();
    this.onclose?.();
  }

  /** Ends a server that has broken a bound. */
  #fail(why: string): void {
    this.#isBroken = true;
    this.#end ??= why;
    this.onerror?.(new Error(why));
    this.#signal('SIGKILL');
  }

  #take(chunk: Buffer): void {
    let rest = chunk;
    while (!this.#isBroken) {
      const at = rest.indexOf(10);
      if (!this.#line.add(at < 0 ? rest : rest.subarray(0, at))) {
        this.#fail(`sent a message of more than ${MAX_MESSAGE_BYTES / 2 ** 20} MiB`);
        return;
      }
      if (at < 0) return;
      const line = this.#line.text();
      this.#line = new GrowingBuffer(MAX_MESSAGE_BYTES);
      rest = rest.subarray(at + 1);
      if (line.trim() !== '') this.#takeLine(line);
    }
  }

  #takeLine(line: string): void {
    let json: unknown;
    let message: JSONRPCMessage | undefined;
    try {
      json = parseJson(line);
      message = this.#read(json);
    } catch {
      // noise: a log line, or a form that is no message
    }
    if (isRecord(json) && !('method' in json) && this.#asked.delete(json.id)) this.#unasked = 0;
    else if (++this.#unasked > MAX_UNASKED) {
      this.#fail(`sent ${MAX_UNASKED} messages in a row that nobody had asked for`);
      return;
    }
    if (message) this.onmessage?.(message);
  }
}

function endRunning(): void {
  for (const server of running) server.kill();
}

function inherit(names: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = process.env[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
}
