/**
 * Record of the calls that a gateway has answered, as JSON lines. While it is open each answered call is a line of its own,
 * with the messages that it adds to the call that it continues:
 *
 *     { call, parent, asked: [message…], tools?, reply }        { undelivered: [call…] }
 *
 * On closing they are joined: one conversation for each call that nothing continues, in the form that `longplay sft` reads,
 * `{ messages, tools? }`. What a process that was killed has left is joined when the file is opened again.
 */
import { closeSync, fsyncSync, openSync, statSync } from 'node:fs';
import { MAX_DATA_BYTES, openFile, readText } from '../core/bounded-file.ts';
import { describeValue } from '../core/describe-value.ts';
import { messageOf, UserError } from '../core/errors.ts';
import { parseJson } from '../core/json-text.ts';
import type { AssistantMessage, ConversationMessage, ModelReply, Tool } from '../core/model-call.ts';
import { isRecord } from '../core/record.ts';
import type { WaitingCall } from '../gateway/gateway.ts';
import { printChatMessage } from '../policy/remote/chat-body.ts';
import { appendWhole, writeAll, writeWhole } from '../storage/atomic-file.ts';
import { wholeBytes, wholeLines } from '../storage/lines.ts';
import { printChatTool } from '../text/tools/plain-tools.ts';

/** Call that was answered, as a line. */
export interface RecordedCall {
  readonly call: number;
  /** Call that it continues; `null` where it begins a conversation. */
  readonly parent: number | null;
  /** Messages behind the parent's reply. */
  readonly asked: readonly ConversationMessage[];
  /** Tools of the conversation, given where it begins. */
  readonly tools?: readonly Tool[] | undefined;
  readonly reply: AssistantMessage;
}

/** Conversation in OpenAI's form. */
export interface RecordedConversation {
  readonly messages: readonly object[];
  readonly tools?: readonly object[];
}

export interface CallRecordOptions {
  /** Bytes of the file beyond which nothing is added. Default: what `longplay sft` reads. */
  readonly maxBytes?: number | undefined;
  readonly onNotice?: ((line: string) => void) | undefined;
}

/** Open record. */
export class CallRecord {
  readonly #path: string;
  readonly #maxBytes: number;
  readonly #onNotice: (line: string) => void;
  #bytes: number;
  #isFull = false;

  private constructor(path: string, { maxBytes = MAX_DATA_BYTES, onNotice = () => {} }: CallRecordOptions) {
    this.#path = path;
    this.#maxBytes = maxBytes;
    this.#onNotice = onNotice;
    this.#bytes = sizeOf(path);
  }

  /**
   * Opens a record. Conversations that are there stay; calls that an earlier process has left are joined.
   * @throws {UserError} BAD_ARGUMENT for a file that is no record, or that cannot be written
   */
  static open(path: string, options: CallRecordOptions = {}): CallRecord {
    closeSync(openFile(path, 'a')); // it is made where it is missing
    joinFile(path);
    return new CallRecord(path, options);
  }

