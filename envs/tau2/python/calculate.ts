/**
 * Python's `eval` for the characters that the tool `calculate` admits: digits, points, blanks, brackets and `+ - * /`. So `**` and
 * `//` work, ints have any size, and `()` and `2(3)` end in the errors that Python has for them.
 */
import { reprFloat } from '../../../src/core/python-text.ts';
import { PyError, typeError, valueError } from './errors.ts';
import { roundFloat } from './format.ts';
import { iterate, toFloat } from './operations.ts';
import { type PyValue, typeName } from './values.ts';

/** Characters that are admitted; an item of a list may be a run of them, as Python's `in` has it. */
const ADMITTED = '0123456789+-*/(). ';
/** Depth of brackets and of operators in a row that is read; Python's own parser has such limits too. */
const MAX_DEPTH = 200;
/** Bits of an int that is computed; a larger one counts as too large for a float, which the result must be. */
const MAX_BITS = 1_000_000;

/** Empty tuple: the only other value that such an expression can have, beside a complex number. */
const TUPLE = Symbol('tuple');
type Operand = bigint | number | typeof TUPLE;

/**
 * `str(round(float(eval(expression)), 2))`.
 * @throws {PyError} for other characters, bad syntax and what cannot be computed
 */
export function calculate(expression: PyValue): string {
  for (const char of iterate(expression)) {
    if (typeof char !== 'string')
      throw typeError(`'in <string>' requires string as left operand, not ${typeName(char)}`);
    if (!ADMITTED.includes(char)) throw valueError('Invalid characters in expression');
  }
  if (typeof expression !== 'string') throw typeError('eval() arg 1 must be a string, bytes or code object');
  const value = new Parser(expression).parse();
  if (value === TUPLE) throw floatError('tuple');
  return reprFloat(roundFloat(toFloat(value), 2));
}

function floatError(kind: string): PyError {
  return typeError(`float() argument must be a string or a real number, not '${kind}'`);
}

function overflow(message: string): PyError {
  return new PyError('OverflowError', message);
}

function syntaxError(message = 'invalid syntax', line = 1): PyError {
  return new PyError('SyntaxError', `${message} (<string>, line ${line})`);
}

function divisionError(message: string): PyError {
  return new PyError('ZeroDivisionError', message);
}

const TOKEN = / *((?:\d+\.?\d*|\.\d+)|\*\*|\/\/|[-+*/().])/y;

/** Expression of Python, parsed before anything is computed: a wrong end is found before a division by zero. */
type Node = () => Operand;

class Parser {
  readonly #tokens: readonly string[];
  readonly #isUnclosed: boolean;
  #at = 0;
  /** Furthest token that was looked at. */
  #furthest = 0;

  constructor(expression: string) {
    const { tokens, isUnclosed } = tokenize(expression);
    this.#tokens = tokens;
    this.#isUnclosed = isUnclosed;
  }

  parse(): Operand {
    if (this.#tokens.length === 0) throw syntaxError('invalid syntax', 0);
    const node = this.#sum(0);
    const next = this.#peek();
    if (next !== undefined) throw this.#failBehind(next, 0);
    return node();
  }

  #peek(): string | undefined {
    this.#furthest = Math.max(this.#furthest, this.#at);
    return this.#tokens[this.#at];
  }

  /** Error of bad syntax; a bracket that is open counts where the end was looked at. */
  #fail(message?: string): PyError {
    const isAtEnd = this.#furthest >= this.#tokens.length;
    return syntaxError(this.#isUnclosed && isAtEnd ? "'(' was never closed" : message);
  }

  #sum(depth: number): Node {
    let left = this.#product(depth);
    for (let sign = this.#take('+', '-'); sign; sign = this.#take('+', '-')) {
      const [a, b, operator] = [left, this.#product(depth), sign];
      left = () => apply(operator, a(), b());
    }
    return left;
  }

  #product(depth: number): Node {
    let left = this.#unary(depth);
    for (let sign = this.#take('*', '/', '//'); sign; sign = this.#take('*', '/', '//')) {
      const [a, b, operator] = [left, this.#unary(depth), sign];
      left = () => apply(operator, a(), b());
    }
    return left;
  }

