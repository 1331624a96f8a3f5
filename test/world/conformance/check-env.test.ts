/** `longplay check-env` on worlds that are right, wrong, silent or deadly. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { packageRoot } from '../../../src/runtime/module-url.ts';
import { temporaryFolder } from '../../support/small-run.ts';

const main = fileURLToPath(new URL('dist/src/cli/main.js', packageRoot));
const folder = temporaryFolder('check-env');
mkdirSync(folder, { recursive: true });
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function checkEnv(...args: string[]) {
  const quick = ['--cases', '20', '--episodes', '200', ...args];
  const { status, stdout, stderr } = spawnSync(process.execPath, [main, 'check-env', ...quick], {
    encoding: 'utf8',
    timeout: 120_000,
  });
  return { status, stdout, stderr };
}

/** A world of three tasks in which `go` wins, but for `bug`. */
function world(name: string, bug: string): string {
  const path = join(folder, `${name}.mjs`);
  writeFileSync(
    path,
    `export function createEnv() {
      return {
        id: 'tiny', description: 'Say go.', rewardRange: [0, 1], maxObservationChars: 100,
        tasks: {
          count: 3, labels: ['all'], evalSeed: 0,
          label(index) { if (!(index >= 0 && index < 3 && index % 1 === 0)) throw new RangeError('index'); return 'all'; },
          split: (split) => (split === 'train' ? [0, 1] : [2]),
        },
        open({ index }) {
          if (!(index >= 0 && index < 3 && index % 1 === 0)) throw new RangeError('index');
          return {
            first: { kind: 'first', observation: 'Say go.' },
            actions: () => ['go', 'stay'],
            step(text) {
              ${bug}
              return text === 'go'
                ? { kind: 'terminated', observation: 'Yes.', reward: 1, success: true }
                : { kind: 'mid', observation: 'No.', reward: 0 };
            },
            close() {},
          };
        },
      };
    }\n`,
  );
  return path;
}

describe('longplay check-env', { timeout: 240_000 }, () => {
  it('passes a world of this package, for programs', () => {
    const { status, stdout } = checkEnv('textcraft', '--json');
    const report = JSON.parse(stdout);
    expect(status).toBe(0);
    expect(report).toMatchObject({ format: 1, env: 'textcraft', ok: true, seed: 1, leak: { ok: true } });
    expect(report.agents.map(({ agent }: { agent: string }) => agent)).toEqual(['random', 'oracle']);
    expect(report.costs.step.n).toBeGreaterThan(100);
  });

  it('passes a module given by its path, for people, and passes options on', () => {
    const right = checkEnv(world('right', ''));
    expect(right.stdout).toMatch(/tiny keeps the laws/);
    expect(right.stdout).toMatch(/random: solves 100 % of 1 tasks/);
    expect(right.status).toBe(0);
    expect(checkEnv('babyai', '--option', 'fidelity=original').status).toBe(0);
    expect(checkEnv('babyai', '--option', 'fidelity=best')).toMatchObject({ status: 2, stderr: /fidelity must be/ });
  });

  it('names the law that is broken, how, and exits with 1', () => {
    const { status, stdout } = checkEnv(
      world('nan', "if (text === 'stay') return { kind: 'mid', observation: '', reward: NaN };"),
    );
    expect(stdout).toMatch(/BROKEN pays finite rewards within its range/);
    expect(stdout).toMatch(/after "stay"/);
    expect(stdout).toMatch(/tiny breaks the laws/);
    expect(status).toBe(1);
  });

  it('ends a world that never answers, and names the call', () => {
    const { status, stderr } = checkEnv(world('loop', "if (text === '') for (;;);"), '--deadline', '2');
    expect(stderr).toMatch(/no end of a case for 2 s \(law 'takes any string as an action', case \d+\)/);
    expect(status).toBe(1);
  });

  it('survives a world that ends its process', () => {
    const { status, stderr } = checkEnv(world('exit', "if (text === '') process.exit(0);"));
    expect(stderr).toMatch(/ended its thread/);
    expect(status).toBe(1);
  });

  it("reports a user's mistake in one line", () => {
    expect(checkEnv('textcrft')).toMatchObject({
      status: 2,
      stderr: expect.stringMatching(/did you mean 'textcraft'/),
    });
    expect(checkEnv('./nowhere.js')).toMatchObject({ status: 2, stderr: expect.stringMatching(/there is no module/) });
    const empty = join(folder, 'empty.mjs');
    writeFileSync(empty, 'export const x = 1;\n');
    expect(checkEnv(empty)).toMatchObject({ status: 2, stderr: expect.stringMatching(/exports createEnv.*exports x/) });
  });
});
