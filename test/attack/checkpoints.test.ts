/**
 * Checkpoints whose hashes are right and whose state is not: each is passed over for the one before, in one line, or a
 * run goes on from it and ends by its own rule with every episode accounted for.
 */
import { createHash } from 'node:crypto';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { SchedulerState } from '../../actors/scheduler/protocol.ts';
import { messageOf } from '../../src/core/errors.ts';
import { countUnaccounted } from '../../src/core/failure.ts';
import { loadNewestOf } from '../../src/learning/learner/run-checkpoint.ts';
import { runStateOf } from '../../src/learning/learner/run-state.ts';
import { checkRunContent } from '../../src/learning/learner/run-state-schema.ts';
import { restore } from '../../src/learning/schedule/horizon-schedule.ts';
import type { Disk } from '../../src/storage/atomic-file.ts';
import { CHECKPOINT_FORMAT, type LoadedCheckpoint, loadNewest } from '../../src/storage/checkpoint.ts';
import { inFolder, toyConfig, withToyRun } from '../support/toy-run.ts';
import { amount, campaign, expectMistake, orMistake, printFigure } from './campaign.ts';
import { type Json, mutated, mutatedJson } from './mutations.ts';

const COUNT = amount(100_000, 100);
const RESUMED = amount(200, 2);

const config = toyConfig('chain', {
  horizon: { type: 'adaptive', rounds: [4, 8] },
  rollout: { groupSize: 2, concurrentGroups: 4 },
  learner: {
    groupsPerUpdate: 2,
    maxLag: 1,
    kl: { in: 'loss', control: { type: 'adaptive', coefficient: 0.01, target: 0.02, window: 20 } },
  },
  tasks: { sampling: { type: 'learnable' } },
  checkpoint: { everyUpdates: 2, keep: 2 },
  stop: { updates: 4 },
});

/** Hashes of the files that are the same in every attack. */
const hashes = new WeakMap<Uint8Array, string>();

function sha256(bytes: Uint8Array | string): string {
  if (typeof bytes === 'string') return createHash('sha256').update(bytes).digest('hex');
  let hash = hashes.get(bytes);
  if (hash === undefined) hashes.set(bytes, (hash = createHash('sha256').update(bytes).digest('hex')));
  return hash;
}

/** Manifest that proves these files to be whole; written anew here, so that the attack does not depend on what it attacks. */
function manifestOf(update: number, files: Readonly<Record<string, Uint8Array>>): string {
  const entries = Object.entries(files).map(([name, bytes]) => ({ name, bytes: bytes.length, sha256: sha256(bytes) }));
  const manifest = { format: CHECKPOINT_FORMAT, update, files: entries };
  return `${JSON.stringify({ ...manifest, sha256: sha256(JSON.stringify(manifest)) }, null, 2)}\n`;
}

/** A disk in memory that only reads. */
function memoryDisk(folders: Readonly<Record<string, Readonly<Record<string, Uint8Array>>>>): Disk {
  const none = (): never => {
    throw new Error('this disk is only read');
  };
  return {
    makeFolder: none,
    list: () => Object.keys(folders),
    read(path) {
      const [folder, name] = path.split('/').slice(-2);
      return folders[folder!]![name!]!;
    },
    write: none,
    rename: none,
    remove: none,
    syncFolder: none,
  };
}

/** Files of the two newest checkpoints of a run. */
async function recorded(dir: string) {
  await withToyRun(config, dir, async ({ run }) => {
    await run.train();
    await run.save();
  });
  const filesOf = (update: number) => {
    const read = (name: string) => new Uint8Array(readFileSync(join(dir, 'checkpoints', String(update), name)));
    return { 'tensors.safetensors': read('tensors.safetensors'), 'state.json': read('state.json') };
  };
  return { older: filesOf(2), newer: filesOf(4) };
}

it(`${COUNT} checkpoints with right hashes are taken, or passed over in one line`, { timeout: 3_600_000 }, () =>
  inFolder(async (dir) => {
    const { older, newer } = await recorded(dir);
    const state = JSON.parse(new TextDecoder().decode(newer['state.json'])) as Json;
    const before = { ...older, 'manifest.json': new TextEncoder().encode(manifestOf(2, older)) };
    let passed = 0;
    await campaign('checkpoints', COUNT, (rng) => {
      const files = { ...newer, 'state.json': new TextEncoder().encode(mutatedJson(state, rng)) };
      const disk = memoryDisk({
        2: before,
        4: { ...files, 'manifest.json': new TextEncoder().encode(manifestOf(4, files)) },
      });
      const loaded = loadNewest('checkpoints', disk, checkRunContent);
      if (loaded.update === 2) {
        passed++;
        expect(loaded.warnings).toHaveLength(1);
        expect(loaded.warnings[0]).toMatch(/^checkpoint \S+ cannot be used and was passed over: [^\n]{5,600}$/);
        return;
      }
      const run = orMistake(() => runStateOf<SchedulerState, unknown>(loaded));
      expect(countUnaccounted(run!.rollout.accounting)).toBe(0);
      expect(run!.rollout.quarantined.every(Number.isSafeInteger)).toBe(true);
      orMistake(() => restore(config.horizon, run!.horizon));
    });
    printFigure(`checkpoints: ${passed} of ${COUNT} passed over`);
    expect(passed).toBeGreaterThan(COUNT / 3);
  }),
);