  #unary(depth: number): Node {
    if (depth > MAX_DEPTH) throw syntaxError('too many nested parentheses');
    const sign = this.#take('+', '-');
    if (!sign) return this.#power(depth);
    const operand = this.#unary(depth + 1);
    return () => {
      const value = operand();
      if (value === TUPLE) throw typeError(`bad operand type for unary ${sign}: 'tuple'`);
      return sign === '-' ? -value : value;
    };
  }

  #power(depth: number): Node {
    const base = this.#call(depth);
    if (!this.#take('**')) return base;
    const exponent = this.#unary(depth + 1); // `2**-1` and `2**3**2` bind to the right
    return () => apply('**', base(), exponent());
  }

  #call(depth: number): Node {
    let node = this.#atom(depth);
    while (this.#take('(')) {
      const callee = node;
      const stars = this.#take('*', '**');
      const argument = !stars && this.#peek() === ')' ? undefined : this.#inner(depth);
      if (!argument) this.#at++;
      node = () => {
        const value = callee();
        const given = argument?.();
        if (stars && given !== TUPLE) throw unpackError(value, stars, given!);
        throw typeError(`'${kindOf(value)}' object is not callable`);
      };
    }
    this.#lookBehindPoint();
    return node;
  }

  /** A point behind a value would name an attribute: Python looks at what follows. */
  #lookBehindPoint(): void {
    if (this.#peek() !== '.') return;
    this.#furthest = Math.max(this.#furthest, this.#at + 1);
  }

  #atom(depth: number): Node {
    const token = this.#peek();
    if (token !== '(' && !/\d/.test(token ?? '')) throw this.#fail();
    this.#at++;
    if (token === '(') {
      const stars = this.#take('*', '**');
      if (stars) throw this.#failStarred(stars, depth);
      if (this.#peek() !== ')') return this.#inner(depth);
      this.#at++;
      return () => TUPLE;
    }
    const value = token!.includes('.') ? Number(token) : BigInt(token!);
    return () => value;
  }

  /** Expression up to the bracket that closes it. */
  #inner(depth: number): Node {
    const node = this.#sum(depth + 1);
    const next = this.#peek();
    if (next !== ')') throw this.#failBehind(next, depth, 'invalid syntax. Perhaps you forgot a comma?');
    this.#at++;
    return node;
  }

  /** Error of stars behind a bracket: Python knows an expression behind them, up to the bracket that closes it. */
  #failStarred(stars: string, depth: number): PyError {
    try {
      this.#inner(depth);
    } catch (thrown) {
      return thrown as PyError;
    }
    return syntaxError(`cannot use ${stars === '**' ? 'double ' : ''}starred expression here`);
  }

  /**
   * Error of what stands behind an expression. Where it begins another one, Python reads that too.
   * @param message for another expression
   */
  #failBehind(next: string | undefined, depth: number, message?: string): PyError {
    if (!/\d/.test(next ?? '')) return this.#fail();
    try {
      this.#sum(depth + 1);
    } catch {}
    return this.#fail(message);
  }

  #take(...signs: readonly string[]): string | undefined {
    const token = this.#peek();
    if (token === undefined || !signs.includes(token)) return undefined;
    this.#at++;
    return token;
  }
}

/** Tokens of an expression. @throws {PyError} for leading zeros and for a bracket that closes nothing */
function tokenize(expression: string): { readonly tokens: readonly string[]; readonly isUnclosed: boolean } {
  const tokens: string[] = [];
  let open = 0;
  let isDeep = false;
  TOKEN.lastIndex = 0;
  for (let found = TOKEN.exec(expression); found; found = TOKEN.exec(expression)) {
    const token = found[1]!;
    if (/^0+[1-9]\d*$/.test(token) || (/^0+[1-9]/.test(token) && !token.includes('.'))) {
      throw syntaxError(
        'leading zeros in decimal integer literals are not permitted; use an 0o prefix for octal integers',
      );
    }
    if (token === '(') open++;
    if (open > MAX_DEPTH) isDeep = true;
    if (token === ')' && --open < 0) throw syntaxError("unmatched ')'");
    tokens.push(token);
  }
  if (isDeep) throw syntaxError('too many nested parentheses');
  return { tokens, isUnclosed: open > 0 };
}

function unpackError(callee: Operand, stars: string, given: Operand): PyError {
  const shown = typeof callee === 'number' ? reprFloat(callee) : callee === TUPLE ? '()' : String(callee);
  const needed = stars === '*' ? 'an iterable' : 'a mapping';
  return typeError(`${shown} argument after ${stars} must be ${needed}, not ${kindOf(given)}`);
}

function kindOf(value: Operand): string {
  if (value === TUPLE) return 'tuple';
  return typeof value === 'bigint' ? 'int' : 'float';
}

