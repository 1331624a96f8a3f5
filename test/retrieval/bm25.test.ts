/** The index against a scorer that knows nothing of indexes, on random corpora and queries. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ANALYZERS } from '../../src/retrieval/analyzer.ts';
import { type Bm25Options, decodeLength } from '../../src/retrieval/bm25.ts';
import { indexPassages } from '../../src/retrieval/memory-index.ts';

const long = process.env.LONGPLAY_LONG === '1';
/** Number of corpora, each with ten queries. */
const CORPORA = long ? 1000 : 100;

const words = ['a', 'the', 'of', 'river', 'town', 'é', '北京', '1984', 'x1', 'mayor', 'zo'];
/** Skewed, as words are. */
const word = fc.oneof(
  { arbitrary: fc.constantFrom('a', 'the', 'of'), weight: 3 },
  { arbitrary: fc.constantFrom(...words), weight: 2 },
  { arbitrary: fc.integer({ min: 0, max: 60 }).map((n) => `w${n}`), weight: 2 },
);
const text = (maxLength: number) => fc.array(word, { maxLength, size: 'max' }).map((all) => all.join(' '));
const options = fc.record({
  k1: fc.constantFrom(0.9, 1.2, 0, 3),
  b: fc.constantFrom(0.4, 0.75, 0, 1),
  lengths: fc.constantFrom('lucene', 'exact'),
}) as fc.Arbitrary<Bm25Options>;

/** The formula, term by term over every passage, in float64. */
function bruteForce(passages: readonly string[], query: string, { k1, b, lengths }: Bm25Options) {
  const tokens: string[][] = passages.map((passage) => passage.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []);
  const filled = tokens.filter((list) => list.length > 0);
  const average = tokens.reduce((sum, list) => sum + list.length, 0) / filled.length;
  const found: { passage: number; score: number }[] = [];
  const terms: string[] = query.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  for (const [passage, list] of tokens.entries()) {
    let score = 0;
    let matched = false;
    for (const term of terms) {
      const tf = list.filter((token) => token === term).length;
      if (tf === 0) continue;
      matched = true;
      const df = tokens.filter((other) => other.includes(term)).length;
      const length = lengths === 'lucene' ? decodeLength(list.length) : list.length;
      const idf = Math.log(1 + (filled.length - df + 0.5) / (df + 0.5));
      score += (idf * tf) / (tf + k1 * (1 - b + (b * length) / average));
    }
    if (matched) found.push({ passage, score });
  }
  return found;
}

describe('BM25 over an index', () => {
  it('scores every passage as the formula does, and prunes without changing anything', { timeout: 600_000 }, () => {
    const query = fc.record({ query: text(12), k: fc.integer({ min: 1, max: 12 }) });
    const corpus = fc.array(text(90), { minLength: 1, maxLength: 60, size: 'max' });
    fc.assert(
      fc.property(corpus, options, fc.array(query, { minLength: 10, maxLength: 10 }), (passages, bm25, queries) => {
        const index = indexPassages(
          passages.map((contents) => ({ contents })),
          bm25,
        );
        for (const { query, k } of queries) {
          const expected = new Map(bruteForce(passages, query, bm25).map(({ passage, score }) => [passage, score]));
          const all = index.search(query, passages.length, false);
          expect(new Set(all.map(({ passage }) => passage))).toEqual(new Set(expected.keys()));
          for (const { passage, score } of all) expect(Math.abs(score - expected.get(passage)!)).toBeLessThan(1e-4);
          // Best first, equal scores in order of passage.
          for (let i = 1; i < all.length; i++) {
            const [a, b] = [all[i - 1]!, all[i]!];
            expect(a.score > b.score || (a.score === b.score && a.passage < b.passage)).toBe(true);
          }
          expect(index.search(query, k, false)).toEqual(all.slice(0, k));
          expect(index.search(query, k)).toEqual(all.slice(0, k));
        }
      }),
      { numRuns: CORPORA, seed: 7 },
    );
  });

  it('takes queries of any size and any text', () => {
    const index = indexPassages([{ contents: 'a town' }, { contents: 'the river' }, { contents: '' }]);
    expect(index.search('', 3)).toEqual([]);
    expect(index.search('\ud800 \u0000 <', 3)).toEqual([]);
    expect(index.search('town '.repeat(200_000), 3).map(({ passage }) => passage)).toEqual([0]);
    expect(index.search('x'.repeat(1_000_000), 3)).toEqual([]);
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 400 }), (query) => {
        expect(index.search(query, 3).length).toBeLessThanOrEqual(3);
      }),
    );
  });

  it('codes lengths as Lucene does: exact below 40, then in steps that double', () => {
    const known = [39, 40, 41, 42, 53, 54, 55, 56, 59, 60, 84, 88, 95, 96, 144, 159, 160];
    expect(known.map(decodeLength)).toEqual([39, 40, 40, 42, 52, 54, 54, 56, 56, 60, 84, 88, 88, 96, 144, 152, 152]);
  });

  it('cuts English text by its analyzer', () => {
    const tokens = ANALYZERS.english("The Mayor's running horses are in Norvale; O'Dell’s ponies, 1,234!");
    expect(tokens).toEqual(['mayor', 'run', 'hors', 'norval', "o'del", 'poni', '1', '234']);
  });
});
