/** Learning from recorded episodes: imitation and preference, from AgentTraj-style JSON and from our own traces. */
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openEngine } from '../../../src/compute/engine/open.ts';
import { smallModel } from '../../../src/compute/model/config.ts';
import { initialParams } from '../../../src/compute/model/parameters.ts';
import type { RunConfig } from '../../../src/config/run-config.ts';
import { trainerOptions } from '../../../src/learning/learner/options.ts';
import { Trainer } from '../../../src/learning/learner/trainer.ts';
import { convertAgentTraj, type Demonstration, readDemonstrations } from '../../../src/run/offline/demonstrations.ts';
import { pairUp } from '../../../src/run/offline/preference.ts';
import { type OfflineRequest, preferRun, superviseRun } from '../../../src/run/offline/run.ts';
import type { OfflineStep } from '../../../src/run/offline/step.ts';
import { fromDemonstration } from '../../../src/run/offline/teach.ts';
import { loadNewest } from '../../../src/storage/checkpoint.ts';
import { ViewCodec } from '../../../src/text/reading/view-codec.ts';
import { inFolder, toyConfig, withToyRun } from '../../support/toy-run.ts';
import { view } from '../../support/toy-worlds.ts';

const codec = new ViewCodec(view);
const message = (from: string, value: string, loss: boolean | null) => ({ from, loss, value });

/** Solved `memory` tasks as AgentTraj has them: instruction, acknowledgement, then ReAct replies. */
const agentTraj = ['red', 'blue'].flatMap((colour) =>
  Array.from({ length: 4 }, (_, i) => ({
    item_id: `memory_${colour}_${i}`,
    conversations: [
      message('human', 'You are in a room. Answer with Thought and Action.', null),
      message('gpt', "OK. I'll follow your instructions.", false),
      message('human', colour, null),
      message('gpt', 'Thought: nothing to see.\nAction: go', true),
      message('human', 'which', null),
      message('gpt', `Thought: it was ${colour}. Action: no.\nAction: ${colour}`, true),
    ],
  })),
);

function request(config: RunConfig, dir: string, demonstrations: readonly Demonstration[]): OfflineRequest {
  return {
    config,
    dir,
    view,
    prompt: { role: '', forms: [], hints: [], format: 'action' },
    demonstrations,
    epochs: 20,
    batch: 8,
  };
}

/** Mean return of the newest weights of `from`. */
function scoreOf(config: RunConfig, from: string, dir: string): Promise<number> {
  return withToyRun(
    config,
    dir,
    async ({ run }) => {
      const tasks = Array.from({ length: 20 }, (_, seed) => ({ env: 'toy', index: seed % 4, seed: 500 + seed }));
      const { results } = await run.evaluate({ name: 'x', tasks, episodes: 2, horizon: 8, temperature: 1, seed: 1 });
      const returns = results.flatMap((result) => result.returns);
      return returns.reduce((a, b) => a + b, 0) / returns.length;
    },
    { learn: false, initial: loadNewest(join(from, 'checkpoints')) },
  );
}

/** Traces of an untrained policy. */
async function traces(config: RunConfig, dir: string): Promise<Demonstration[]> {
  mkdirSync(dir, { recursive: true });
  await withToyRun({ ...config, trace: { ...config.trace, everyGroups: 1 } }, dir, ({ run }) => run.train());
  const files = readdirSync(join(dir, 'traces')).filter((name) => /^\d+\.jsonl$/.test(name));
  return files.flatMap((name) => readDemonstrations(join(dir, 'traces', name)));
}

