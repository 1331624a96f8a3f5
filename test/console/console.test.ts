/** The console: frames against fixtures, in a real terminal (tmux), and where there is none. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { Subject } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { WorkerRow } from '../../src/cluster/worker-report.ts';
import { openConsole } from '../../src/console/console.ts';
import { advise, warnings } from '../../src/console/diagnose.ts';
import { frame } from '../../src/console/frame.ts';
import { plainLine } from '../../src/console/plain.ts';
import { type ConsoleState, reduce, startState } from '../../src/console/state.ts';
import { TerminalWriter } from '../../src/console/terminal.ts';
import { cut, lineWidth, render, span, widthOf } from '../../src/console/text.ts';
import { SimulatedClock } from '../../src/core/clock.ts';
import { printable } from '../../src/core/printable.ts';
import type { MetricsRow } from '../../src/metrics/metric-table.ts';
import { workerUrl } from '../../src/runtime/module-url.ts';
import { type Mood, scene, sceneConfig } from '../support/console-scene.ts';

const fixtures = new URL('./fixtures/', import.meta.url);

function played(updates?: number, mood?: Mood): ConsoleState {
  let state = startState(sceneConfig, 'scene');
  for (const event of scene(updates, mood)) state = reduce(state, event);
  return state;
}

function text(state: ConsoleState, width: number, height: number): string {
  return frame(state, { width, height, cores: 4 })
    .map((line) => `${render(line, false)}\n`)
    .join('');
}

/** A rollout half way: what the server did in the place of what was learnt. */
function rolledOut(): ConsoleState {
  const { learner, ...config } = sceneConfig;
  const policy = { kind: 'openai', openai: { concurrency: 16 } };
  const horizon = { type: 'fixed', rounds: 20 } as const;
  const start = startState({ ...config, learner, policy, horizon, episodes: 200 }, 'rollout-textcraft');
  return [...scene(60)].reduce((state, event) => {
    if (event.type !== 'progress') return reduce(state, event);
    const { progress } = event;
    const remote = {
      requests: 9 * progress.episodes,
      retries: { '429': 3, timeout: 1 },
      failures: 1,
      formatErrors: 12,
      promptTokens: 1_234_567,
      completionTokens: 45_678,
      cost: 1.25,
      latencyMs: 9 * 412 * progress.episodes,
      inFlight: 16,
    };
    return reduce(state, { type: 'progress', progress: { ...progress, horizon: 20, episodes: 100, remote } });
  }, start);
}

/** A run whose groups three workers play, one of them gone. */
function clustered(): ConsoleState {
  const worker = (name: string, over: Partial<WorkerRow>): WorkerRow => {
    const rates = { groupsPerSecond: 5.7, tokensPerSecond: 2310 };
    const counts = { slots: 16, held: 12, waiting: 0, finished: 400, version: 160 };
    return { format: 1, name, state: 'here', silentMs: 300, refused: 0, ...counts, ...rates, ...over };
  };
  const workers = [
    worker('rack-1-4711', {}),
    worker('rack-2-813', { version: 157, refused: 2 }),
    worker('rack-3-99', { state: 'silent', silentMs: 7400, groupsPerSecond: 0, tokensPerSecond: 0 }),
  ];
  const counts = { outstanding: 24, results: 900, duplicates: 3, reissued: 1, refused: 2, verified: 9 };
  const load = { queued: 4, held: 20, results: 2, resultBytes: 9000, roundTripMs: 140 };
  return reduce(played(), { type: 'cluster', facts: { workers, counts, load } });
}

/** Compares with a kept screen; `UPDATE_FIXTURES=1` writes it anew, to be looked at. */
function expectFixture(name: string, screen: string): void {
  const file = new URL(`${name}.txt`, fixtures);
  if (process.env.UPDATE_FIXTURES === '1') {
    mkdirSync(fixtures, { recursive: true });
    writeFileSync(file, screen);
  }
  expect(screen).toBe(readFileSync(file, 'utf8'));
}

