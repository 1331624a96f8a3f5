import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { writeTinyChatModel } from '../../../experiments/tiny-chat-model.ts';
import { openEngine } from '../../../src/compute/engine/open.ts';
import { ALL_PROJECTIONS } from '../../../src/compute/model/config.ts';
import { defaultAdamW } from '../../../src/compute/model/optimizer.ts';
import { drawParameters, parameterSpecs } from '../../../src/compute/model/parameters.ts';
import { logprobsGraph } from '../../../src/compute/model/programs.ts';
import type { Trajectory } from '../../../src/core/trajectory.ts';
import { measure } from '../../../src/learning/learner/measure.ts';
import { microBatches } from '../../../src/learning/learner/micro-batches.ts';
import { Trainer } from '../../../src/learning/learner/trainer.ts';
import { decisionsOf, type TrainGroup, trainUnits } from '../../../src/learning/learner/training-batch.ts';
import { freeze } from '../../../src/policy/pretrained/base.ts';
import { openModel } from '../../../src/policy/pretrained/folder.ts';
import { type PreferenceEpoch, type PreferenceOptions, trainOnPairs } from '../../../src/run/offline/preference.ts';
import { openChatCodec } from '../../../src/text/reading/chat-codec.ts';
import type { Codec } from '../../../src/text/reading/codec.ts';

const folder = mkdtempSync(join(tmpdir(), 'longplay-micro-'));
beforeAll(() => void writeTinyChatModel(folder));
afterAll(() => rmSync(folder, { recursive: true }));

function codecOf(contextTokens = 1000): Codec {
  return openChatCodec({
    folder,
    vocabSize: openModel(folder).config.vocabSize,
    endTokens: [],
    world: { role: 'r', forms: [], hints: [], format: 'action' },
    format: 'world',
    listActions: false,
    contextTokens,
    answerTokens: 50,
  });
}

/** Episodes of one task as a policy would have recorded them: `answers` of ids, turn by turn. */
function episode(
  codec: Codec,
  number: number,
  answers: readonly (readonly number[])[],
  score: number,
  opening = 'begin',
): Trajectory {
  const actions = new Int32Array(0);
  const transcript = codec.open({ observation: opening, actions, newActions: [] });
  const turns = answers.map((run, t) => {
    const context = transcript.takeContext();
    const tokens = Int32Array.from([...run, codec.end]);
    transcript.write(tokens);
    const { action } = codec.answer([...tokens]);
    transcript.observe(action, { observation: `now ${t}`, actions, newActions: [] });
    const logprobs = Float32Array.from(tokens, (_, i) => -5 - i / 3);
    return {
      observation: t === 0 ? opening : `now ${t - 1}`,
      actions,
      action,
      decision: { kind: 'tokens' as const, version: 0, context, value: 0, tokens, logprobs, masked: false },
      reward: t === answers.length - 1 ? score : 0,
      actMs: 0,
      envMs: 0,
    };
  });
  return {
    episode: number,
    group: 0,
    task: { env: 'x', index: 0, seed: 0 },
    horizon: 9,
    attempt: 1,
    actionTable: [],
    turns,
    finalObservation: `now ${answers.length - 1}`,
    end: 'terminated',
    success: score > 0,
    view: codec.id,
  };
}

const answers = fc.array(fc.array(fc.integer({ min: 40, max: 200 }), { minLength: 1, maxLength: 12 }), {
  minLength: 1,
  maxLength: 3,
});

