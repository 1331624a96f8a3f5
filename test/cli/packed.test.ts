/** The package as npm packs it: its links lead somewhere, it holds nothing unneeded, and it installs (long). */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { packageRoot } from '../../src/runtime/module-url.ts';
import { temporaryFolder } from '../support/small-run.ts';

const root = fileURLToPath(packageRoot);
const folder = temporaryFolder('packed');
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function npm(cwd: string, ...args: string[]) {
  const { status, stdout, stderr } = spawnSync('npm', args, { cwd, encoding: 'utf8' });
  expect(status, stderr).toBe(0);
  return stdout;
}

/** Links of a page that lead to another file of the package: relative ones. */
function linksOf(page: string): string[] {
  const text = readFileSync(join(root, page), 'utf8').replace(/```[\s\S]*?```/g, '');
  const found = [...text.matchAll(/\]\(([^)\s#]+)(?:#[^)]*)?\)/g)].map(([, to]) => to!);
  return found.filter((to) => !/^[a-z]+:/.test(to)).map((to) => normalize(join(dirname(page), to)).replace(/\/$/, ''));
}

describe('the package', { timeout: 120_000 }, () => {
  it('has what its pages link to, no maps and no tests', () => {
    const [{ files }] = JSON.parse(npm(root, 'pack', '--dry-run', '--json')) as [{ files: { path: string }[] }];
    const paths = files.map(({ path }) => path);
    const pages = paths.filter((path) => path.endsWith('.md'));
    expect(pages).toContain('CONFIG.md');
    const dead = pages.flatMap((page) =>
      linksOf(page)
        .filter((to) => !paths.some((path) => path === to || path.startsWith(`${to}/`)))
        .map((to) => `${page} → ${to}`),
    );
    expect(dead).toEqual([]);
    expect(paths.filter((path) => /\.map$|(^|\/)test\//.test(path))).toEqual([]);
    expect(paths).toContain('src/config/run-config.schema.json');
  });

  it.skipIf(process.env.LONGPLAY_LONG !== '1')(
    'installs from the registry alone; without scripts it has the fast engine',
    { timeout: 600_000 },
    () => {
      npm(root, 'pack', '--pack-destination', folder);
      const archive = join(folder, 'longplay-0.1.0.tgz');
      const project = join(folder, 'project');
      mkdirSync(project);
      writeFileSync(join(project, 'package.json'), '{ "name": "project", "version": "1.0.0", "private": true }');
      npm(project, 'install', '--no-audit', '--no-fund', '--ignore-scripts', archive);
      expect(existsSync(join(project, 'node_modules/onnxruntime-node'))).toBe(true);
      const { components } = JSON.parse(npm(project, 'sbom', '--sbom-format', 'cyclonedx')) as {
        components: readonly { readonly name: string }[];
      };
      const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { dependencies: object };
      expect(components.map(({ name }) => name)).toEqual(expect.arrayContaining(Object.keys(dependencies)));
      const train = () =>
        spawnSync('npx', ['longplay', 'train', 'run.yaml'], { cwd: project, encoding: 'utf8', timeout: 300_000 });
      writeFileSync(
        join(project, 'run.yaml'),
        `
env: { id: textcraft }
horizon: { type: fixed, rounds: 3 }
policy: { model: { hiddenSize: 16, layers: 1, heads: 2 } }
rollout: { groupSize: 2, concurrentGroups: 2, maxBatch: 8 }
learner: { groupsPerUpdate: 2, epochs: 1 }
stop: { updates: 1 }
evaluation: { horizons: [3], episodesPerTask: 1, greedy: false, randomBaseline: false }
`,
      );
      const fast = train();
      expect(fast.stderr).toMatch(/^engine onnxruntime-node\/cpu$/m);
      expect(fast.stdout).toMatch(/run runs\/run \(engine onnxruntime-node\/cpu\): longplay view runs\/run/);
      rmSync(join(project, 'node_modules/onnxruntime-node'), { recursive: true });
      const slow = train();
      expect(slow.stderr).toMatch(
        /^engine onnxruntime-web\/cpu, several times slower .*Cure: npm install onnxruntime-node --ignore-scripts$/m,
      );
      expect(slow.status).toBe(0);
    },
  );
});
