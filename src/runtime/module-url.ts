/**
 * URLs of modules, in sources and in built code: what a thread can load, what this thread can load, and where the package
 * lies.
 */
import { existsSync } from 'node:fs';
import { messageOf } from '../core/errors.ts';

const here = import.meta.url;
/** Root folder of this package. */
export const packageRoot = new URL(here.endsWith('.ts') ? '../../' : '../../../', here);
const built = new URL('dist/', packageRoot);

/**
 * URL that a thread can load: built JavaScript, also when the caller runs from TypeScript sources (a test runner does
 * not reach into threads). Modules outside this package are left as they are.
 * @example new Worker(workerUrl(new URL('./entry.ts', import.meta.url)))
 */
export function workerUrl(url: URL): URL {
  const source = relativeTo(packageRoot, new URL(url.pathname, url));
  if (source === undefined || source.startsWith('node_modules/')) return url;
  if (!/\.[jt]s$/.test(source)) return url; // never compiled
  // Built code names its neighbours by their source names: the compiler rewrites imports, not URLs.
  const compiled = new URL(source.replace(/^dist\//, '').replace(/\.ts$/, '.js'), built);
  return existsSync(compiled) ? new URL(compiled.href + url.search) : url;
}

/** URL that this thread can load: the source beside us when we run from sources, else the module itself. */
export function localUrl(url: URL): URL {
  if (!here.endsWith('.ts')) return workerUrl(url);
  if (url.protocol !== 'file:') return url;
  const file = new URL(url.pathname, url);
  const source = new URL(url.pathname.replace(/\.js$/, '.ts'), url);
  return !existsSync(file) && existsSync(source) ? new URL(source.href + url.search) : url;
}

/** Message of what importing a module threw; of a TypeScript module under a Node that runs JavaScript alone, with the cure. */
export function explainLoadError(thrown: unknown): string {
  const isTypeScript = (thrown as NodeJS.ErrnoException)?.code === 'ERR_UNKNOWN_FILE_EXTENSION';
  const cure = '; this Node runs JavaScript alone: compile the module (npx tsc), or take Node 22.18 or newer';
  return messageOf(thrown) + (isTypeScript ? cure : '');
}

function relativeTo(root: URL, url: URL): string | undefined {
  return url.href.startsWith(root.href) ? url.href.slice(root.href.length) : undefined;
}