  /** Adds a call that was answered. */
  add({ number: call, parent, fresh: asked, call: { tools } }: WaitingCall, reply: ModelReply): void {
    const { content, reasoning, calls } = reply;
    this.#append({
      call,
      parent,
      asked,
      ...(parent === null && tools.length > 0 ? { tools } : {}),
      reply: {
        role: 'assistant',
        content,
        ...(reasoning === undefined ? {} : { reasoning }),
        ...(calls.length > 0 ? { calls } : {}),
      },
    } satisfies RecordedCall);
  }

  /** Notes calls whose replies reached nobody. */
  drop(calls: readonly number[]): void {
    this.#append({ undelivered: calls });
  }

  /** Joins the calls to conversations. @returns their number, and the size of the file @throws {UserError} */
  close(): { readonly conversations: number; readonly bytes: number } {
    const conversations = joinFile(this.#path);
    return { conversations, bytes: sizeOf(this.#path) };
  }

  #append(line: object): void {
    if (this.#isFull) return;
    const text = `${JSON.stringify(line)}\n`;
    const bytes = Buffer.byteLength(text);
    if (this.#bytes + bytes > this.#maxBytes) {
      this.#isFull = true;
      this.#onNotice(`${this.#path} has ${this.#bytes} bytes, ${this.#maxBytes} at most: no further call is recorded`);
      return;
    }
    try {
      appendWhole(this.#path, text);
      this.#bytes += bytes;
    } catch (thrown) {
      this.#isFull = true;
      this.#onNotice(`${messageOf(thrown)}: no further call is recorded`);
    }
  }
}

/** True for the lines of a record whose calls were not joined. */
export function isCallRecord(records: unknown): boolean {
  return Array.isArray(records) && records.some((one) => isRecordedCall(one));
}

/**
 * Joins the calls of a record to conversations: one for each call that none continues. Conversations among the lines stay,
 * in front.
 */
export function* joinCalls(lines: Iterable<unknown>): Generator<unknown> {
  const calls = new Map<number, RecordedCall>();
  const inner = new Set<number>();
  const dropped = new Set<number>();
  for (const line of lines) {
    if (isRecordedCall(line)) calls.set(line.call, line);
    else if (isNote(line)) for (const one of line.undelivered) dropped.add(one);
    else yield line;
  }
  for (const { call, parent } of calls.values()) if (parent !== null && !dropped.has(call)) inner.add(parent);
  for (const call of calls.values()) {
    if (inner.has(call.call) || dropped.has(call.call)) continue;
    const conversation = conversationOf(call, calls);
    if (conversation) yield conversation;
  }
}

/** Conversation that ends with a call; undefined where a call that it continues is not there. */
function conversationOf(
  last: RecordedCall,
  calls: ReadonlyMap<number, RecordedCall>,
): RecordedConversation | undefined {
  const parts: ConversationMessage[][] = [];
  let call = last;
  for (;;) {
    parts.push([...call.asked, call.reply]);
    if (call.parent === null) break;
    const parent = calls.get(call.parent);
    if (!parent || parent.call >= call.call) return undefined;
    call = parent;
  }
  const { tools = [] } = call;
  const messages = parts.reverse().flat().map(printChatMessage);
  return { messages, ...(tools.length > 0 ? { tools: tools.map(printChatTool) } : {}) };
}

function isRecordedCall(line: unknown): line is RecordedCall {
  return (
    isRecord(line) &&
    Number.isSafeInteger(line.call) &&
    (line.parent === null || Number.isSafeInteger(line.parent)) &&
    Array.isArray(line.asked) &&
    isRecord(line.reply)
  );
}

/**
 * Joins a file's calls, where it has some; half a line at its end goes.
 * @returns conversations in it
 * @throws {UserError} BAD_ARGUMENT for a file that is no record, or that cannot be written
 */
function joinFile(path: string): number {
  const lines = [...wholeLines(path)].map(({ text }, i) => parseLine(path, i + 1, text));
  const half = sizeOf(path) - wholeBytes(path);
  if (lines.length === 0 && half > 0 && !readText(path, MAX_DATA_BYTES).startsWith('{"call":')) {
    throw createKindError(path, 1, 'no whole line');
  }
  if (half === 0 && lines.every(isConversation)) return lines.length;
  let conversations = 0;
  const write = (draft: string) => {
    const file = openSync(draft, 'w');
    try {
      for (const conversation of joinCalls(lines)) {
        writeAll(file, `${JSON.stringify(conversation)}\n`);
        conversations++;
      }
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
  };
  try {
    writeWhole(path, write);
  } catch (thrown) {
    throw new UserError('NO_PERMISSION', `cannot write ${path}: ${messageOf(thrown)}`, { cause: thrown });
  }
  return conversations;
}

function parseLine(path: string, number: number, text: string | undefined): unknown {
  let line: unknown;
  try {
    line = parseJson(text ?? '');
  } catch {
    throw createKindError(path, number, 'no JSON');
  }
  if (isConversation(line) || isRecordedCall(line) || isNote(line)) return line;
  throw createKindError(path, number, describeValue(line));
}

function isConversation(line: unknown): boolean {
  return isRecord(line) && Array.isArray(line.messages);
}

function isNote(line: unknown): line is { readonly undelivered: readonly number[] } {
  return isRecord(line) && Array.isArray(line.undelivered);
}

function createKindError(path: string, line: number, got: string): UserError {
  const expected = 'expected a new file, or one of conversations, { messages: […] } a line';
  return new UserError('BAD_ARGUMENT', `${path}:${line}: ${expected}, got ${got}`);
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
