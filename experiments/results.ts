/** Files of a study's results: in the sources, whatever folder it is run from. */
import { packageRoot } from '../src/runtime/module-url.ts';

export function resultFiles(name: string): { json: URL; markdown: URL; svg: URL } {
  const at = (suffix: string) => new URL(`experiments/results/${name}.${suffix}`, packageRoot);
  return { json: at('json'), markdown: at('md'), svg: at('svg') };
}