function apply(operator: string, left: Operand, right: Operand): Operand {
  if (left === TUPLE || right === TUPLE) {
    const isSum = operator === '+' && left === right;
    const isRepeat = operator === '*' && (typeof left === 'bigint' || typeof right === 'bigint');
    if (isSum || isRepeat) return TUPLE;
    if (operator === '+' && left === TUPLE) {
      throw typeError(`can only concatenate tuple (not "${kindOf(right)}") to tuple`);
    }
    if (operator === '*') {
      const other = left === TUPLE ? right : left;
      throw typeError(`can't multiply sequence by non-int of type '${kindOf(other)}'`);
    }
    const shown = operator === '**' ? '** or pow()' : operator;
    throw typeError(`unsupported operand type(s) for ${shown}: '${kindOf(left)}' and '${kindOf(right)}'`);
  }
  if (typeof left === 'bigint' && typeof right === 'bigint') return applyToInts(operator, left, right);
  return applyToFloats(operator, toFloat(left), toFloat(right));
}

function applyToInts(operator: string, left: bigint, right: bigint): Operand {
  switch (operator) {
    case '+':
      return left + right;
    case '-':
      return left - right;
    case '*':
      return checkSize(bitsOf(left) + bitsOf(right)) && left * right;
    case '/':
      if (right === 0n) throw divisionError('division by zero');
      return divide(left, right);
    case '//': {
      if (right === 0n) throw divisionError('integer division or modulo by zero');
      const quotient = left / right;
      return left % right !== 0n && left < 0n !== right < 0n ? quotient - 1n : quotient;
    }
  }
  if (right < 0n) return applyToFloats('**', toFloat(left), toFloat(right));
  const isSmall = left === 0n || left === 1n || left === -1n;
  if (isSmall) return right === 0n ? 1n : left === -1n && right % 2n === 0n ? 1n : left;
  return checkSize(bitsOf(left) * Number(right)) && left ** right;
}

function bitsOf(value: bigint): number {
  return value.toString(16).length * 4;
}

function checkSize(bits: number): true {
  if (bits > MAX_BITS) throw overflow('int too large to convert to float');
  return true;
}

/** True division of ints, correctly rounded. */
function divide(left: bigint, right: bigint): number {
  const [a, b] = [Number(left), Number(right)];
  if (BigInt(Number.MAX_SAFE_INTEGER) >= abs(left) && BigInt(Number.MAX_SAFE_INTEGER) >= abs(right)) return a / b;
  const isNegative = left < 0n !== right < 0n;
  // A quotient of at least 66 bits, whose last bit stands for the rest, rounds as the true one does.
  const shift = Math.max(0, bitsOf(right) - bitsOf(left) + 72);
  const scaled = abs(left) << BigInt(shift);
  const quotient = (scaled / abs(right)) | (scaled % abs(right) === 0n ? 0n : 1n);
  const excess = Math.max(0, bitsOf(quotient) - 1000);
  const kept = (quotient >> BigInt(excess)) | (excess > 0 ? 1n : 0n);
  const value = Number(kept) * 2 ** (excess - shift);
  if (!Number.isFinite(value)) throw overflow('integer division result too large for a float');
  return isNegative ? -value : value;
}

function abs(value: bigint): bigint {
  return value < 0n ? -value : value;
}

function applyToFloats(operator: string, left: number, right: number): Operand {
  switch (operator) {
    case '+':
      return left + right;
    case '-':
      return left - right;
    case '*':
      return left * right;
    case '/':
      if (right === 0) throw divisionError('float division by zero');
      return left / right;
    case '//':
      if (right === 0) throw divisionError('float floor division by zero');
      return floorDivide(left, right);
  }
  if (left === 0 && right < 0) throw divisionError('0.0 cannot be raised to a negative power');
  if (left < 0 && !Number.isInteger(right)) throw floatError('complex');
  if (left === 1) return 1; // also 1 ** nan
  const power = left ** right;
  if (!Number.isFinite(power) && Number.isFinite(left) && Number.isFinite(right)) {
    throw overflow("(34, 'Numerical result out of range')");
  }
  return power;
}

/** `left // right` by way of the remainder, as CPython computes it. */
function floorDivide(left: number, right: number): number {
  const remainder = left % right;
  let quotient = (left - remainder) / right;
  if (remainder !== 0 && right < 0 !== remainder < 0) quotient -= 1;
  if (quotient === 0) return Object.is(Math.sign(left / right), 0) || left / right > 0 ? 0 : -0;
  const floor = Math.floor(quotient);
  return quotient - floor > 0.5 ? floor + 1 : floor;
}
