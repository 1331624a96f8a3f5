/** Genes of peas and unknown plants: two sets of four traits, one from each parent. */
import type { JavaRandom } from './java-random.ts';
import { TRAITS } from './life-tables.ts';
import type { Genes } from './thing.ts';

/** Form of a trait that shows: `recessive` only where both genes are. */
export type Expression = 'dominant' | 'recessive';

/** Random genes: one draw for each trait of the first set, then of the second; 0 is dominant. */
export function randomGenes(table: string, random: JavaRandom, traits = Object.keys(TRAITS[table]!)): Genes {
  const set = () => traits.map(() => random.int(2) === 0);
  const first = set();
  return { table, traits, first, second: set() };
}

/** Order of the traits where one is given and the others are drawn, if it is not the species' own. */
const GIVEN_ORDER: Readonly<Record<string, readonly string[]>> = {
  'unknown E': ['seed color', 'leaf shape', 'flower size', 'seed shape'],
};

/**
 * Genes that show `trait` in both sets, dominant or recessive as given; the others are drawn, for the first set and
 * then for the second.
 */
export function genesShowing(table: string, trait: string, shown: Expression, random: JavaRandom): Genes {
  const traits = GIVEN_ORDER[table] ?? Object.keys(TRAITS[table]!);
  const set = () => traits.map((name) => (name === trait ? shown === 'dominant' : random.int(2) === 0));
  const first = set();
  return { table, traits, first, second: set() };
}

/** Dominance of `trait` as seen: it shows recessive only where both sets are. */
function isDominant(genes: Genes, trait: string): boolean {
  const at = genes.traits.indexOf(trait);
  return genes.first[at]! || genes.second[at]!;
}

/** Value of a trait as seen ("tall"), or '' where the species has no such trait. */
export function describeTrait(genes: Genes, trait: string): string {
  const row = TRAITS[genes.table]![trait];
  if (!row) return '';
  return isDominant(genes, trait) ? row.dominant : row.recessive;
}

/** Genes of a child: each trait draws one of the four pairs of parental alleles by a shuffle of three draws. */
export function mate(one: Genes, other: Genes, random: JavaRandom): Genes {
  const first: boolean[] = [];
  const second: boolean[] = [];
  one.traits.forEach((trait, i) => {
    const j = other.traits.indexOf(trait);
    const pairs: [boolean, boolean][] = [
      [one.first[i]!, other.first[j]!],
      [one.first[i]!, other.second[j]!],
      [one.second[i]!, other.first[j]!],
      [one.second[i]!, other.second[j]!],
    ];
    const [a, b] = random.shuffle(pairs)[0]!;
    first.push(a);
    second.push(b);
  });
  return { table: one.table, traits: one.traits, first, second };
}