it('passes hold every decision once, the longest groups first, within their bound', () => {
  const codec = codecOf();
  fc.assert(
    fc.property(
      fc.array(answers, { minLength: 1, maxLength: 5 }),
      fc.integer({ min: 100, max: 1000 }),
      (episodes, most) => {
        const openings = ['begin', 'begin here', 'begin'];
        const trajectories = episodes.map((one, i) => episode(codec, i, one, 1, openings[i % 3]));
        const groups = trainUnits(codec, trajectories, 0).flat();
        const passes = microBatches(groups, most);
        const all = (lists: readonly (readonly TrainGroup[])[]) =>
          lists.flatMap((list) => decisionsOf(list)).sort((a, b) => a.trajectory - b.trajectory || a.turn - b.turn);
        expect(all(passes)).toEqual(all([groups]));
        const lengths = longestOfPrompts(passes, groups);
        expect(lengths).toEqual(lengths.toSorted((a, b) => b - a));
        passes.forEach((pass, i) => {
          const members = pass.flatMap((group) => group.members);
          if (members.length > 1) expect(padded(pass)).toBeLessThanOrEqual(most);
          // And no fewer than they could: the next member would have been too much.
          const [next] = passes[i + 1] ?? [];
          if (next) expect(padded(joined(pass, { ...next, members: next.members.slice(0, 1) }))).toBeGreaterThan(most);
        });
      },
    ),
    { numRuns: 60 },
  );
});

/** Tokens of each prompt and its longest member, in the order in which the passes first read the prompts. */
function longestOfPrompts(passes: readonly (readonly TrainGroup[])[], groups: readonly TrainGroup[]): number[] {
  const prompts = [...new Set(passes.flat().map(({ prompt }) => prompt))];
  const longest = new Map(
    groups.map(({ prompt, members }) => [
      prompt,
      prompt.tokens.length + Math.max(...members.map((m) => m.tokens.length)),
    ]),
  );
  return prompts.map((prompt) => longest.get(prompt)!);
}

it('leaves out members that decide nothing', () => {
  const codec = codecOf();
  const [group] = trainUnits(codec, [episode(codec, 0, [[70]], 1)], 0).flat();
  const idle = { tokens: [1, 2, 3], decisions: [] };
  const [member] = group!.members;
  const [pass, ...others] = microBatches([{ ...group!, members: [idle, member!, idle] }], 1000);
  expect([others, pass!.flatMap(({ members }) => members)]).toEqual([[], [member]]);
});

/** Tokens of a pass as a program reads it: groups, each a prompt and as many members as the largest has, all padded. */
function padded(pass: readonly TrainGroup[]): number {
  const prompt = Math.max(...pass.map((group) => group.prompt.tokens.length));
  const members = Math.max(...pass.map((group) => group.members.length));
  const tokens = Math.max(...pass.flatMap((group) => group.members.map((member) => member.tokens.length)));
  return pass.length * (prompt + members * tokens);
}

/** A pass with more members at its end; those of one prompt stay together. */
function joined(pass: readonly TrainGroup[], more: TrainGroup): TrainGroup[] {
  const last = pass.at(-1)!;
  if (last.prompt !== more.prompt) return [...pass, more];
  return [...pass.slice(0, -1), { ...last, members: [...last.members, ...more.members] }];
}

it('a measurement in several passes gives every decision its own log-probability', async () => {
  const codec = codecOf();
  // The longest comes last, and passes begin with it.
  const runs = [[[70]], [[71, 72], [73]], [[80, 81, 82, 83, 84, 85], [86], [87, 88]]];
  const units = runs.flatMap((one, i) => trainUnits(codec, [episode(codec, i, one, 1, `begin ${i}`)], i));
  const model = freeze(openModel(folder));
  const adapted = { ...model, adapter: { rank: 4, alpha: 8, targets: ALL_PROJECTIONS } };
  const params = { version: 0, values: drawParameters(parameterSpecs(adapted), 1) };
  const engine = await openEngine({ name: 'onnxruntime-node', threads: 1 });
  const decoding = { decoder: 'tokens', masked: false } as const;
  const program = await engine.compile(logprobsGraph(adapted, decoding));
  const measured = (maxTokens?: number) =>
    measure({ model: adapted, codec, ...decoding, maxTokens, program }, params, units);
  const whole = await measured();
  const parts = await measured(150);
  await engine.dispose();
  expect(new Set(whole.logprobs).size).toBe(whole.logprobs.length);
  parts.logprobs.forEach((logprob, i) => {
    expect(logprob).toBeCloseTo(whole.logprobs[i]!, 4);
  });
});

