/** `longplay eval` that is stopped: what was paid for is kept, and `--resume` plays the rest alone. */
import { spawn } from 'node:child_process';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { packageRoot } from '../../src/runtime/module-url.ts';
import { TraceStore } from '../../src/storage/trace-store.ts';
import { type Exchange, type MisbehavingServer, misbehavingServer } from '../support/misbehaving-server.ts';
import { temporaryFolder } from '../support/small-run.ts';

const main = fileURLToPath(new URL('dist/src/cli/main.js', packageRoot));
const small = fileURLToPath(new URL('test/support/small-run.yaml', packageRoot));
const TIMEOUT = { timeout: 90_000 };
const dir = temporaryFolder('eval-resume');
const HORIZON = 2;
let server: MisbehavingServer;
/** Requests that are answered; further ones never are. */
let answered = Number.POSITIVE_INFINITY;
let onSilence = () => {};

const isAnswer = ({ path }: { readonly path: string }) => !path.endsWith('/models');

beforeAll(async () => {
  const content = 'Thought:\nlook\n\nAction:\ninventory';
  const answer = async (exchange: Exchange) => ({
    status: 200,
    json: isAnswer(exchange) ? { choices: [{ message: { content }, finish_reason: 'stop' }] } : { data: [{ id: 'm' }] },
  });
  server = await misbehavingServer(answer, (_, exchange) => {
    if (!isAnswer(exchange) || answered-- > 0) return 'ok';
    onSilence();
    return 'silence';
  });
  writeFileSync(
    join(dir, 'hosted.yaml'),
    `env: { id: textcraft }
horizon: { type: fixed, rounds: ${HORIZON} }
policy:
  kind: openai
  openai: { baseUrl: "${server.url}/v1", concurrency: 1 }
rollout: { concurrentGroups: 1 }
evaluation: { horizons: [${HORIZON}], episodesPerTask: 3, greedy: true, tasks: [3, 5] }
stop: { updates: 1 }
`,
  );
});
afterAll(async () => {
  await server.close();
  rmSync(dir, { recursive: true, force: true });
});

/** Runs a command. @param signal sent once the server does not answer any more */
async function longplay(args: readonly string[], signal?: NodeJS.Signals) {
  const child = spawn(process.execPath, [main, ...args], { cwd: dir, stdio: ['ignore', 'pipe', 'pipe'] });
  onSilence = () => void (signal && child.kill(signal));
  const [out, err] = [child.stdout, child.stderr].map(async (stream) => {
    let text = '';
    for await (const chunk of stream) text += chunk;
    return text;
  });
  const status = await new Promise<number | null>((resolve) => child.on('exit', resolve));
  return { status, out: await out!, err: await err! };
}

/** Requests for answers so far. */
const requests = () => server.log.filter(isAnswer).length;
const counts = (out: string) =>
  (JSON.parse(out) as { evaluations: { name: string; all: { asked: number; episodes: number } }[] }).evaluations.map(
    ({ name, all }) => [name, all.asked, all.episodes],
  );

describe.each(['SIGTERM', 'SIGKILL'] as const)('an evaluation of a hosted model, ended by %s', (signal) => {
  const folder = join('runs', signal);

  it('keeps what was paid for, and goes on with the rest', TIMEOUT, async () => {
    answered = 3 * HORIZON + 1; // three episodes at once, and a turn of the fourth
    const stopped = await longplay(['eval', 'hosted.yaml', '--name', signal, '--json'], signal);
    if (signal === 'SIGTERM') {
      expect(stopped.err).toBe(
        `SIGTERM: finished episodes are kept\n5 episodes are missing; go on with: longplay eval ${folder} --resume\n`,
      );
      expect(counts(stopped.out)).toEqual([
        [`h${HORIZON} sampled`, 6, 3],
        [`h${HORIZON} greedy`, 2, 0],
      ]);
      expect(stopped.status).toBe(1);
    }
    const kept = TraceStore.open(join(dir, folder)).size;
    if (signal === 'SIGTERM') expect(kept).toBe(3);
    expect(kept).toBeGreaterThan(0);

    answered = Number.POSITIVE_INFINITY;
    const before = requests();
    const resumed = await longplay(['eval', folder, '--resume', '--json']);
    expect(resumed.err).toContain(`${kept} episodes are finished already, ${8 - kept} are left\n`);
    expect(counts(resumed.out)).toEqual([
      [`h${HORIZON} sampled`, 6, 6],
      [`h${HORIZON} greedy`, 2, 2],
    ]);
    expect(resumed.status, resumed.err).toBe(0);
    expect(requests() - before).toBe((8 - kept) * HORIZON);

    const again = await longplay(['eval', folder, '--resume', '--json']);
    expect([again.status, again.err]).toEqual([0, '8 episodes are finished already, 0 are left\n']);
    expect(counts(again.out)).toEqual(counts(resumed.out));
    expect(requests() - before).toBe((8 - kept) * HORIZON);
  });
});

