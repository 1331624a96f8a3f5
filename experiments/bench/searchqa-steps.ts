/**
 * Rates of SearchQA in one thread: steps of random play with actions listed, and searches over 50,000 passages of 100
 * words by our index beside MiniSearch, in the same run.
 */
import MiniSearch from 'minisearch';
import { createEnv, start } from '../../envs/searchqa/index.ts';
import type { EnvStep } from '../../src/core/env.ts';
import { Rng } from '../../src/core/rng.ts';
import { indexPassages } from '../../src/retrieval/memory-index.ts';
import type { Figure } from './contract.ts';
import { median } from './median.ts';

const PASSAGES = 50_000;
const WORDS = 100;
const VOCABULARY = 200_000;

/** Passages of `WORDS` words by Zipf's law over a made-up vocabulary, and queries like questions and names. */
export function zipfCorpus(passages: number, rng: Rng) {
  const word = () => `w${Math.min(VOCABULARY - 1, Math.floor(Math.exp(rng.float() * Math.log(VOCABULARY))))}`;
  const rare = () => `w${rng.int(VOCABULARY)}`;
  const contents = () => `"${rare()} ${rare()}"\n${Array.from({ length: WORDS }, word).join(' ')}`;
  /** A third each: whole questions, names, a name and a word. */
  const query = (i: number) => {
    if (i % 3 === 0) return `${Array.from({ length: 8 }, word).join(' ')} ${rare()} ${rare()}`;
    return i % 3 === 1 ? `${rare()} ${rare()}` : `${rare()} ${word()}`;
  };
  return {
    *rows() {
      for (let i = 0; i < passages; i++) yield { id: String(i), contents: contents() };
    },
    queries: (count: number) => Array.from({ length: count }, (_, i) => query(i)),
  };
}

/** Measures steps and searches a second, medians of rounds taken in turn. */
export async function searchqaSteps(rounds = 3): Promise<Figure[]> {
  const figures: Figure[] = [await steps(rounds)];
  const corpus = zipfCorpus(PASSAGES, Rng.fromSeed(1));
  const rows = [...corpus.rows()];
  const queries = corpus.queries(600);
  const index = indexPassages(rows);
  const mini = new MiniSearch({ fields: ['contents'] });
  mini.addAll(rows);
  const rate = (list: readonly string[], search: (query: string) => unknown) => {
    const began = performance.now();
    for (const query of list) search(query);
    return (1000 * list.length) / (performance.now() - began);
  };
  const [pruned, plain, theirs]: number[][] = [[], [], []];
  for (let round = 0; round < rounds; round++) {
    pruned!.push(rate(queries, (query) => index.search(query, 3)));
    plain!.push(rate(queries, (query) => index.search(query, 3, false)));
    theirs!.push(rate(queries.slice(0, 30), (query) => mini.search(query).slice(0, 3)));
  }
  const name = `searches of ${PASSAGES.toLocaleString('en')} passages of ${WORDS} words, top 3`;
  const reference = { name: 'MiniSearch, the same queries', value: median(theirs!) };
  figures.push({ name: `${name}, pruned`, value: median(pruned!), unit: 'searches/s', reference });
  figures.push({ name: `${name}, not pruned`, value: median(plain!), unit: 'searches/s', reference });
  return figures;
}

/** Milliseconds of play before the compiler has settled, and of a round. */
const WARM_MS = 4000;
const ROUND_MS = 1000;

/** Random play over the listed actions, episodes of at most six turns, one train question after the other. */
async function steps(rounds: number): Promise<Figure> {
  const resources = await start({}, { where: 'bench' });
  const env = createEnv({}, resources);
  const tasks = env.tasks.split('train');
  const rng = Rng.fromSeed(1);
  let next = 0;
  const play = (ms: number) => {
    let count = 0;
    const began = performance.now();
    while (performance.now() - began < ms) {
      const session = env.open({ env: 'searchqa', index: tasks[next++ % tasks.length]!, seed: 0 });
      for (let turn = 0; turn < 6; turn++) {
        const listed = session.actions();
        if (listed.length === 0) break;
        count++;
        if ((session.step(rng.pick(listed)) as EnvStep).kind === 'terminated') break;
      }
    }
    return (1000 * count) / (performance.now() - began);
  };
  // A run makes each question once and reads each passage's names once: what comes after that is measured.
  while (next < tasks.length) play(ROUND_MS);
  play(WARM_MS);
  const rates = Array.from({ length: rounds }, () => play(ROUND_MS));
  return { name: 'SearchQA, one thread, actions listed', value: median(rates), unit: 'steps/s' };
}