it('what is known to make no sense is passed over, each with its reason', { timeout: 120_000 }, () =>
  inFolder(async (dir) => {
    const { older, newer } = await recorded(dir);
    type State = {
      version: number;
      identity: { model: { hiddenSize: number } };
      rollout: {
        running: {
          group: number;
          task: object;
          horizon: number;
          finished: object[];
          running: { episode: number }[];
        }[];
        delivered: object[];
        nextEpisode: number;
        nextGroup: number;
        quarantined: number[];
        accounting: { launched: number; trained: number; inFlight: number };
      };
    };
    const good = new TextDecoder().decode(newer['state.json']);
    expect((JSON.parse(good) as State).rollout.running.length, 'or little is tried').toBeGreaterThan(0);
    const reasonOf = (files: Readonly<Record<string, Uint8Array>>) => {
      const disk = memoryDisk({
        2: { ...older, 'manifest.json': new TextEncoder().encode(manifestOf(2, older)) },
        4: { ...files, 'manifest.json': new TextEncoder().encode(manifestOf(4, files)) },
      });
      return loadNewest('checkpoints', disk, checkRunContent).warnings.join();
    };
    /** A running group as if its episodes had finished, with these numbers. */
    const delivery = ({ running }: State['rollout'], episodes: readonly number[], turns: readonly object[] = []) => {
      const { group, task, horizon } = running[0]!;
      const over = { attempt: 1, actionTable: ['x'], turns, finalObservation: '', end: 'truncated', success: false };
      const trajectories = episodes.map((episode) => ({ episode, group, task, horizon, ...over }));
      return { group: { group, task, horizon, trajectories }, progress: 0 };
    };
    const senseless: readonly (readonly [change: (state: State) => void, reason: RegExp])[] = [
      [(state) => void state.version++, /version: expected 4, .*got 5/],
      [({ rollout }) => void rollout.accounting.launched++, /1 episodes are unaccounted for/],
      [
        ({ rollout: { accounting } }) => {
          accounting.trained++;
          accounting.inFlight--;
        },
        /episodes in flight, \d+ are there/,
      ],
      [({ rollout: { accounting } }) => void (accounting.trained = -1), /accounting.trained: /],
      [({ rollout }) => void rollout.running.push(rollout.running[0]!), /a group is there twice/],
      [({ rollout }) => void rollout.delivered.push(delivery(rollout, [0])), /a group is there twice/],
      [
        ({ rollout: { running } }) => void (running[1]!.running[0]!.episode = running[0]!.running[0]!.episode),
        /an episode is there twice/,
      ],
      [
        ({ rollout }) => {
          const one = delivery(rollout, [0, 1, 0]);
          rollout.running = rollout.running.filter(({ group }) => group !== one.group.group);
          rollout.delivered.push(one);
        },
        /an episode is there twice/,
      ],
      [
        ({ rollout }) => {
          const one = delivery(rollout, [0]);
          one.group.trajectories[0]!.group++;
          rollout.running.shift();
          rollout.delivered.push(one);
        },
        /holds another's episode/,
      ],
      [
        ({ rollout }) => {
          const { finished, running } = rollout.running[0]!;
          const decision = { kind: 'choice', version: 0, context: [1, 1e6], value: 0, choice: 0, logprob: 0 };
          const turn = { observation: '', actions: [0], action: 'x', decision, reward: 0, actMs: 0, envMs: 0 };
          const episodes = [...finished, ...running].map((_, i) => i);
          rollout.delivered = [delivery(rollout, episodes, [turn]), ...rollout.delivered];
          rollout.running.shift();
        },
        /token 1000000 of a vocabulary of \d+/,
      ],
      [({ rollout }) => void (rollout.quarantined = [2, 1, 2]), /quarantined: a task is there twice/],
      [({ rollout }) => void (rollout.nextEpisode = 0), /an episode of number 0 or more/],
      [({ rollout }) => void (rollout.nextGroup = 0), /a group of number 0 or more/],
      [({ rollout }) => void (rollout.nextEpisode = 2 ** 31 - 1), /rollout.nextEpisode: /],
      [({ rollout }) => void (rollout.nextGroup = 2 ** 31 - 1), /rollout.nextGroup: /],
      [({ rollout }) => void (rollout.quarantined = [1.5]), /quarantined/],
      [({ identity }) => void (identity.model.hiddenSize = 1e9), /identity|tensor/],
    ];
    expect(reasonOf(newer)).toBe('');
    for (const [change, reason] of senseless) {
      const state = JSON.parse(good) as State;
      change(state);
      expect(reasonOf({ ...newer, 'state.json': new TextEncoder().encode(JSON.stringify(state)) })).toMatch(reason);
    }
    const tensors = newer['tensors.safetensors'].slice();
    new DataView(tensors.buffer).setFloat32(tensors.length - 4, Number.NaN, true);
    expect(reasonOf({ ...newer, 'tensors.safetensors': tensors })).toMatch(/holds what is no finite number/);
  }),
);

