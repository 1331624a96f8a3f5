/**
 * SIGKILL at any moment: before the first checkpoint, while one is written, while a run resumes. Whatever is on the disk
 * then, the run goes on from its newest whole checkpoint, or reports that there is none; what it has recorded stays
 * readable; and it ends as if nothing had happened.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, it } from 'vitest';
import { stringify } from 'yaml';
import type { SchedulerState } from '../../actors/scheduler/protocol.ts';
import { countUnaccounted } from '../../src/core/failure.ts';
import type { Rng } from '../../src/core/rng.ts';
import { loadNewestOf } from '../../src/learning/learner/run-checkpoint.ts';
import { packageRoot } from '../../src/runtime/module-url.ts';
import { listCheckpoints } from '../../src/storage/checkpoint.ts';
import { TraceStore } from '../../src/storage/trace-store.ts';
import { smallConfig } from '../support/small-run.ts';
import { amount, printFigure, rngOf } from './campaign.ts';

const KILLS = amount(200, 3);
/** Kills that one run suffers before it may end. */
const KILLS_PER_RUN = 8;
/** Kill before which a second process tries to resume the run as well. */
const RIVAL_AT = 1;

const main = fileURLToPath(new URL('dist/src/cli/main.js', packageRoot));
const folder = mkdtempSync(join(tmpdir(), 'longplay-attack-kills-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const MOMENTS = ['early', 'writing', 'later'] as const;
type Moment = (typeof MOMENTS)[number];

/** Waits for the moment of a kill. */
async function wait(moment: Moment, rng: Rng, run: string, child: ChildProcess): Promise<void> {
  const checkpoints = join(run, 'checkpoints');
  const over = () => child.exitCode !== null || child.signalCode !== null;
  switch (moment) {
    case 'early':
      await sleep(rng.int(1200));
      return;
    case 'writing': {
      const written = () => existsSync(checkpoints) && readdirSync(checkpoints).some((name) => name.startsWith('.'));
      for (let i = 0; i < 2000 && !written() && !over(); i++) await sleep(1);
      return;
    }
    case 'later': {
      const rows = () => (existsSync(join(run, 'metrics.jsonl')) ? statSync(join(run, 'metrics.jsonl')).size : 0);
      const before = rows();
      for (let i = 0; i < 3000 && rows() <= before && !over(); i++) await sleep(10);
      await sleep(rng.int(1000));
    }
  }
}

/** Waits until a process has the run, and a checkpoint is there that another could resume. @returns false where it ended before that */
async function holdsRun(run: string, child: ChildProcess): Promise<boolean> {
  const holder = () => {
    try {
      return (JSON.parse(readFileSync(join(run, 'lock.json'), 'utf8')) as { pid: number }).pid;
    } catch {
      return undefined;
    }
  };
  const checkpoints = join(run, 'checkpoints');
  while (holder() !== child.pid || !existsSync(checkpoints) || listCheckpoints(checkpoints).length === 0) {
    if (child.exitCode !== null || child.signalCode !== null) return false;
    await sleep(20);
  }
  return true;
}

/** Holds what a kill left to be readable, and to be the state of a run. */
function readable(run: string): void {
  if (existsSync(join(run, 'metrics.jsonl'))) {
    const whole = readFileSync(join(run, 'metrics.jsonl'), 'utf8').split('\n').slice(0, -1);
    const updates = whole.map((line) => (JSON.parse(line) as { update: number }).update);
    expect(updates).toEqual(updates.map((_, i) => i + 1));
  }
  if (existsSync(join(run, 'traces'))) {
    const store = TraceStore.follow(run);
    for (let at = 0; at < store.size; at++) store.read(at);
    const played = store.episodes.filter(({ purpose }) => purpose === 'train');
    expect(new Set(played.map(({ episode }) => episode)).size).toBe(played.length);
    for (const { at } of played) {
      const members = store.groupOf(at);
      expect(members.length).toBeLessThanOrEqual(4); // fewer where the kill came while they were written
      expect(new Set(members.map(({ index, seed }) => `${index} ${seed}`)).size).toBe(1);
    }
  }
  if (listCheckpoints(join(run, 'checkpoints')).length === 0) return;
  const loaded = loadNewestOf(run);
  expect(loaded.warnings).toEqual([]);
  const { rollout } = loaded.state as unknown as { rollout: SchedulerState };
  expect(countUnaccounted(rollout.accounting)).toBe(0);
}

it(`${KILLS} kills cost no run more than its last checkpoint interval`, { timeout: 3_600_000 }, async () => {
  const moments: Record<Moment, number> = { early: 0, writing: 0, later: 0 };
  let beforeFirst = 0;
  let resumes = 0;
  let kills = 0;
  let rivals = 0;
  for (let n = 0; kills < KILLS; n++) {
    const rng = rngOf('kills', n);
    const name = `run${n}`;
    const run = join(folder, name);
    const config = smallConfig({
      stop: { updates: 100_000 },
      checkpoint: { everyUpdates: 1 + rng.int(4), keep: 1 + rng.int(3) },
      rollout: { groupSize: 4, concurrentGroups: 4, maxBatch: 16, isolation: rng.pick(['thread', 'process']) },
      trace: { rotateBytes: 20_000, maxShare: 1 },
    });
    const file = join(folder, `${name}.yaml`);
    writeFileSync(file, stringify(config));
    let dealt: Moment[] = []; // each of them before any comes again
    for (let k = 0; k < KILLS_PER_RUN && kills < KILLS; k++) {
      const args = existsSync(run) ? ['--resume', run] : [file, '--runs', folder, '--name', name];
      if (existsSync(run)) resumes++;
      const child = spawn(process.execPath, [main, 'train', ...args], { stdio: ['ignore', 'ignore', 'pipe'] });
      let stderr = '';
      child.stderr.on('data', (text) => {
        stderr += text;
      });
      const gone = new Promise((resolve) => child.once('close', resolve));
      if (k === RIVAL_AT && (await holdsRun(run, child))) {
        rivals++;
        const rival = spawnSync(process.execPath, [main, 'train', '--resume', run], {
          encoding: 'utf8',
          timeout: 120_000,
        });
        expect(rival.stderr).toMatch(/one process writes a run at a time/);
        expect(rival.status).toBe(2);
      }
      if (dealt.length === 0) dealt = rng.shuffle(MOMENTS);
      const moment = dealt.pop()!;
      await wait(moment, rng, run, child);
      moments[moment]++;
      child.kill('SIGKILL');
      await gone;
      kills++;
      expect(stderr).not.toMatch(/^\s+at |internal error/m);
      readable(run);
      if (child.signalCode === null) {
        // It had ended by itself: there was nothing to go on from yet.
        expect(stderr).toMatch(/there is no checkpoint; nothing was started over/);
        expect(child.exitCode).toBe(2);
        beforeFirst++;
        rmSync(run, { recursive: true, force: true });
      }
    }
    if (existsSync(run) && listCheckpoints(join(run, 'checkpoints')).length > 0) finish(run);
    rmSync(run, { recursive: true, force: true });
  }
  expect(Object.values(moments)).not.toContain(0);
  printFigure(
    `kills: ${kills} (${moments.early} early, ${moments.writing} while a checkpoint was written, ${moments.later} later), ${resumes} resumes, ${rivals} rivals refused, ${beforeFirst} found no checkpoint yet`,
  );
});

/** Lets a run end: two updates more, every row there once, all episodes accounted for. */
function finish(run: string): void {
  const kept = listCheckpoints(join(run, 'checkpoints'))[0]!;
  const stop = `stop={updates: ${kept + 2}}`;
  const { status, stderr } = spawnSync(process.execPath, [main, 'train', '--resume', run, '--set', stop, '--json'], {
    encoding: 'utf8',
    timeout: 120_000,
  });
  expect(status, stderr).toBe(0);
  expect(stderr).toContain(`resuming from update ${kept}`);
  readable(run);
  const rows = readFileSync(join(run, 'metrics.jsonl'), 'utf8').trim().split('\n');
  expect(rows).toHaveLength(kept + 2);
  expect(existsSync(join(run, 'lock.json'))).toBe(false);
}
