/**
 * Grammars over bytes, and the acceptor that walks them. A grammar is a graph of nodes; a state is a set of stacks, of which
 * equal ones are one object. So states can be compared, and what was computed of one is kept.
 *
 * @see Willard & Louf 2023 (guided generation by automata), https://arxiv.org/abs/2307.09702
 * @see Dong et al. 2024 (XGrammar, stacks that share their ends), https://arxiv.org/abs/2411.15100
 */

/** Node of a grammar. */
export type Node =
  /** Bytes, one after another. */
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  /** One byte of a set. */
  | { readonly kind: 'class'; readonly has: (byte: number) => boolean }
  | { readonly kind: 'sequence'; readonly items: readonly Node[] }
  | { readonly kind: 'choice'; readonly items: readonly Node[] }
  /** Item from `min` to `max` times; it must not match the empty text. */
  | { readonly kind: 'repeat'; readonly item: Node; readonly min: number; readonly max: number }
  /** Any bytes up to a text, which ends it. */
  | { readonly kind: 'until'; readonly text: Uint8Array }
  /** Any bytes, as few as none, in which a text does not occur. */
  | { readonly kind: 'without'; readonly text: Uint8Array }
  /** Node that is made when it is first needed: for what refers to itself. */
  | { readonly kind: 'lazy'; readonly make: () => Node };

/** Makes a node of a text. */
export function textNode(text: string): Node {
  return { kind: 'bytes', bytes: new TextEncoder().encode(text) };
}

/** Makes a node of nodes that follow each other. */
export function sequence(...items: readonly Node[]): Node {
  return { kind: 'sequence', items };
}

/** Makes a node of alternatives. */
export function choice(...items: readonly Node[]): Node {
  return { kind: 'choice', items };
}

/** Stack: a node, the place in it, and what follows. */
interface Stack {
  readonly id: number;
  readonly node: Node;
  /** Bytes matched, or items begun. */
  readonly at: number;
  /** Undefined at the end of the grammar. */
  readonly next: Stack | undefined;
}

/** State of an acceptor. Equal states of one grammar are one object. */
export interface GrammarState {
  /** True where the text may end here. */
  readonly accepts: boolean;
  readonly stacks: readonly Stack[];
  /** States after each byte, as far as they were asked for; null where a byte cannot follow. */
  readonly after: (GrammarState | null | undefined)[];
}

/** Acceptor of a grammar. */
export class Grammar {
  readonly start: GrammarState;
  readonly #stacks = new Map<string, Stack>();
  readonly #states = new Map<string, GrammarState>();
  readonly #nodes = new Map<Node, number>();
  readonly #made = new Map<Node, Node>();

  constructor(root: Node) {
    this.start = this.#close([this.#stack(root, 0, undefined)]);
  }

  /** Steps over a byte. @returns undefined where it cannot follow */
  step(state: GrammarState, byte: number): GrammarState | undefined {
    const known = state.after[byte];
    if (known !== undefined) return known ?? undefined;
    const stepped: (Stack | undefined)[] = [];
    for (const stack of state.stacks) {
      const { node, at, next } = stack;
      if (node.kind === 'bytes' && node.bytes[at] === byte) {
        stepped.push(at + 1 === node.bytes.length ? next : this.#stack(node, at + 1, next));
      } else if (node.kind === 'class' && node.has(byte)) stepped.push(next);
      else if (node.kind === 'until') {
        const matched = matchedAfter(node.text, at, byte);
        stepped.push(matched === node.text.length ? next : this.#stack(node, matched, next));
      } else if (node.kind === 'without') {
        const matched = matchedAfter(node.text, at, byte);
        if (matched < node.text.length) stepped.push(this.#stack(node, matched, next));
      }
    }
    const after = stepped.length === 0 ? null : this.#close(stepped);
    state.after[byte] = after;
    return after ?? undefined;
  }

  /** State of stacks, each opened until a byte is on top. */
  #close(stacks: readonly (Stack | undefined)[]): GrammarState {
    const open: Stack[] = [];
    const seen = new Set<Stack>();
    let accepts = false;
    const waiting = [...stacks];
    const push = (node: Node, next: Stack | undefined) => waiting.push(this.#stack(node, 0, next));
    while (waiting.length > 0) {
      const stack = waiting.pop();
      if (!stack) {
        accepts = true;
        continue;
      }
      if (seen.has(stack)) continue;
      seen.add(stack);
      const { node, at, next } = stack;
      switch (node.kind) {
        case 'bytes':
          if (node.bytes.length === 0) waiting.push(next);
          else open.push(stack);
          break;
        case 'class':
        case 'until':
          open.push(stack);
          break;
        case 'without':
          open.push(stack);
          waiting.push(next);
          break;
        case 'lazy': {
          let made = this.#made.get(node);
          if (!made) this.#made.set(node, (made = node.make()));
          push(made, next);
          break;
        }
        case 'choice':
          for (const item of node.items) push(item, next);
          break;
        case 'sequence': {
          if (at === node.items.length) waiting.push(next);
          else push(node.items[at]!, at + 1 === node.items.length ? next : this.#stack(node, at + 1, next));
          break;
        }
        case 'repeat': {
          if (at >= node.min) waiting.push(next);
          // Without an upper bound only the lower one has to be counted.
          const after = node.max === Number.POSITIVE_INFINITY ? Math.min(at + 1, node.min) : at + 1;
          if (at < node.max) push(node.item, this.#stack(node, after, next));
        }
      }
    }
    open.sort((a, b) => a.id - b.id);
    const key = `${accepts ? 'a' : ''}${open.map(({ id }) => id).join()}`;
    let state = this.#states.get(key);
    if (!state) this.#states.set(key, (state = { accepts, stacks: open, after: new Array(256) }));
    return state;
  }

  #stack(node: Node, at: number, next: Stack | undefined): Stack {
    let number = this.#nodes.get(node);
    if (number === undefined) this.#nodes.set(node, (number = this.#nodes.size));
    const key = `${number}/${at}/${next?.id ?? ''}`;
    let stack = this.#stacks.get(key);
    if (!stack) this.#stacks.set(key, (stack = { id: this.#stacks.size, node, at, next }));
    return stack;
  }
}

/** Length of the longest beginning of a text that ends here, after one more byte (Knuth, Morris, Pratt). */
function matchedAfter(text: Uint8Array, matched: number, byte: number): number {
  for (let length = matched + 1; length > 0; length--) {
    // The last `length` bytes are the end of what was matched, and the new one.
    if (text[length - 1] !== byte) continue;
    let same = true;
    for (let i = 0; i < length - 1 && same; i++) same = text[i] === text[matched - length + 1 + i];
    if (same) return length;
  }
  return 0;
}
