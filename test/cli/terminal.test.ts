/**
 * Processes at a terminal and in pipes: what an environment prints stays out of the answer, and every command gives
 * back the shell.
 */
import { spawn, spawnSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { packageRoot } from '../../src/runtime/module-url.ts';
import { longplay } from '../support/longplay-command.ts';
import { temporaryFolder } from '../support/small-run.ts';

vi.setConfig({ testTimeout: 120_000 });
const main = fileURLToPath(new URL('dist/src/cli/main.js', packageRoot));
const folder = temporaryFolder('terminal');
const world = join(folder, 'loud.mjs');
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A world that talks to the console, by every way there is, in escape codes. */
writeFileSync(
  world,
  `
const tasks = { count: 2, labels: ['only'], label: () => 'only', split: (s) => [s === 'train' ? 0 : 1], evalSeed: 0 };
console.log('\\x1b[31mLOUD module');
export function createEnv() {
  return {
    id: 'loud', description: 'Prints too much.', rewardRange: [0, 1], maxObservationChars: 100, tasks,
    open: () => ({
      first: { kind: 'first', observation: 'go' },
      step(text) {
        console.log('\\x1b[31mLOUD step ' + text);
        process.stdout.write('LOUD half');
        console.error('LOUD error \\u202e');
        return { kind: 'terminated', observation: 'gone', reward: 1, success: true };
      },
      actions: () => ['go'],
      close() {},
    }),
  };
}
`,
);

describe.each(['thread', 'process', 'inline'])("an environment's words (%s)", (isolation) => {
  it('stay out of --json, and reach stderr printable', () => {
    const runs = join(folder, `runs-${isolation}`);
    const set = ['--set', `rollout.isolation=${isolation}`];
    const args = ['rollout', '--env', world, '--policy', 'random', '--episodes', '3', '--runs', runs, ...set, '--json'];
    const { status, stdout, stderr } = longplay(...args);
    expect(status, stderr).toBe(0);
    const lines = stdout.trimEnd().split('\n');
    for (const line of lines) expect(() => JSON.parse(line), line).not.toThrow();
    expect(JSON.parse(lines.at(-1)!)).toMatchObject({ finished: 3 });
    expect(stderr).toContain('�[31mLOUD step go');
    // biome-ignore lint/suspicious/noControlCharactersInRegex: what must not be there
    expect(stderr).not.toMatch(/[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]/);
  });
});

describe('a reader that goes away', () => {
  it.each([['envs'], ['doctor'], ['train', '--help']])('ends `longplay %s %s | head -1` silently', async (...args) => {
    const child = spawn(process.execPath, [main, ...args.filter((arg) => arg !== undefined)]);
    child.stdout.destroy();
    let stderr = '';
    child.stderr.on('data', (chunk) => {
      stderr += chunk;
    });
    expect(await new Promise((resolve) => child.on('close', resolve))).toBe(0);
    expect(stderr).toBe('');
  });
});

const python = spawnSync('python3', ['-c', 'import pty']).status === 0;
if (!python) console.log('skipped: python3 with its pty module is not here, so no terminal is driven');

/** Runs its arguments on a terminal of its own, types the lines of stdin one after each prompt, and leaves with the exit code. */
const DRIVER = `
import os, pty, select, sys, time
typed = sys.stdin.read().splitlines()
pid, fd = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
seen, begin = b'', time.time()
while time.time() - begin < 60:
    ready = select.select([fd], [], [], 0.2)[0]
    if ready:
        try:
            chunk = os.read(fd, 65536)
        except OSError:
            break
        if not chunk:
            break
        seen += chunk
    if typed and seen.rstrip(b' ').endswith(b'>'):
        os.write(fd, (typed.pop(0) + '\\n').encode())
        seen += b'\\n'
    done, status = os.waitpid(pid, os.WNOHANG)
    if done:
        sys.stdout.buffer.write(seen)
        sys.exit(os.waitstatus_to_exitcode(status))
sys.stdout.buffer.write(seen)
for _ in range(100):
    done, status = os.waitpid(pid, os.WNOHANG)
    if done:
        break
    time.sleep(0.1)
else:
    os.kill(pid, 9)
    print('STILL THERE')
sys.exit(os.waitstatus_to_exitcode(status) if done else 99)
`;

describe.skipIf(!python)('longplay play on a terminal', () => {
  const play = (args: readonly string[], lines: readonly string[]) =>
    spawnSync('python3', ['-c', DRIVER, process.execPath, main, 'play', ...args], {
      encoding: 'utf8',
      input: lines.join('\n'),
      timeout: 90_000,
    });

  it('gives back the shell after quit', () => {
    const { status, stdout } = play(['babyai', '--task', '4'], ['?', 'quit']);
    expect(stdout).not.toContain('STILL THERE');
    expect(stdout).toMatch(/14 {2}go to green key 1/);
    expect(status).toBe(0);
  });
  it('gives back the shell when the episode is over', () => {
    const { status, stdout } = play(['babyai', '--task', '4'], ['go to green key 1']);
    expect(stdout).not.toContain('STILL THERE');
    expect(stdout).toMatch(/solved after 1 turn/);
    expect(status).toBe(0);
  });
});