it('preference pairs are learnt alike whole and dense, in parts, recomputed and in several passes', async () => {
  const codec = codecOf();
  const pairs = [
    { chosen: episode(codec, 0, [[70, 71], [80]], 1), rejected: episode(codec, 1, [[72]], 0) },
    {
      chosen: episode(codec, 2, [[90, 91, 92, 93]], 1, 'else'),
      rejected: episode(codec, 3, [[60], [61, 62]], 0, 'else'),
    },
    { chosen: episode(codec, 4, [[99]], 1), rejected: episode(codec, 5, [[65, 66, 67]], 0) },
  ];
  const model = { ...freeze(openModel(folder)), adapter: { rank: 4, alpha: 8, targets: ALL_PROJECTIONS } };
  const specs = parameterSpecs(model).map((spec) => ({ ...spec, init: { kind: 'normal', std: 0.05 } as const }));
  const start = { version: 0, values: drawParameters(specs, 1) };
  const engine = await openEngine({ name: 'onnxruntime-node', threads: 1 });
  const after = async (passes: Pick<PreferenceOptions, 'masked' | 'chunks' | 'recompute' | 'maxTokens'>) => {
    const epochs: PreferenceEpoch[] = [];
    const rest = { beta: 0.5, epochs: 2, pairsPerStep: 3, maxGradNorm: 1, adamW: defaultAdamW, seed: 1 };
    const rate = { learningRate: { peak: 1e-3, warmupSteps: 0, decay: 'none', final: 1 } } as const;
    const options = { model, codec, decoder: 'tokens', ...rest, ...rate, ...passes } as const;
    const trained = await trainOnPairs(engine, options, start, pairs, (epoch) => epochs.push(epoch));
    if ('broken' in trained) throw new Error(trained.broken.message);
    return { epochs, values: trained.params.values };
  };
  const whole = await after({ masked: true });
  expect(whole.epochs[1]!.loss).toBeLessThan(whole.epochs[0]!.loss);
  for (const passes of [
    { masked: false },
    { masked: false, chunks: 3, recompute: true },
    { masked: false, chunks: 2, recompute: true, maxTokens: 1 },
    { masked: false, maxTokens: 500 },
  ]) {
    const other = await after(passes);
    for (const [i, epoch] of whole.epochs.entries()) {
      for (const name of ['loss', 'margin'] as const) expect(other.epochs[i]![name], name).toBeCloseTo(epoch[name], 4);
      // Before the first step no episode is likelier than at the start, and rounding decides.
      if (i > 0) expect(other.epochs[i]!.accuracy).toBeCloseTo(epoch.accuracy, 6);
    }
    for (const [name, weights] of Object.entries(whole.values)) {
      const moved = Math.max(...weights.map((w, i) => Math.abs(w - start.values[name]![i]!)));
      const worst = Math.max(...weights.map((w, i) => Math.abs(w - other.values[name]![i]!)));
      expect(moved).toBeGreaterThan(1e-4);
      expect(worst, name).toBeLessThan(moved * 0.02);
    }
  }
  await engine.dispose();
});

const gspo = { type: 'gspo', clipLow: 0.2, clipHigh: 0.2 } as const;

