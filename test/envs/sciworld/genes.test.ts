/** Genes of peas and unknown plants: what is seen, what is drawn, what a child inherits. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { describeTrait, genesShowing, mate, randomGenes } from '../../../envs/sciworld/genes.ts';
import { JavaRandom } from '../../../envs/sciworld/java-random.ts';
import { TRAITS } from '../../../envs/sciworld/life-tables.ts';
import type { Genes } from '../../../envs/sciworld/thing.ts';

const tables = fc.constantFrom(...Object.keys(TRAITS));
const seeds = fc.integer({ min: 0, max: 2 ** 31 - 1 });

const pea = (first: string, second: string): Genes => ({
  table: 'pea',
  traits: Object.keys(TRAITS.pea!),
  first: [...first].map((allele) => allele === 'D'),
  second: [...second].map((allele) => allele === 'D'),
});

describe('what is seen of genes', () => {
  it.each([
    ['DDDD', 'DDDD', 'tall', 'round', 'green', 'purple'],
    ['rrrr', 'rrrr', 'short', 'wrinkly', 'orange', 'white'],
    ['DDDD', 'rrrr', 'tall', 'round', 'green', 'purple'],
    ['rrrr', 'DDDD', 'tall', 'round', 'green', 'purple'],
    ['Drrr', 'rrrD', 'tall', 'wrinkly', 'orange', 'purple'],
  ])('%s and %s in a pea: %s, %s, %s, %s', (first, second, ...expected) => {
    const genes = pea(first, second);
    const traits = ['plant height', 'seed shape', 'seed color', 'flower color'];
    expect(traits.map((trait) => describeTrait(genes, trait))).toEqual(expected);
  });

  it('is nothing for a trait that the species has not', () => {
    expect(describeTrait(pea('DDDD', 'DDDD'), 'leaf size')).toBe('');
  });

  it.each([
    ['unknown B', 'plant height', 'short', 'tall'],
    ['unknown B', 'seed color', 'green', 'yellow'],
    ['unknown C', 'leaf shape', 'pointed', 'round'],
    ['unknown C', 'flower color', 'orange', 'yellow'],
    ['unknown D', 'leaf size', 'medium', 'large'],
    ['unknown D', 'flower color', 'blue', 'red'],
    ['unknown E', 'seed color', 'blue', 'brown'],
    ['unknown E', 'leaf shape', 'elliptical', 'linear'],
  ])('%s: %s is %s where dominant, else %s', (table, trait, dominant, recessive) => {
    const random = new JavaRandom(1);
    expect(describeTrait(genesShowing(table, trait, 'dominant', random), trait)).toBe(dominant);
    expect(describeTrait(genesShowing(table, trait, 'recessive', random), trait)).toBe(recessive);
  });
});

describe('drawn genes', () => {
  it('take a draw for each trait of either set, the first set before the second; 0 is dominant', () => {
    fc.assert(
      fc.property(tables, seeds, (table, seed) => {
        const random = new JavaRandom(seed);
        const genes = randomGenes(table, random);
        expect(random.draws).toBe(8);
        const again = new JavaRandom(seed);
        const expected = Array.from({ length: 8 }, () => again.int(2) === 0);
        expect([...genes.first, ...genes.second]).toEqual(expected);
        expect(genes.traits).toEqual(Object.keys(TRAITS[table]!));
      }),
    );
  });

  it('with one trait given take six draws, none of them for it', () => {
    fc.assert(
      fc.property(seeds, fc.constantFrom('dominant' as const, 'recessive' as const), (seed, expression) => {
        for (const [table, traits] of Object.entries(TRAITS)) {
          for (const trait of Object.keys(traits)) {
            const random = new JavaRandom(seed);
            const genes = genesShowing(table, trait, expression, random);
            const at = genes.traits.indexOf(trait);
            expect([genes.first[at], genes.second[at]]).toEqual([expression === 'dominant', expression === 'dominant']);
            expect(random.draws).toBe(6);
          }
        }
      }),
      { numRuns: 20 },
    );
  });

  it('of plant E are drawn in another order where one is given', () => {
    const genes = genesShowing('unknown E', 'seed color', 'dominant', new JavaRandom(0));
    expect(genes.traits).toEqual(['seed color', 'leaf shape', 'flower size', 'seed shape']);
  });
});

describe('a child', () => {
  const genes = fc
    .tuple(
      fc.array(fc.boolean(), { minLength: 4, maxLength: 4 }),
      fc.array(fc.boolean(), { minLength: 4, maxLength: 4 }),
    )
    .map(([first, second]): Genes => ({ table: 'pea', traits: Object.keys(TRAITS.pea!), first, second }));

  it('has one allele of each parent for each trait, and takes three draws a trait', () => {
    fc.assert(
      fc.property(genes, genes, seeds, (one, other, seed) => {
        const random = new JavaRandom(seed);
        const child = mate(one, other, random);
        expect(random.draws).toBe(12);
        for (let i = 0; i < 4; i++) {
          expect([one.first[i], one.second[i]]).toContain(child.first[i]);
          expect([other.first[i], other.second[i]]).toContain(child.second[i]);
        }
      }),
    );
  });

  it('of two pure parents follows Mendel', () => {
    const [dominant, recessive] = [pea('DDDD', 'DDDD'), pea('rrrr', 'rrrr')];
    const random = new JavaRandom(5);
    const mixed = mate(dominant, recessive, random);
    expect(['seed shape', 'flower color'].map((trait) => describeTrait(mixed, trait))).toEqual(['round', 'purple']);
    let wrinkly = 0;
    for (let i = 0; i < 400; i++) if (describeTrait(mate(mixed, mixed, random), 'seed shape') === 'wrinkly') wrinkly++;
    // A quarter of the grandchildren, give or take.
    expect(wrinkly).toBeGreaterThan(70);
    expect(wrinkly).toBeLessThan(130);
  });

  it('reads the parents by trait, whatever their order', () => {
    const random = new JavaRandom(2);
    const one = genesShowing('unknown E', 'leaf shape', 'recessive', random);
    const other = randomGenes('unknown E', random);
    for (let i = 0; i < 20; i++) {
      const child = mate(one, other, random);
      expect(child.traits).toEqual(one.traits);
      const at = child.traits.indexOf('leaf shape');
      expect(child.first[at]).toBe(false);
      const theirs = other.traits.indexOf('leaf shape');
      expect([other.first[theirs], other.second[theirs]]).toContain(child.second[at]);
    }
  });
});
