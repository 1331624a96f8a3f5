/** onnxruntime-web under Node: the same programs in WebAssembly, where there is no native package. */
import type { Engine } from './engine.ts';
import { openOrt } from './onnxruntime.ts';

export type OrtWeb = typeof import('onnxruntime-web');

/**
 * Most bytes of inputs: a 32-bit heap holds 4 GiB, the inputs are copied into it, and the run needs room beside them.
 */
const MAX_FEED_BYTES = 3 * 2 ** 30;

/** Threads of the WebAssembly module, which this JavaScript thread starts once; the package keeps it for itself too. */
let started: number | undefined;

/**
 * Opens an engine over a loaded onnxruntime-web. The first one opened decides the number of threads for all that follow
 * in the same JavaScript thread.
 */
export function openOrtWeb(
  ort: OrtWeb,
  { threads, reason }: { readonly threads: number; readonly reason: string },
): Engine {
  started ??= threads;
  ort.env.wasm.numThreads = started;
  ort.env.logLevel = 'fatal';
  return openOrt(ort, {
    name: 'onnxruntime-web',
    device: 'cpu',
    threads: started,
    reason: started === threads ? reason : `${reason}; on the threads (${started}) of the first engine opened here`,
    reuses: false,
    keeps: false,
    files: false,
    maxFeedBytes: MAX_FEED_BYTES,
    session: { executionProviders: ['wasm'], graphOptimizationLevel: 'all', logSeverityLevel: 4 },
  });
}