it('a key of many lines is reported in one short line', { timeout: 120_000 }, () =>
  inFolder(async (dir) => {
    const { older, newer } = await recorded(dir);
    const state = JSON.parse(new TextDecoder().decode(newer['state.json'])) as {
      rollout: { accounting: { failed: Record<string, number> } };
    };
    state.rollout.accounting.failed['line\n'.repeat(400)] = 1;
    const files = { ...newer, 'state.json': new TextEncoder().encode(JSON.stringify(state)) };
    const disk = memoryDisk({
      2: { ...older, 'manifest.json': new TextEncoder().encode(manifestOf(2, older)) },
      4: { ...files, 'manifest.json': new TextEncoder().encode(manifestOf(4, files)) },
    });

    const { update, warnings } = loadNewest('checkpoints', disk, checkRunContent);

    expect(update).toBe(2);
    expect(warnings).toEqual([expect.stringMatching(/^checkpoint \S+ cannot be used [^\n]{5,400}$/)]);
  }),
);

it(`${RESUMED} runs go on from such a checkpoint, or from the one before`, { timeout: 3_600_000 }, () =>
  inFolder(async (dir) => {
    const from = join(dir, 'from');
    const { newer } = await recorded(from);
    const state = JSON.parse(new TextDecoder().decode(newer['state.json'])) as Json;
    let resumed = 0;
    await campaign(
      'resumed checkpoints',
      RESUMED,
      async (rng, n) => {
        const to = join(dir, String(n));
        cpSync(from, to, { recursive: true });
        // Half of them changed until nothing of the schema objects: those are the ones that runs must get over.
        let files = newer;
        for (let tries = 0; tries < 200; tries++) {
          const text = JSON.stringify(mutated(state, rng));
          files = { ...newer, 'state.json': new TextEncoder().encode(text) };
          if (n % 2 === 0 || accepts(files, text)) break;
        }
        for (const [name, bytes] of Object.entries(files)) writeFileSync(join(to, 'checkpoints', '4', name), bytes);
        writeFileSync(join(to, 'checkpoints', '4', 'manifest.json'), manifestOf(4, files));
        const checkpoint = loadNewestOf(to);
        if (await goesOn(to, checkpoint)) resumed++;
      },
      200,
    );
    printFigure(`resumed checkpoints: ${resumed} of ${RESUMED} went on`);
  }),
);

function accepts(files: Readonly<Record<string, Uint8Array>>, text: string): boolean {
  try {
    const disk = memoryDisk({ 4: { ...files, 'manifest.json': new TextEncoder().encode(manifestOf(4, files)) } });
    const { state } = loadNewest('checkpoints', disk, checkRunContent);
    return JSON.stringify(state) === text;
  } catch {
    return false;
  }
}

/** Trains two updates further. @returns false where it refused with one line */
async function goesOn(dir: string, checkpoint: LoadedCheckpoint): Promise<boolean> {
  const updates = checkpoint.update + 2;
  try {
    await withToyRun(
      { ...config, stop: { updates } },
      dir,
      async ({ run }) => {
        const ended = await run.train();
        expect(ended.why).toBe('updates');
        expect(ended.status.version).toBe(updates);
        expect(countUnaccounted(ended.status.accounting)).toBe(0);
      },
      { checkpoint },
    );
    return true;
  } catch (thrown) {
    if (thrown instanceof Error && thrown.name === 'AssertionError') throw thrown;
    expect(messageOf(thrown)).not.toMatch(/undefined|is not a function|Cannot read/);
    expectMistake(thrown);
    return false;
  }
}