describe('a frame', () => {
  it('at 80 × 24', () => expectFixture('learning-80x24', text(played(), 80, 24)));
  it('at 120 × 40', () => expectFixture('learning-120x40', text(played(), 120, 40)));
  it('of a collapsed policy', () => expectFixture('collapsed-80x24', text(played(160, 'collapsed'), 80, 24)));
  it('before anything has run', () => expectFixture('start-80x24', text(startState(sceneConfig, 'scene'), 80, 24)));

  it('of a cluster, a row a worker, and what is wrong with it', () => {
    expectFixture('cluster-120x40', text(clustered(), 120, 40));
    const small = text(clustered(), 80, 24);
    expect(small).toMatch(/rack-1-4711 +12\/16/);
    expect(small).toContain('2 workers have 32 slots');
  });

  it('of a rollout with a model behind a server', () => expectFixture('rollout-80x24', text(rolledOut(), 80, 24)));

  it('never leaves its size, whatever it is', () => {
    const { cluster } = clustered();
    const state = reduce(played(30, 'collapsed'), { type: 'cluster', facts: cluster! });
    fc.assert(
      fc.property(fc.integer({ min: 20, max: 300 }), fc.integer({ min: 1, max: 80 }), (width, height) => {
        const lines = frame(state, { width, height, cores: 2 });
        expect(lines.length).toBeLessThanOrEqual(height);
        for (const line of lines) expect(lineWidth(line)).toBeLessThanOrEqual(width);
      }),
      { numRuns: 40 },
    );
  });

  it('shows names from the outside without obeying them', () => {
    const row: MetricsRow = {
      update: 1,
      episodesByLabel: { '\x1b[2J\x07evil': 1 },
      successByLabel: { '\x1b[2J\x07evil': 1 },
    };
    const state = reduce(startState(sceneConfig, 'a\x1b]0;b'), { type: 'row', row });
    const screen = text(state, 80, 24);
    expect(screen).toContain('evil');
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
    expect(screen).not.toMatch(/[\x00-\x09\x0b-\x1f]/);
  });
});

describe('text', () => {
  it('cuts to columns, wide characters counting two', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.nat(40), (raw, width) => {
        expect(widthOf(cut(printable(raw), width))).toBeLessThanOrEqual(width);
      }),
    );
    expect(cut('漢字', 3)).toBe('漢…');
  });

  it('has no escape codes without colour', () => {
    expect(render([span('a', 'red'), span('b')], false)).toBe('ab');
    expect(render([span('a', 'red'), span('b')], true)).toBe('\x1b[31ma\x1b[0mb');
  });
});