it(
  'an evaluation of a hosted model does not count what another model, or other settings, answered',
  TIMEOUT,
  async () => {
    answered = Number.POSITIVE_INFINITY;
    const first = await longplay(['eval', 'hosted.yaml', '--name', 'other', '--json']);
    expect(first.status, first.err).toBe(0);
    const folder = join('runs', 'other');
    const set = ['--set', 'policy.chat.listActions=true'];
    const { err } = await longplay(['eval', folder, '--resume', '--json', ...set]);
    expect(err).toContain('0 episodes are finished already, 8 are left\n');
  },
);

it('a server that is not there leaves no folder', TIMEOUT, async () => {
  const { err, status } = await longplay([
    ...['eval', 'hosted.yaml', '--name', 'gone', '--set', 'policy.openai.baseUrl=http://127.0.0.1:9/v1'],
  ]);
  expect(err).toMatch(/is the server running\?\n$/);
  expect(status).toBe(2);
  expect(existsSync(join(dir, 'runs', 'gone'))).toBe(false);
});

it.each([
  [['hosted.yaml', '--resume'], /longplay eval runs\/eval-hosted --resume\n$/],
  [['hosted.yaml', '--resume', '--set', 'policy.kind=random'], /nothing is kept of a policy that is random/],
  [[join('runs', 'other')], /is an evaluation: --resume goes on with it/],
  [[join('runs', 'other'), '--resume', '--episodes', '2'], /--episodes: an evaluation goes on as it was begun/],
])('is not: %j', TIMEOUT, async (args, message) => {
  const { err, status } = await longplay(['eval', ...args]);
  expect(err).toMatch(message);
  expect(status).toBe(2);
});

it('an evaluation of a run counts its own episodes alone: of the same plan, flags and weights', TIMEOUT, async () => {
  const traced = ['--set', 'trace.maxShare=1', '--set', 'evaluation.tasks=[3, 5]', '--set', 'stop={updates: 1}'];
  const trained = await longplay(['train', small, '--name', 'trained', ...traced]);
  expect(trained.status, trained.err).toBe(0);
  const evaluate = async (...args: string[]) => {
    const { status, err, out } = await longplay(['eval', 'runs/trained', '--horizon', '2', '--json', ...args]);
    expect(status, err).toBe(0);
    return { out, left: / (\d+) are left/.exec(err)?.[1] };
  };
  const whole = await evaluate('--tasks', ids('3 5'));
  expect(await evaluate('--tasks', ids('3 5'), '--resume')).toEqual({ out: whole.out, left: '0' });
  const more = await evaluate('--tasks', ids('3 5 7'), '--resume');
  expect(more.left).toBe(String(perTask(more.out)));
  expect((await evaluate('--tasks', ids('3 5'), '--resume', '--set', 'seed=2')).left).toBe(
    String(2 * perTask(more.out)),
  );
  expect((await evaluate('--tasks', ids('3 5'), '--resume', '--episodes', '7')).left).not.toBe('0');
});

/** Episodes of one task over all evaluations of a result. */
function perTask(out: string): number {
  const { evaluations } = JSON.parse(out) as { evaluations: { all: { asked: number; tasks: number } }[] };
  return evaluations.reduce((sum, { all }) => sum + all.asked / all.tasks, 0);
}

/** A file of task ids. */
function ids(text: string): string {
  const path = join(dir, `${text.replaceAll(' ', '-')}.txt`);
  writeFileSync(path, text);
  return path;
}