it.each([
  ['ppo_clip', 1000, undefined],
  ['gspo, of trajectories whose prompt was rendered anew', 130, gspo],
] as const)(
  'an update is the same in one pass, in several, in parts and recomputed: %s',
  async (_, context, policyLoss) => {
    const codec = codecOf(context);
    const group = {
      group: 0,
      task: { env: 'x', index: 0, seed: 0 },
      horizon: 9,
      trajectories: [
        episode(
          codec,
          0,
          [
            [70, 71],
            [80, 81, 82],
          ],
          1,
        ),
        episode(codec, 1, [[72]], 0),
        episode(codec, 2, [[73, 74, 75, 76, 77], [60], [61]], 0.5),
      ],
    };
    if (policyLoss) {
      const members = trainUnits(codec, group.trajectories, 0).flatMap((unit) => unit.flatMap((one) => one.members));
      expect(members.length).toBeGreaterThan(group.trajectories.length);
    }
    const model = { ...freeze(openModel(folder)), adapter: { rank: 4, alpha: 8, targets: ALL_PROJECTIONS } };
    const specs = parameterSpecs(model).map((spec) => ({ ...spec, init: { kind: 'normal', std: 0.05 } as const }));
    const values = drawParameters(specs, 1);
    const engine = await openEngine({ name: 'onnxruntime-node', threads: 1 });
    const after = async (passes: object) => {
      const trainer = await Trainer.create(
        engine,
        {
          model,
          codec,
          decoder: 'tokens',
          estimator: {
            algorithm: 'grpo',
            gamma: 1,
            truncation: 'terminal',
            aggregation: { type: 'token-mean' },
            credit: 'trajectory',
            std: true,
          },
          epochs: 2,
          minibatches: 1,
          coefficients: { clipLow: 0.2, clipHigh: 0.2, entropyCoef: 0.01, valueCoef: 0, valueClip: 1 },
          policyLoss,
          offPolicy: { type: 'truncated', cap: 2, per: 'token' },
          kl: { in: 'loss', estimator: 'k3', control: { type: 'fixed', coefficient: 0.05 } },
          learningRate: { peak: 1e-3, warmupSteps: 0, decay: 'none', final: 1 },
          maxGradNorm: 1,
          adamW: defaultAdamW,
          filterGroups: true,
          seed: 1,
          ...passes,
        },
        { params: { version: 0, values } },
      );
      const result = await trainer.update([group], 0);
      expect(result.broken).toBeUndefined();
      await trainer.dispose();
      return { stats: result.stats, values: trainer.params.values };
    };
    const whole = await after({});
    for (const passes of [
      { maxTokens: 100_000, masked: false },
      { maxTokens: 300, masked: false, chunks: 3, recompute: true },
      { maxTokens: 1, masked: false, chunks: 2 },
    ]) {
      const other = await after(passes);
      for (const [name, value] of Object.entries(whole.stats)) expect(other.stats[name], name).toBeCloseTo(value, 4);
      for (const [name, weights] of Object.entries(whole.values)) {
        const moved = Math.max(...weights.map((w, i) => Math.abs(w - values[name]![i]!)));
        const worst = Math.max(...weights.map((w, i) => Math.abs(w - other.values[name]![i]!)));
        expect(moved).toBeGreaterThan(1e-4);
        expect(worst, name).toBeLessThan(moved * 0.02);
      }
    }
    await engine.dispose();
  },
);

it('a pass is of one world: what is as long elsewhere is laid out otherwise', () => {
  const decision = { trajectory: 0, turn: 0, token: 0, at: 0, allowed: [0], chosen: 0, logprob: 0, value: 0 };
  const groupOf = (prompt: number, member: number): TrainGroup => ({
    prompt: { tokens: new Int32Array(prompt), shared: true, focus: new Set(), mentions: () => [0] },
    candidates: [],
    members: [{ tokens: new Array<number>(member).fill(1), decisions: [{ ...decision }] }],
  });
  // As long as each other in all: prompts of one world, turns of the other.
  const mixed = Array.from(
    { length: 8 },
    (_, i): TrainGroup => (i % 2 === 0 ? { ...groupOf(90, 10), world: 'a' } : { ...groupOf(10, 90), world: 'b' }),
  );
  const passes = microBatches(mixed, 400);
  expect(passes.map((pass) => pass.map(({ world }) => world).join(''))).toEqual(['aaaa', 'bbbb']);
  expect(passes.flat().flatMap(({ members }) => members)).toHaveLength(8);
  const alone = mixed.filter(({ world }) => world === 'b');
  expect(microBatches(alone, 400)).toEqual(passes.slice(1));
  expect(microBatches(mixed, 400, true).every((pass) => new Set(pass.map(({ world }) => world)).size === 1)).toBe(true);
});
