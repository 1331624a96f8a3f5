/** The env laws hold of SearchQA, its embedded world, under both rules and in Search-R1's dialect. */
import * as searchqa from '../../../envs/searchqa/index.ts';
import type { Rng } from '../../../src/core/rng.ts';
import { testEnvLaws } from '../laws.ts';

const PIECES = [
  '<search>', '</search>', '<answer>', '</answer>', '<think>', '</think>', '<information>', '</information>', 'yes',
  'France', 'the capital of', '\u2028', ' ', '\n', '<search', 'answer>', '', '🜂', '\ud800',
]; // biome-ignore format: a list

/** Tags in any order, around words of this world. */
function texts(rng: Rng): string {
  return Array.from({ length: 1 + rng.int(8) }, () => rng.pick(PIECES)).join('');
}

// The world is made once: envs only read it.
const resources = await searchqa.start({}, { where: 'laws' });

testEnvLaws('searchqa', { createEnv: () => searchqa.createEnv({}, resources), texts, module: searchqa });
testEnvLaws(
  "searchqa, fidelity 'original',",
  {
    createEnv: () => searchqa.createEnv({ fidelity: 'original' }, resources),
    texts,
  },
  0.2,
  false,
);
testEnvLaws(
  "searchqa, dialect 'search-r1',",
  {
    createEnv: () => searchqa.createEnv({ dialect: 'search-r1', format: { structure: 0.2, final: 0.1 } }, resources),
    texts,
  },
  0.2,
  false,
);
