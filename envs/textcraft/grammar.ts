/**
 * Grammar: action text → command, exactly as the original's patterns read it: a command is a prefix (`inventoryx` is
 * `inventory`), only the first line counts, digits are ASCII, and the item is whatever stands behind the number.
 * Written by hand, because the patterns backtrack and step() is a hot path.
 */

import { strip } from '../../src/core/python-text.ts';

/** Amount of an item: exact at any size, as the original's integers are. A number wherever it is a safe one. */
export type Amount = number | bigint;

export interface Stack {
  readonly amount: Amount;
  /** Item as written, e.g. `oak planks`. */
  readonly item: string;
}

export interface CraftCommand {
  readonly type: 'craft';
  readonly makes: Stack;
  readonly using: readonly Stack[];
}
export interface GetCommand {
  readonly type: 'get';
  readonly stack: Stack;
}
export interface InventoryCommand {
  readonly type: 'inventory';
}
/** Malformed command: a craft whose ingredient `part` is not `<number> <item>`. */
export interface MalformedCommand {
  readonly type: 'malformed';
  readonly part: string;
}
export interface UnknownCommand {
  readonly type: 'unknown';
}

export type Command = CraftCommand | GetCommand | InventoryCommand | MalformedCommand | UnknownCommand;

const CRAFT = 'craft ';
const USING = ' using ';
const GET = 'get ';

/** Parses any string. `craft … using …` splits at the last ` using ` of the line. */
export function parse(action: string): Command {
  if (action.startsWith(CRAFT)) {
    const line = firstLine(action);
    const at = line.lastIndexOf(USING);
    if (at >= CRAFT.length) return craft(line.slice(CRAFT.length, at), line.slice(at + USING.length));
  } else if (action.startsWith(GET)) {
    const stack = stackOf(firstLine(action).slice(GET.length));
    if (stack) return { type: 'get', stack };
  } else if (action.startsWith('inventory')) {
    return { type: 'inventory' };
  }
  return { type: 'unknown' };
}

/** Prints a command that can be written; `parse(print(command))` gives it back. */
export function print(command: CraftCommand | GetCommand | InventoryCommand): string {
  if (command.type === 'inventory') return 'inventory';
  if (command.type === 'get') return `get ${printStack(command.stack)}`;
  return `craft ${printStack(command.makes)} using ${command.using.map(printStack).join(', ')}`;
}

function printStack({ amount, item }: Stack): string {
  return `${amount} ${item}`;
}

/**
 * Reads a craft. The output's number may be missing (then 1, and all of the text is the item); an ingredient's may not.
 */
function craft(makes: string, using: string): CraftCommand | MalformedCommand {
  const stacks: Stack[] = [];
  for (const piece of using.split(',')) {
    const part = strip(piece);
    const stack = stackOf(part);
    if (!stack) return { type: 'malformed', part };
    stacks.push(stack);
  }
  return { type: 'craft', makes: stackOf(makes) ?? { amount: 1, item: makes }, using: stacks };
}

/** Stack `<digits> <rest>`, or `undefined`. */
function stackOf(text: string): Stack | undefined {
  let end = 0;
  while (isDigit(text.charCodeAt(end))) end++;
  if (end === 0 || text.charCodeAt(end) !== 32) return undefined;
  return { amount: amountOf(text.slice(0, end)), item: text.slice(end + 1) };
}

function amountOf(digits: string): Amount {
  return digits.length <= 15 ? Number(digits) : tidy(BigInt(digits));
}

/** Tidies an amount: a safe integer as a number, any other as a bigint. */
function tidy(amount: bigint): Amount {
  return amount <= Number.MAX_SAFE_INTEGER && amount >= -Number.MAX_SAFE_INTEGER ? Number(amount) : amount;
}

export function plus(a: Amount, b: Amount): Amount {
  if (typeof a === 'number' && typeof b === 'number') {
    const sum = a + b;
    if (Number.isSafeInteger(sum)) return sum;
  }
  return tidy(BigInt(a) + BigInt(b));
}

export function minus(a: Amount, b: Amount): Amount {
  if (typeof a === 'number' && typeof b === 'number') return a - b; // both safe and non-negative, so exact
  return tidy(BigInt(a) - BigInt(b));
}

function firstLine(text: string): string {
  const end = text.indexOf('\n');
  return end < 0 ? text : text.slice(0, end);
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57;
}
