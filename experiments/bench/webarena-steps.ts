/**
 * Rates of WebArena's own sites: oracles' actions played again in process (with the observation's text every step), memory
 * of live sessions, and, where a Chromium is, whole steps of the browser driver and its observation beside the original's
 * way of asking for every rectangle by itself.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { EmbeddedBrowser } from '../../envs/webarena/drivers/embedded-browser.ts';
import { findChromium } from '../../envs/webarena/drivers/launch.ts';
import { EmbeddedWebArena } from '../../envs/webarena/env.ts';
import { oracle } from '../../envs/webarena/oracle.ts';
import type { Session, TimeStep } from '../../src/core/env.ts';
import type { Task } from '../../src/core/task.ts';
import { bytesInUse } from '../../src/world/conformance/measure.ts';
import type { Figure } from './contract.ts';
import { median } from './median.ts';

const OPTIONS = { fidelity: 'corrected', dialect: '2023' } as const;
/** The fact sheet's step of the original Python: 0.6 to 2.7 s, here its quickest. */
const ORIGINAL = { name: "the original's, one page, its quickest", value: 1 / 0.6 };
const TASKS = 24;
const LIVE = 1000;
const CONTEXTS = 8;

interface Played {
  readonly task: Task;
  readonly actions: readonly string[];
}

/** Measures WebArena's rates. */
export async function webarenaSteps(): Promise<Figure[]> {
  const env = new EmbeddedWebArena(OPTIONS);
  const played = await readRecorded(env);
  const rates: number[] = [];
  for (let run = 0; run < 4; run++) rates.push(await rate(env, played, 1500));
  const figures: Figure[] = [
    {
      name: 'WebArena in process, one thread, whole episodes',
      value: median(rates.slice(1)),
      unit: 'steps/s',
      reference: ORIGINAL,
    },
    { name: `WebArena, memory of ${LIVE} live sessions`, value: (await memory(env)) / 2 ** 20, unit: 'MiB' },
  ];
  return findChromium() === undefined ? figures : [...figures, ...(await browserFigures(played))];
}

async function readRecorded(env: EmbeddedWebArena): Promise<Played[]> {
  const all: Played[] = [];
  for (let i = 0; i < TASKS; i++) {
    const task = { env: 'webarena', index: 372 + 2 * i, seed: 0 };
    const session = await env.open(task);
    const next = oracle(task);
    const actions: string[] = [];
    let step: TimeStep = session.first;
    while (step.kind !== 'terminated') {
      actions.push(next(step)!);
      step = await session.step(actions.at(-1)!);
    }
    all.push({ task, actions });
  }
  return all;
}

/** Steps a second over about `ms` milliseconds. */
async function rate(env: EmbeddedWebArena, played: readonly Played[], ms: number): Promise<number> {
  const began = performance.now();
  let steps = 0;
  for (let n = 0; performance.now() - began < ms; n++) {
    const { task, actions } = played[n % played.length]!;
    const session = await env.open(task);
    for (const action of actions) await session.step(action);
    await session.close();
    steps += actions.length;
  }
  return (1000 * steps) / (performance.now() - began);
}

async function memory(env: EmbeddedWebArena): Promise<number> {
  const open = async (n: number) => {
    const session = await env.open({ env: 'webarena', index: (n % 40) * 9, seed: 0 });
    await session.step('scroll [down]');
    return session;
  };
  for (let n = 0; n < 80; n++) await (await open(n)).close(); // worlds and pages first
  const before = bytesInUse();
  const sessions: Session[] = [];
  for (let n = 0; n < LIVE; n++) sessions.push(await open(n));
  const held = bytesInUse() - before;
  for (const session of sessions) await session.close();
  return held;
}

async function browserFigures(played: readonly Played[]): Promise<Figure[]> {
  const browser = await EmbeddedBrowser.start();
  try {
    const env = new EmbeddedWebArena(OPTIONS, browser.openDriver);
    const whole = await rate(env, played.slice(0, 6), 8000);
    const { snapshot, oneByOne } = await browser.compareObservations('http://shop.test/category/kitchen', 5);
    const sessions = await Promise.all(
      Array.from({ length: CONTEXTS }, (_, n) => env.open({ env: 'webarena', index: n * 40, seed: 0 })),
    );
    const memoryOfAll = chromiumBytes();
    for (const session of sessions) await session.close();
    return [
      { name: 'WebArena in Chromium, one context, whole episodes', value: whole, unit: 'steps/s', reference: ORIGINAL },
      {
        name: 'WebArena in Chromium, rectangles of a page by one snapshot',
        value: 1000 / snapshot,
        unit: 'pages/s',
        reference: { name: 'two calls a node one by one, same page', value: 1000 / oneByOne },
      },
      ...(memoryOfAll === undefined
        ? []
        : [{ name: `Chromium with ${CONTEXTS} contexts, PSS`, value: memoryOfAll / 2 ** 20, unit: 'MiB' }]),
    ];
  } finally {
    await browser.dispose();
  }
}

/** Proportional set size of this process's browser and its children; undefined where there is no /proc. */
function chromiumBytes(): number | undefined {
  try {
    const parents = new Map<number, number>();
    for (const name of readdirSync('/proc').filter((one) => /^\d+$/.test(one))) {
      const stat = readOr(`/proc/${name}/stat`);
      const parent = /^\d+ \(.*\) \S (\d+)/s.exec(stat)?.[1];
      if (parent !== undefined) parents.set(Number(name), Number(parent));
    }
    const isBelow = (pid: number): boolean => pid === process.pid || (parents.has(pid) && isBelow(parents.get(pid)!));
    const below = [...parents.keys()].filter((pid) => pid !== process.pid && isBelow(pid));
    const kilobytes = below.map((pid) => Number(/^Pss:\s+(\d+)/m.exec(readOr(`/proc/${pid}/smaps_rollup`))?.[1] ?? 0));
    return 1024 * kilobytes.reduce((sum, one) => sum + one, 0);
  } catch {
    return undefined;
  }
}

/** A file of /proc; empty where the process has ended. */
function readOr(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
