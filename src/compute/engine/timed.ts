/** Timed engine: adds up the time spent inside its programs; the rest of a call is our own overhead. */
import type { Clock } from '../../core/clock.ts';
import type { Engine } from './engine.ts';

/**
 * Times an engine.
 * @returns the same engine, and a counter of milliseconds inside `Program.run`
 */
export function timeEngine(
  engine: Engine,
  clock: Clock,
): { readonly engine: Engine; readonly computing: { ms: number } } {
  const computing = { ms: 0 };
  const wrapped: Engine = {
    name: engine.name,
    device: engine.device,
    threads: engine.threads,
    reason: engine.reason,
    async compile(graph) {
      const program = await engine.compile(graph);
      return {
        inputs: program.inputs,
        outputs: program.outputs,
        async run(feeds, options) {
          const start = clock.now();
          const out = await program.run(feeds, options);
          computing.ms += clock.now() - start;
          return out;
        },
        dispose: () => program.dispose(),
      };
    },
    dispose: () => engine.dispose(),
  };
  return { engine: wrapped, computing };
}
