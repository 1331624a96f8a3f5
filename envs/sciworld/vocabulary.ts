/** Words of the world, for the local policy's tokens: verbs, places, things, materials, species and stages. */
import { ACTIONS } from './actions.ts';
import { listKinds } from './kinds.ts';
import { ANIMALS, TRAITS } from './life-tables.ts';
import { MATERIALS } from './materials.ts';
import { BOOKS, PICTURES } from './pictures-and-books.ts';

const PLANTS = ['pea', 'avocado', 'apricot', 'grapefruit', 'unknown'];
const OTHERS = `temperature melting point conductive find living thing non plant animal lifespan longest shortest then mix
  paint twice boil melt freeze change power renewable nonrenewable stages grow fruit plane most least friction steepest
  shallowest angle trait task material surface inclined tree seedling reproducing sick wilting stage dead death tall short
  height leaves door terminal anode cathode steam ice containing nothing and in on of back large seed jar burned fire
  substance solid liquid gaseous dried help objects reset around wait wait1 adult pollen flower hole soil deleted to the
  picture drawing painting finger blank titled called by agent self room universe location box boxes`;

function clean(text: string): string {
  return text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, ' ')
    .trim();
}

/** Names of several words that become one token each. */
export const LEXICON: readonly string[] = [
  ...new Set(
    [
      ...listKinds().flatMap(({ id, name, references }) => [id, name, ...references]),
      ...[...MATERIALS.values()].map(({ substance }) => substance),
      ...Object.keys(ANIMALS),
      ...ACTIONS.map(({ shown }) => shown[0]!),
    ]
      .map(clean)
      .filter((name) => name.includes(' ')),
  ),
].sort();

/** All single words. */
export const WORDS: readonly string[] = [
  ...new Set(
    [
      ...LEXICON,
      ...listKinds().flatMap(({ id, name, references }) => [id, name, ...references]),
      ...[...MATERIALS.values()].flatMap(({ substance, names, color }) => [substance, color, ...(names ?? [])]),
      ...Object.entries(ANIMALS).flatMap(([species, { stages, names }]) => [
        species,
        ...stages,
        ...Object.values(names ?? {}),
      ]),
      ...Object.values(TRAITS).flatMap((traits) =>
        Object.entries(traits).flatMap(([name, { dominant, recessive, suffix }]) => [
          name,
          dominant,
          recessive,
          suffix,
        ]),
      ),
      ...BOOKS.flatMap(({ title, author }) => [title, author]),
      ...PICTURES.kinds,
      ...PICTURES.subjects,
      ...ACTIONS.flatMap(({ shown }) => shown),
      ...PLANTS,
      OTHERS,
      'a b c d e f g h i j k l m n o p q r s t u v w x y z',
    ]
      .flatMap((text) => clean(text).split(' '))
      .filter((word) => /^[a-z][a-z0-9]*$/.test(word)),
  ),
].sort();