describe('demonstrations', () => {
  it('reads AgentTraj: only replies with loss are learnt, actions cut out of the ReAct form', () => {
    const [first] = convertAgentTraj(agentTraj, 'file');
    expect(first).toEqual({
      source: 'file, memory_red_0',
      task: 'memory_red_0',
      turns: [
        { observation: 'red', action: 'go', reply: expect.stringContaining('nothing to see') },
        { observation: 'which', action: 'red', reply: expect.stringContaining('it was red') },
      ],
      finalObservation: '',
      score: 1,
    });
    expect(() => convertAgentTraj({}, 'file')).toThrow('file: the file: expected a list');
    expect(() => convertAgentTraj([{ conversations: [message('gpt', 'x', true)] }], 'file')).toThrow('message 0');
  });

  it('keeps a reply without loss in the episode as context, but for the acknowledgement of the instruction', () => {
    const [human, gpt] = [
      (value: string) => message('human', value, null),
      (value: string, loss: boolean) => message('gpt', value, loss),
    ];
    const conversations = [
      ...[human('You are in a room.'), gpt('OK.', false)],
      ...[human('red'), gpt('Action: go', true)],
      ...[human('at 1'), gpt('Action: left', false)],
      ...[human('which'), gpt('Action: red', true)],
      human('over'),
    ];
    const [one] = convertAgentTraj([{ item_id: 'x', conversations }], 'file');
    expect(one!.turns).toEqual([
      { observation: 'red', action: 'go', reply: 'Action: go' },
      { observation: 'at 1', action: 'left', reply: 'Action: left', untrained: true },
      { observation: 'which', action: 'red', reply: 'Action: red' },
    ]);
    expect(one!.finalObservation).toBe('over');
    const silent = conversations.map((message) => (message.from === 'gpt' ? { ...message, loss: false } : message));
    const reader = { codec, decoder: 'tokens', masked: false } as const;
    expect(() => fromDemonstration(reader, convertAgentTraj([{ conversations: silent }], 'file')[0]!, 0, 0)).toThrow(
      'none of its 3 replies has `loss: true`',
    );
  });

  it('reports what does not fit the policy', () => {
    const reader = { codec: new ViewCodec(view), decoder: 'choice', masked: true } as const;
    const [one] = convertAgentTraj(agentTraj, 'file');
    expect(() => fromDemonstration(reader, one!, 0, 0)).toThrow('lists no actions, which decoder choice needs');
    const listed = { ...one!, turns: [{ observation: 'red', action: 'fly', actions: ['go'] }] };
    expect(() => fromDemonstration(reader, listed, 0, 0)).toThrow("'fly' is not among the 1 listed actions");
  });

  it('keeps the token ids that were sampled, and reads other episodes exactly as a rollout does', async () => {
    await inFolder(async (dir) => {
      for (const decoder of ['choice', 'tokens'] as const) {
        const config = toyConfig('chain', { policy: { decoder }, stop: { updates: 1 } });
        const demonstrations = await traces(config, join(dir, decoder));
        const reader = { codec: new ViewCodec(view), decoder, masked: true };
        for (const one of demonstrations) {
          const kept = fromDemonstration(reader, one, 7, 3);
          expect(kept.turns).toEqual(one.trajectory!.turns);
          const { trajectory: _, ...words } = one;
          const read = fromDemonstration(reader, words, 7, 3);
          const ids = ({ turns }: typeof kept) =>
            turns.map(({ decision: d }) => [[...d!.context], d!.kind === 'choice' ? d!.choice : [...d!.tokens]]);
          expect(ids(read)).toEqual(ids(kept));
        }
      }
    });
  }, 60_000);

  it('pairs the best with the worst of each task', () => {
    const scored = (task: string, ...scores: number[]) => scores.map((score) => ({ task, score }));
    const pairs = pairUp([...scored('a', 0, 1, 0, 0.5), ...scored('b', 1, 1), ...scored('c', 2)]);
    expect(pairs.map(({ chosen, rejected }) => [chosen.task, chosen.score, rejected.score])).toEqual([
      ['a', 1, 0],
      ['a', 0.5, 0],
    ]);
  });
});

