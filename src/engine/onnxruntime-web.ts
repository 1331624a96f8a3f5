/** onnxruntime-web under Node: the same programs in WebAssembly, where there is no native package. */
import type { Engine } from './engine.ts';
import { openOrt } from './onnxruntime.ts';

export type OrtWeb = typeof import('onnxruntime-web');

/** A 32-bit heap holds 4 GiB: the inputs are copied into it, and the run needs room beside them. */
const MAX_FEED_BYTES = 3 * 2 ** 30;

/**
 * An engine over a loaded onnxruntime-web. The number of threads is the process's, set by the first engine that runs:
 * the WebAssembly module is started once.
 */
export function openOrtWeb(ort: OrtWeb, settings: { readonly threads: number; readonly reason: string }): Engine {
  ort.env.wasm.numThreads = settings.threads;
  ort.env.logLevel = 'fatal';
  return openOrt(ort, {
    ...settings,
    name: 'onnxruntime-web',
    device: 'cpu',
    reuses: false,
    maxFeedBytes: MAX_FEED_BYTES,
    session: { executionProviders: ['wasm'], graphOptimizationLevel: 'all', logSeverityLevel: 4 },
  });
}
