/** AdamW of models with many parameters: one small program, called for each of them. */
import type { Engine, Feed, HostTensor, Program, RunTensor } from '../engine/engine.ts';
import type { ValueInfo } from '../tensor/graph.ts';
import type { ModelConfig } from './config.ts';
import type { AdamWConfig } from './optimizer.ts';
import { type ParameterSpec, parameterSpecs } from './parameters.ts';
import { flatAdamWGraph } from './programs.ts';

/** Compiles a program that does what `adamWGraph` does, parameter by parameter. Its feeds are host tensors. */
export async function compileFlatAdamW(engine: Engine, config: ModelConfig, options: AdamWConfig): Promise<Program> {
  const specs = parameterSpecs(config);
  const decayed = await engine.compile(flatAdamWGraph(options, true));
  const plain = options.weightDecay > 0 ? await engine.compile(flatAdamWGraph(options, false)) : decayed;
  const rates = decayed.inputs.filter(({ name }) => name.startsWith('adam.') && name !== 'adam.gradNorm');
  const tensors = (prefixes: readonly string[]): ValueInfo[] =>
    specs.flatMap(({ name, shape }) =>
      prefixes.map((prefix) => ({ name: prefix + name, shape, dtype: 'f32' as const })),
    );
  return {
    inputs: [
      ...rates,
      { name: 'adam.maxGradNorm', shape: [], dtype: 'f32' as const },
      ...tensors(['', 'd/', 'm/', 'v/']),
    ].filter((one, i, all) => all.findIndex(({ name }) => name === one.name) === i),
    outputs: [{ name: 'gradNorm', shape: [], dtype: 'f32' }, ...tensors(['w/', 'm/', 'v/'])],
    run: (feeds) => runEach(specs, feeds, (spec) => (spec.decay ? decayed : plain)),
    async dispose() {
      await decayed.dispose();
      if (plain !== decayed) await plain.dispose();
    },
  };
}

async function runEach(
  specs: readonly ParameterSpec[],
  feeds: Readonly<Record<string, Feed>>,
  programOf: (spec: ParameterSpec) => Program,
): Promise<Record<string, RunTensor>> {
  const norm = host([], Float32Array.of(normOf(specs.map(({ name }) => valuesOf(feeds[`d/${name}`])))));
  const out: Record<string, RunTensor> = { gradNorm: norm };
  for (const spec of specs) {
    const { name, shape } = spec;
    const flat = (values: Float32Array): HostTensor => ({ dtype: 'f32', shape: [values.length], data: values });
    const own = await programOf(spec).run({
      ...feeds,
      'adam.gradNorm': norm,
      w: flat(valuesOf(feeds[name])),
      'd/w': flat(valuesOf(feeds[`d/${name}`])),
      'm/w': flat(valuesOf(feeds[`m/${name}`])),
      'v/w': flat(valuesOf(feeds[`v/${name}`])),
    });
    for (const kind of ['w', 'm', 'v']) out[`${kind}/${name}`] = host(shape, own[`${kind}/w`]!.data as Float32Array);
  }
  return out;
}

function normOf(gradients: readonly Float32Array[]): number {
  let squares = 0;
  for (const values of gradients) for (let i = 0; i < values.length; i++) squares += values[i]! * values[i]!;
  return Math.sqrt(squares);
}

function valuesOf(feed: Feed | undefined): Float32Array {
  return (feed as HostTensor).data as Float32Array;
}

function host(shape: readonly number[], data: Float32Array): RunTensor {
  const tensor: HostTensor = { dtype: 'f32', shape, data };
  return { ...tensor, read: async () => tensor, dispose: () => {} };
}
