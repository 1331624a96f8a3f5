/** Token masks: which ids may come next in a run of tokens, in sampling and again in training. */
import type { Grammar, GrammarState } from './grammar.ts';

/** Mask of one run: it goes on with the run, token by token. */
export interface TokenMask {
  /** Ids that may come next, ascending; at least one before the run's end. Not to be changed. */
  allowed(): readonly number[];
  /** Goes on by one token. @param id one of those allowed */
  advance(id: number): void;
}

/** Vocabulary as a trie of bytes. */
interface TrieNode {
  /** Ids whose bytes end here. */
  readonly ids: number[];
  /** Bytes that go on, and the node behind each. */
  readonly bytes: number[];
  readonly nodes: TrieNode[];
}

/** Vocabulary whose tokens grammars can be held against. */
export class Vocabulary {
  readonly #root: TrieNode = { ids: [], bytes: [], nodes: [] };
  readonly #bytes: readonly (Uint8Array | undefined)[];
  readonly #ends: readonly number[];

  /**
   * @param bytes of each id; undefined for one that no grammar allows
   * @param ends  ids that end a run, allowed where the grammar's text may end
   */
  constructor(bytes: readonly (Uint8Array | undefined)[], ends: Iterable<number>) {
    this.#bytes = bytes;
    this.#ends = [...ends];
    bytes.forEach((token, id) => {
      if (!token || token.length === 0) return;
      let node = this.#root;
      for (const byte of token) {
        let at = node.bytes.indexOf(byte);
        if (at < 0) {
          at = node.bytes.push(byte) - 1;
          node.nodes.push({ ids: [], bytes: [], nodes: [] });
        }
        node = node.nodes[at]!;
      }
      node.ids.push(id);
    });
  }

  /** Finds the ids that may follow a state, ascending. */
  allowedAt(grammar: Grammar, state: GrammarState): readonly number[] {
    const ids: number[] = state.accepts ? [...this.#ends] : [];
    const visit = (node: TrieNode, at: GrammarState) => {
      for (const id of node.ids) ids.push(id);
      for (let i = 0; i < node.bytes.length; i++) {
        const after = grammar.step(at, node.bytes[i]!);
        if (after) visit(node.nodes[i]!, after);
      }
    };
    visit(this.#root, state);
    return [...new Set(ids)].sort((a, b) => a - b);
  }

  /** Steps over the bytes of a token. @returns undefined where they cannot follow */
  step(grammar: Grammar, state: GrammarState, id: number): GrammarState | undefined {
    let after: GrammarState | undefined = state;
    for (const byte of this.#bytes[id] ?? []) after = after && grammar.step(after, byte);
    return after;
  }

  /** True for an id that ends a run. */
  isEnd(id: number): boolean {
    return this.#ends.includes(id);
  }
}

/** Grammar over a vocabulary; keeps what may follow each of its states. */
export class TokenGrammar {
  readonly #grammar: Grammar;
  readonly #vocabulary: Vocabulary;
  readonly #allowed = new WeakMap<GrammarState, readonly number[]>();

  constructor(grammar: Grammar, vocabulary: Vocabulary) {
    this.#grammar = grammar;
    this.#vocabulary = vocabulary;
  }

  /** Makes the mask of a new run. */
  begin(): TokenMask {
    let state = this.#grammar.start;
    return {
      allowed: () => {
        let allowed = this.#allowed.get(state);
        if (!allowed) this.#allowed.set(state, (allowed = this.#vocabulary.allowedAt(this.#grammar, state)));
        return allowed;
      },
      advance: (id) => {
        if (this.#vocabulary.isEnd(id)) return;
        const after = this.#vocabulary.step(this.#grammar, state, id);
        if (!after) throw new RangeError(`token ${id} cannot follow under the grammar of this reply`);
        state = after;
      },
    };
  }
}
