/**
 * Compiling many nodes: onnxruntime 1.30 takes more than linear time in the nodes of a graph, which is why models of many layers are
 * trained layer by layer (src/compute/model/compile.ts). Where a later version gives a ratio near 1 here, one graph will do again.
 */
import type { Engine } from '../../src/compute/engine/engine.ts';
import { openEngine } from '../../src/compute/engine/open.ts';
import type { ModelConfig } from '../../src/compute/model/config.ts';
import { compileLayeredGradients } from '../../src/compute/model/layered-program.ts';
import { gradientGraph } from '../../src/compute/model/programs.ts';
import type { Figure } from './contract.ts';
import { median } from './median.ts';

const [FEW, MANY] = [3, 24];
const OPTIONS = { decoder: 'tokens', objective: 'likelihood', masked: false, recompute: true } as const;

/** A narrow model: what is measured is nodes, not numbers. */
const modelOf = (layers: number): ModelConfig => ({
  ...{ vocabSize: 64, hiddenSize: 32, layers, heads: 2, kvHeads: 2, intermediateSize: 48, ropeTheta: 1e4 },
  ...{ rmsNormEps: 1e-6, qkvBias: false, tieEmbeddings: true, maxPositions: 64, prefixBidirectional: false },
  ...{ tokenShift: 0, focusBit: false, embeddingScale: 1, choiceHead: false, valueHead: false },
});

/** Processor milliseconds of a compilation, the median of three. */
async function compileMs(compile: () => Promise<{ dispose(): Promise<void> }>): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < 3; round++) {
    const before = process.cpuUsage();
    const program = await compile();
    const { user, system } = process.cpuUsage(before);
    times.push((user + system) / 1000);
    await program.dispose();
  }
  return median(times);
}

/** Runs the bench. */
export async function bench(): Promise<readonly Figure[]> {
  const engine: Engine = await openEngine({ name: 'onnxruntime-node', threads: 1 });
  const graphs = [FEW, MANY].map((layers) => gradientGraph(modelOf(layers), OPTIONS));
  const [few, many] = graphs as [(typeof graphs)[0], (typeof graphs)[0]];
  const fewMs = await compileMs(() => engine.compile(few));
  const manyMs = await compileMs(() => engine.compile(many));
  const layeredMs = await compileMs(() => compileLayeredGradients(engine, modelOf(MANY), OPTIONS));
  await engine.dispose();
  const linear = (fewMs * many.nodes.length) / few.nodes.length;
  return [
    { name: `one graph of ${few.nodes.length} tensors`, value: fewMs, unit: 'CPU ms' },
    {
      name: `one graph of ${many.nodes.length} tensors`,
      value: manyMs,
      unit: 'CPU ms',
      reference: { name: 'in proportion to the small one', value: linear },
    },
    {
      name: `${MANY} layers, layer by layer`,
      value: layeredMs,
      unit: 'CPU ms',
      reference: { name: 'one graph', value: manyMs },
    },
  ];
}
