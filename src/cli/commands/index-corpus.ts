/** Command `longplay index`. */
import type { Command } from 'commander';
import { Option } from 'commander';
import { duration, percent, whole } from '../../console/numbers.ts';
import { out as stdout } from '../../console/terminal.ts';
import type { AnalyzerName } from '../../retrieval/analyzer.ts';
import { DEFAULT_BM25 } from '../../retrieval/bm25.ts';
import { type BuildProgress, buildIndex } from '../../retrieval/build-index.ts';
import { runCommand } from '../fail.ts';
import { number, share } from '../flags.ts';
import { ProgressLine } from '../progress-line.ts';

interface IndexFlags {
  readonly out?: string;
  readonly analyzer: AnalyzerName;
  readonly lengths: 'lucene' | 'exact';
  readonly k1: number;
  readonly b: number;
  readonly segmentMb?: number;
}

/** Adds the command. */
export function indexCorpus(program: Command): void {
  program
    .command('index')
    .description('build a BM25 index of a corpus: JSONL of {"id", "contents": "title\\ntext"}, plain or .gz')
    .argument('<corpus>', 'corpus file')
    .option('--out <file>', 'index file; default: the corpus’s name with .index')
    .addOption(new Option('--analyzer <name>', 'how text is cut').choices(['plain', 'english']).default('plain'))
    .addOption(
      new Option('--lengths <kind>', 'lengths of passages as Lucene codes them, or exact')
        .choices(['lucene', 'exact'])
        .default('lucene'),
    )
    .option('--k1 <x>', 'saturation of repeated terms', number(0), DEFAULT_BM25.k1)
    .option('--b <x>', 'weight of the passage’s length, 0 to 1', share, DEFAULT_BM25.b)
    .option('--segment-mb <n>', 'megabytes of passages between two points from which an ended build goes on', number(0))
    .action((corpus: string, flags: IndexFlags) => runCommand(() => build(corpus, flags)));
}

async function build(corpus: string, { out: given, segmentMb, ...options }: IndexFlags): Promise<void> {
  const out = given ?? `${corpus.replace(/\.jsonl(\.gz)?$/, '')}.index`;
  const began = performance.now();
  const line = new ProgressLine();
  const progress = new Progress(began);
  const segment = segmentMb === undefined ? {} : { segmentBytes: Math.max(1, segmentMb * 2 ** 20) };
  const header = await buildIndex(corpus, out, {
    ...options,
    ...segment,
    onProgress: (at) => line.show(progress.at(at)),
  });
  line.end();
  const took = duration((performance.now() - began) / 1000);
  const { passages, terms, pairs } = header;
  stdout.line(`${out}: ${whole(passages)} passages, ${whole(terms)} terms, ${whole(pairs)} pairs, in ${took}`);
}

/** Words for a build under way, with the time that is left of its phase. */
class Progress {
  readonly #began: number;
  #phase: BuildProgress['phase'] | undefined;
  #phaseBegan: number;
  #phaseStart = 0;

  constructor(began: number) {
    this.#began = this.#phaseBegan = began;
  }

  at({ phase, done, total, passages, resumed }: BuildProgress): () => string {
    const now = performance.now();
    if (phase !== this.#phase) {
      this.#phase = phase;
      this.#phaseBegan = now;
      this.#phaseStart = done;
    }
    return () => {
      const rate = (done - this.#phaseStart) / Math.max(1, now - this.#phaseBegan);
      const left = rate > 0 ? `, ${duration((total - done) / rate / 1000)} left` : '';
      const again = resumed > 0 ? ` (${whole(resumed)} of an earlier start)` : '';
      const at = `${phase} ${percent(done / Math.max(1, total))}, ${whole(passages)} passages${again}`;
      return `${at}, ${duration((now - this.#began) / 1000)}${left}`;
    };
  }
}