describe('warnings', () => {
  it('stay silent while it learns', () => expect(warnings(played().rows, 'textcraft')).toEqual([]));

  it('name a collapse: one action, loops, no entropy, no variance', () => {
    const found = warnings(played(60, 'collapsed').rows, 'textcraft').join('\n');
    expect(found).toMatch(/one action is 97 %/);
    expect(found).toMatch(/episodes loop/);
    expect(found).toMatch(/entropy is gone/);
    expect(found).toMatch(/teach nothing; nearly none is solved/);
  });

  it('name answers that are not understood from the first groups on', () => {
    const [row] = played(1).rows;
    expect(warnings([{ ...row!, formatErrors: 0.8 }], 'textcraft')).toEqual([
      expect.stringMatching(/^80 % of answers name no action: .*policy\.masked=true/),
    ]);
    expect(warnings([{ ...row!, formatErrors: 0.4 }], 'textcraft')).toEqual([]);
  });

  it('advise what helps a failing environment, and a failing agent', () => {
    const rows = played(30).rows.map((row, i) => ({ ...row, launched: 100 * i, failed: 20 * i }));
    expect(warnings(rows, 'textcraft')).toEqual(['20 % of episodes fail: run `longplay check-env`']);
    expect(warnings(rows, 'agent')).toEqual([
      expect.stringMatching(/^20 % of episodes fail: play it once by `longplay rollout --agent/),
    ]);
  });

  it('do not cry over one bad update', () => {
    const rows = [...played(30).rows, { ...played(30).rows.at(-1)!, topAction: 1, repeatedTurns: 1 }];
    expect(warnings(rows, 'textcraft')).toEqual([]);
  });
});

describe('the knob', () => {
  const none = { env: 0, batchWait: 0, prefill: 0, decode: 0, learner: 0, group: 0, messages: 0 };
  it.each([
    ['env', 'rollout.envThreads'],
    ['batchWait', 'rollout.maxBatch'],
    ['decode', 'engine.inferenceThreads'],
    ['learner', 'engine.learnerThreads'],
    ['messages', 'rollout.concurrentGroups'],
  ] as const)('for %s is %s', (part, key) => {
    expect(advise({ ...none, [part]: 1 }, sceneConfig, 4)?.key).toBe(key);
  });

  it('is the next one where the first cannot be turned further', () => {
    expect(advise({ ...none, decode: 0.6, learner: 0.4 }, sceneConfig, 2)?.key).toBe('engine.inferenceThreads');
    const full = { ...sceneConfig, engine: { ...sceneConfig.engine, inferenceThreads: 2, learnerThreads: 2 } };
    expect(advise({ ...none, decode: 0.6, learner: 0.4 }, full, 2)?.key).toBe('learner.epochs');
  });

  it('for the learner is its replicas, where a minibatch has passes to share', () => {
    const passes = { ...sceneConfig, learner: { ...sceneConfig.learner, maxTokens: 1000 } };
    expect(advise({ ...none, learner: 1 }, passes, 2)).toMatchObject({ key: 'engine.learnerReplicas', from: 1, to: 2 });
    const full = { ...passes, engine: { ...passes.engine, learnerReplicas: 2 } };
    expect(advise({ ...none, learner: 1 }, full, 2)?.key).toBe('learner.epochs');
  });
});

describe('the knob of a policy behind a server', () => {
  const waits = { env: 0, batchWait: 0.7, prefill: 0, decode: 0.2, learner: 0, group: 0, messages: 0.1 };
  const behind = (concurrency: number) => ({ ...sceneConfig, policy: { kind: 'openai', openai: { concurrency } } });

  it('is the number of concurrent requests', () => {
    expect(advise(waits, behind(16), 4)).toMatchObject({ key: 'policy.openai.concurrency', from: 16, to: 32 });
    expect(advise(waits, behind(128), 4)).toMatchObject({ key: '--concurrency', from: 128, to: 256 });
    expect(advise({ ...waits, batchWait: 0, env: 0.7 }, behind(16), 4)).toBeUndefined();
  });
});

describe('without a terminal', () => {
  it('writes one key=value line per interval and no escape code', () => {
    const { lines, clock, metrics$, console } = opened({});
    metrics$.next({ update: 1, success: 0.5, successByLabel: { 'depth 1': 0.5 } });
    metrics$.next({ update: 2, success: 0.6 });
    clock.advance(5000);
    clock.advance(5000); // nothing new: no line
    metrics$.next({ update: 3, success: 0.7 });
    console.close();
    expect(lines()).toEqual([
      'update=1 success=0.5 success[depth_1]=0.5',
      'update=2 success=0.6',
      'update=3 success=0.7',
    ]);
  });

  it('writes every row as JSON with `--json`', () => {
    const { lines, metrics$, console } = opened({ json: true });
    metrics$.next({ update: 1, time: { env: 1 } });
    metrics$.next({ update: 2 });
    console.close();
    expect(lines().map((line) => JSON.parse(line))).toEqual([{ update: 1, time: { env: 1 } }, { update: 2 }]);
  });

  it('keeps one line one line', () => {
    expect(plainLine({ update: 1, successByLabel: { 'a b=c\nd': 1 } })).toBe('update=1 success[a_b_c_d]=1');
  });

  it('outlives a reader that goes away', () => {
    const out = new Writable({ write: (_, __, done) => done(Object.assign(new Error('EPIPE'), { code: 'EPIPE' })) });
    const { metrics$, console } = opened({ out });
    metrics$.next({ update: 1 });
    console.close();
  });
});

describe('on a terminal', () => {
  it('repaints at most four times a second, only what changed, and gives the screen back', () => {
    const { chunks, clock, metrics$, console } = opened({ tty: true });
    for (let i = 0; i < 100; i++) {
      metrics$.next({ update: i, success: i / 100 });
      clock.advance(10);
    }
    expect(chunks().length).toBeLessThanOrEqual(5);
    const before = chunks().length;
    clock.advance(1000);
    expect(chunks().length).toBe(before); // nothing changed, nothing written
    console.close();
    console.close();
    const all = chunks().join('');
    expect(all.split('\x1b[?25l').length).toBe(2);
    expect(all.split('\x1b[?25h').length).toBe(2);
    expect(all.indexOf('\x1b[?1049l')).toBeGreaterThan(all.indexOf('\x1b[?1049h'));
  });

  const tmux = spawnSync('tmux', ['-V']).status === 0;
  const main = fileURLToPath(workerUrl(new URL('../support/console-scene-main.ts', import.meta.url)));
  if (!tmux) console.log('skipped: tmux is not installed, so no real terminal is driven');
  it.skipIf(!tmux || !existsSync(main))(
    'fills a real one, follows a resize, and leaves it on Ctrl-C',
    { timeout: 60_000 },
    async () => {
      const server = `longplay-test-${process.pid}`;
      const run = (...args: string[]) => spawnSync('tmux', ['-L', server, ...args], { encoding: 'utf8' }).stdout;
      const screen = () => `${run('capture-pane', '-p').trimEnd()}\n`;
      const until = async (expected: string) => {
        for (let i = 0; i < 100 && screen() !== expected; i++) await sleep(100);
        expect(screen()).toBe(expected);
      };
      const kept = (name: string) => readFileSync(new URL(`${name}.txt`, fixtures), 'utf8');
      run('new-session', '-d', '-x', '80', '-y', '24', `NO_COLOR=1 ${process.execPath} ${main}; echo left; sleep 60`);
      try {
        await until(kept('learning-80x24'));
        run('resize-window', '-x', '120', '-y', '40');
        await until(kept('learning-120x40'));
        run('resize-window', '-x', '80', '-y', '24');
        await until(kept('learning-80x24'));
        const flags = () => run('display', '-p', '#{cursor_flag} #{alternate_on}').trim();
        expect(flags()).toBe('0 1');
        run('send-keys', 'C-c');
        for (let i = 0; i < 100 && flags() === '0 1'; i++) await sleep(100);
        expect(flags()).toBe('1 0');
        for (let i = 0; i < 100 && !screen().includes('left'); i++) await sleep(100);
        expect(screen()).toMatch(/update=160 /);
      } finally {
        run('kill-server');
      }
    },
  );
});

it('answers that are not understood are named once where there is no screen, and nothing else is', () => {
  const { metrics$, console, lines } = opened({});
  const [row] = played(1).rows;
  const collapsed = { ...row!, zeroVarianceGroups: 1, topAction: 1 };
  for (const [i, formatErrors] of [0.2, 0.8, 0.9, 0.7].entries())
    metrics$.next({ ...collapsed, update: i, formatErrors });
  console.close();
  expect(lines().filter((line) => !line.startsWith('update='))).toEqual([
    // The mean of what was seen so far.
    expect.stringMatching(/^(50|53|63) % of answers name no action/),
  ]);
});

function opened({ out, json = false, tty = false }: { out?: Writable; json?: boolean; tty?: boolean }) {
  const written: string[] = [];
  const sink = Object.assign(
    new Writable({
      write(chunk, _, done) {
        written.push(String(chunk));
        done();
      },
    }),
    tty ? { isTTY: true, columns: 80, rows: 24 } : {},
  );
  const clock = new SimulatedClock();
  const metrics$ = new Subject<MetricsRow>();
  const options = {
    out: new TerminalWriter(out ?? sink),
    notices: new TerminalWriter(sink),
    json,
    clock,
    name: 'scene',
    config: sceneConfig,
    color: false,
  };
  const console = openConsole(metrics$, { ...options, cores: 4 });
  return { clock, metrics$, console, chunks: () => written, lines: () => written.join('').trimEnd().split('\n') };
}
