/** Python function call with literal arguments, written and read; comments around it are ignored. */

export interface PythonCall {
  readonly name: string;
  readonly positional: readonly string[];
  readonly named: Readonly<Record<string, string>>;
}

/** Prints a call: `craft(makes="4 stick", uses="2 planks")`. */
export function printCall(name: string, args: Readonly<Record<string, string>>): string {
  const list = Object.entries(args).map(([key, value]) => `${key}=${JSON.stringify(value)}`);
  return `${name}(${list.join(', ')})`;
}

const ONE_CALL = 'Write exactly one function call.';
const STRING = /"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'/y;
const NUMBER = /-?\d+(?:\.\d+)?/y;
const NAME = /[A-Za-z_]\w*/y;

export function parseCall(source: string): PythonCall | { readonly error: string } {
  const scan = new Scanner(source);
  scan.skip();
  const name = scan.take(NAME);
  if (name === undefined || !scan.takeChar('(')) return { error: ONE_CALL };
  const positional: string[] = [];
  const named: Record<string, string> = {};
  for (;;) {
    if (scan.takeChar(')')) break;
    const key = scan.take(NAME);
    if (key !== undefined && !scan.takeChar('=')) return { error: `After "${key}" comes "=".` };
    const value = scan.literal();
    if (value === undefined) return { error: `The arguments of ${name} must be texts in quotes or numbers.` };
    if (key !== undefined) named[key] = value;
    else positional.push(value);
    if (!scan.takeChar(',')) {
      if (!scan.takeChar(')')) return { error: `The call of ${name} is not closed.` };
      break;
    }
  }
  scan.skip();
  return scan.ended ? { name, positional, named } : { error: ONE_CALL };
}

class Scanner {
  readonly #source: string;
  #at = 0;

  constructor(source: string) {
    this.#source = source;
  }

  get ended(): boolean {
    return this.#at >= this.#source.length;
  }

  /** Skips blanks, line ends and comments. */
  skip(): void {
    this.#match(/(?:\s|#[^\n]*)*/y);
  }

  take(pattern: RegExp): string | undefined {
    this.skip();
    return this.#match(pattern);
  }

  takeChar(char: string): boolean {
    this.skip();
    if (this.#source[this.#at] !== char) return false;
    this.#at++;
    return true;
  }

  literal(): string | undefined {
    const number = this.take(NUMBER);
    if (number !== undefined) return number;
    const quoted = this.#match(STRING);
    return quoted === undefined ? undefined : unquote(quoted);
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#source)?.[0];
    if (found !== undefined) this.#at += found.length;
    return found;
  }
}

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', b: '\b', f: '\f', '0': '\0' };

function unquote(quoted: string): string {
  return quoted
    .slice(1, -1)
    .replace(/\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|([\s\S]))/g, (_, u?: string, x?: string, char?: string) =>
      char !== undefined ? (ESCAPES[char] ?? char) : String.fromCharCode(Number.parseInt((u ?? x)!, 16)),
    );
}