describe('off-line learning', () => {
  it('imitates AgentTraj through the tokens decoder', async () => {
    await inFolder(async (dir) => {
      const config = toyConfig('memory', {
        policy: { decoder: 'tokens', masked: false, maxTokens: 4 },
        learner: { learningRate: 0.02 },
      });
      writeFileSync(join(dir, 'data.json'), JSON.stringify(agentTraj));
      const losses: number[] = [];
      const steps: OfflineStep[] = [];
      const onStep = (step: OfflineStep) => steps.push(step);
      const learning = { ...request(config, dir, readDemonstrations(join(dir, 'data.json'))), epochs: 40, onStep };
      await superviseRun(learning, ({ nll }) => losses.push(nll));
      expect(steps.map(({ done }) => done)).toEqual(steps.map((_, i) => i + 1));
      expect(steps.every(({ total }) => total === steps.length)).toBe(true);
      expect(steps.at(-1)!.loss).toBeLessThan(steps[0]!.loss);
      expect(losses[0]).toBeGreaterThan(1);
      expect(losses.at(-1)).toBeLessThan(0.3);
      expect(await scoreOf(config, dir, dir)).toBeGreaterThan(0.9);
    });
  }, 60_000);

  it('imitates the good episodes of a trace, and training goes on from there', async () => {
    await inFolder(async (dir) => {
      const config = toyConfig('memory', { learner: { learningRate: 0.02 }, stop: { updates: 3 } });
      const all = await traces(config, join(dir, 'random'));
      const good = all.filter(({ score }) => score > 0);
      expect(good.length).toBeLessThan(all.length);
      await superviseRun(request(config, join(dir, 'sft'), good), () => {});
      expect(await scoreOf(config, join(dir, 'sft'), dir)).toBeGreaterThan(0.95);
      const rows = await withToyRun(
        config,
        join(dir, 'sft'),
        async ({ run, rows }) => {
          await run.train();
          await run.save(); // the last row is in by then
          return rows;
        },
        { initial: loadNewest(join(dir, 'sft', 'checkpoints')) },
      );
      expect(rows.map(({ update }) => update)).toEqual([1, 2, 3]);
      expect(rows[0]!.success).toBeGreaterThan(0.9);
    });
  }, 60_000);

  for (const decoder of ['choice', 'tokens'] as const) {
    it(`prefers the better of two episodes: ${decoder}`, async () => {
      await inFolder(async (dir) => {
        const config = toyConfig('memory', {
          policy: { decoder },
          learner: { learningRate: 0.02 },
          stop: { updates: 3 },
        });
        const all = await traces(config, join(dir, 'random'));
        const epochs: { loss: number; accuracy: number }[] = [];
        const steps: OfflineStep[] = [];
        const learning = {
          ...request(config, join(dir, 'dpo'), all),
          beta: 0.5,
          onStep: (one: OfflineStep) => steps.push(one),
        };
        const pairs = await preferRun(learning, (one) => epochs.push(one));
        expect(steps.map(({ done, total }) => total - done)).toEqual(steps.map((_, i) => steps.length - 1 - i));
        expect(pairs).toBeGreaterThan(8);
        expect(epochs.at(-1)!.loss).toBeLessThan(0.5 * epochs[0]!.loss);
        expect(epochs.at(-1)!.accuracy).toBeGreaterThan(0.95);
        expect(await scoreOf(config, join(dir, 'dpo'), dir)).toBeGreaterThan(0.9);
      });
    }, 60_000);
  }

  it('imitates exactly the replies with loss, read after those without', async () => {
    const words = [
      { observation: 'red', action: 'go' },
      { observation: 'at 1', action: 'left right' },
      { observation: 'which', action: 'stop on idle' },
    ];
    const model = smallModel(codec.vocabSize, { hiddenSize: 8, layers: 1, maxPositions: 64, valueHead: false });
    /** −log π per trained token, and how many tokens there are, under the first weights. */
    const nllOf = async (learnt: readonly boolean[]) => {
      const turns = words.map((turn, t) => (learnt[t] ? turn : { ...turn, untrained: true as const }));
      const demonstration = { source: 'made', task: 'x', turns, finalObservation: '', score: 1 };
      const trajectory = fromDemonstration({ codec, decoder: 'tokens', masked: false }, demonstration, 0, 0);
      const options = { ...trainerOptions(toyConfig('memory', {}), model), codec, decoder: 'tokens' } as const;
      const trainer = await Trainer.create(
        await openEngine({ name: 'reference' }),
        {
          ...options,
          epochs: 1,
          estimator: {
            algorithm: 'agent_evol',
            threshold: -1,
            gamma: 1,
            truncation: 'terminal',
            aggregation: { type: 'token-mean' },
          },
        },
        { params: initialParams(model, 2) },
      );
      const { task, horizon } = trajectory;
      const { stats } = await trainer.update([{ group: 0, task, horizon, trajectories: [trajectory] }], 0);
      return stats.nll!;
    };
    const [go, left, stop] = [
      await nllOf([true, false, false]),
      await nllOf([false, true, false]),
      await nllOf([false, false, true]),
    ];
    const [a, b, c] = words.map(({ action }) => codec.spell(action).length + 1) as [number, number, number];
    expect(new Set([a, b, c]).size).toBe(3); // or a mean over turns would pass too
    expect(await nllOf([true, true, true])).toBeCloseTo((a * go + b * left + c * stop) / (a + b + c), 6);
    expect(await nllOf([true, false, true])).toBeCloseTo((a * go + c * stop) / (a + c), 6);
  });

  it('prefers nothing over a reply without loss', async () => {
    await inFolder(async (dir) => {
      const episode = (answer: string, score: number): Demonstration => ({
        source: answer,
        task: 'one',
        turns: [
          { observation: 'red', action: 'go', actions: ['go', 'stop'] },
          { observation: 'which', action: answer, actions: ['red', 'blue'], untrained: true },
        ],
        finalObservation: 'over',
        score,
      });
      const epochs: { loss: number; margin: number }[] = [];
      const ours = { ...request(toyConfig('memory', {}), dir, [episode('red', 1), episode('blue', 0)]), epochs: 5 };
      await preferRun({ ...ours, beta: 1 }, (one) => epochs.push(one));
      // The rest of the two episodes is the same: nothing is preferred, and nothing learnt.
      for (const { loss, margin } of epochs) {
        expect(loss).toBeCloseTo(Math.LN2, 6);
        expect(margin).toBeCloseTo(0, 6);
      }
    });
  });

  it('never pairs episodes that began differently: what one saw is no reason to have acted as the other did', async () => {
    await inFolder(async (dir) => {
      const episode = (colour: string, score: number): Demonstration => ({
        source: `${colour} ${score}`,
        task: 'one',
        turns: [
          { observation: colour, action: 'go', actions: ['go'] },
          { observation: 'which', action: score > 0 ? colour : 'left', actions: ['red', 'blue', 'left'] },
        ],
        finalObservation: 'over',
        score,
      });
      const config = toyConfig('memory', {});
      const ask = (episodes: readonly Demonstration[]) =>
        preferRun({ ...request(config, dir, episodes), epochs: 1, beta: 1 }, () => {});
      const [red, badRed, badBlue] = [episode('red', 1), episode('red', 0), episode('blue', 0)];
      await expect(ask([red, badBlue])).rejects.toThrow('no two episodes');
      expect(await ask([red, badRed])).toBe(1);
    });
  });

  it('reports when there is nothing to learn from, and leaves no checkpoint', async () => {
    await inFolder(async (dir) => {
      const config = toyConfig('memory', {});
      await expect(superviseRun(request(config, dir, []), () => {})).rejects.toThrow('nothing to learn from');
      const alike = convertAgentTraj(agentTraj, 'file');
      await expect(preferRun({ ...request(config, dir, alike), beta: 1 }, () => {})).rejects.toThrow('no two episodes');
      expect(existsSync(join(dir, 'checkpoints'))).toBe(false);
    });
  });
});
