/** A teacher behind a server, and the loss on the world's tokens: what a tiny language model learns by them. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { writeTinyChatModel } from '../../../experiments/tiny-chat-model.ts';
import { openEngine } from '../../../src/compute/engine/open.ts';
import { promptFeeds } from '../../../src/compute/model/feeds.ts';
import { forwardGraph } from '../../../src/compute/model/programs.ts';
import type { RunConfig } from '../../../src/config/run-config.ts';
import type { Trajectory } from '../../../src/core/trajectory.ts';
import {
  connectTeacher,
  openServerTeacher,
  PROBE_TEXT,
  readScores,
  type TeacherServer,
} from '../../../src/learning/learner/server-teacher.ts';
import { countWorldTokens, type TrainGroup, trainUnits } from '../../../src/learning/learner/training-batch.ts';
import { weightFeeds } from '../../../src/learning/learner/weights.ts';
import { setUpPolicy } from '../../../src/policy/setup.ts';
import { createRunFolder } from '../../../src/run/run-folder.ts';
import { worldPrompt } from '../../../src/text/prompts/world-prompt.ts';
import { openText } from '../../../src/text/templates/model-text.ts';
import { type FakeTeacherOptions, FakeTeacherServer, type Scorer } from '../../support/fake-teacher-server.ts';
import { inFolder, type ToyConfig, type ToyRun, toyConfig, withToyRun } from '../../support/toy-run.ts';
import { createEnv, view } from '../../support/toy-worlds.ts';

vi.setConfig({ hookTimeout: 120_000 });
const folder = mkdtempSync(join(tmpdir(), 'longplay-teacher-'));
const servers: FakeTeacherServer[] = [];
/** Scores of a prompt that any change of an id, or of its place, would change. */
const byPlace: Scorer = (ids) => ids.map((id, i) => -(1 + ((id * 7 + i * 13 + (ids[i - 1] ?? 0)) % 101)) / 50);

async function serve(options: Partial<FakeTeacherOptions> = {}): Promise<FakeTeacherServer> {
  const server = await FakeTeacherServer.start({ score: byPlace, ...options });
  servers.push(server);
  return server;
}

beforeAll(() => {
  writeTinyChatModel(folder, {
    text: ['left right stop', 'at 0 at 1 at 2'],
    merges: 40,
    config: { num_hidden_layers: 1, hidden_size: 32 },
  });
});
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});
afterAll(() => rmSync(folder, { recursive: true }));

const identity = { type: 'server', model: 'teacher' } as const;
const tokenizer = () => openText(folder).tokenizer;
const probe = () => ({ text: PROBE_TEXT, ids: [...tokenizer().encode(PROBE_TEXT)] });

describe('answers', () => {
  const ids = [5, 9, 7];
  it('vLLM’s prompt_logprobs: the entry of the prompt’s own token, whatever ranks before it', () => {
    const entry = (own: number, logprob: number) => ({ 1: { logprob: -0.1 }, [own]: { logprob, decoded_token: 'a' } });
    const answer = { choices: [{ prompt_logprobs: [null, entry(9, -3), entry(7, -4)] }] };
    expect([...readScores(answer, ids, 'prompt_logprobs').logprobs]).toEqual([0, -3, -4]);
  });

  it('OpenAI’s echo: the tokens of the prompt, without what was generated behind it', () => {
    const answer = { choices: [{ logprobs: { token_logprobs: [null, -3, -4, -9], tokens: ['x', 'y', 'z', 'w'] } }] };
    expect([...readScores(answer, ids, 'echo').logprobs]).toEqual([0, -3, -4]);
    expect(readScores(answer, ids, 'echo').texts).toEqual([undefined, 'y', 'z']);
  });

  it.each([
    {},
    { choices: [] },
    { choices: [{ prompt_logprobs: null }] },
    { choices: [{ prompt_logprobs: [null, { 9: { logprob: -1 } }] }] },
    { choices: [{ prompt_logprobs: [null, { 9: { logprob: -1 } }, { 8: { logprob: -1 } }] }] },
    { choices: [{ prompt_logprobs: [null, { 9: { logprob: 'low' } }, { 7: { logprob: -1 } }] }] },
  ])('refuses %j', (answer) => {
    expect(() => readScores(answer, ids, 'prompt_logprobs')).toThrow(
      /without a log-probability of token \d of the prompt/,
    );
  });
});

describe('connecting', () => {
  it('finds the one model and the form', async () => {
    const { url } = await serve();
    expect(await connectTeacher({ url }, probe())).toEqual({ url, model: 'teacher', scoring: 'prompt_logprobs' });
    const echoing = await serve({ forms: ['echo'], models: ['a', 'b'], key: 'secret' });
    const found = await connectTeacher({ url: `${echoing.url}/v1/`, model: 'b', key: 'secret' }, probe());
    expect(found).toEqual({ url: `${echoing.url}/v1/`, model: 'b', scoring: 'echo', key: 'secret' });
  });

  it('takes texts that are the student’s, as servers spell them', async () => {
    const { url } = await serve({ decode: (id) => tokenizer().decode([id]) });
    expect((await connectTeacher({ url }, probe())).scoring).toBe('prompt_logprobs');
  });

  const mistakes: readonly (readonly [string, Partial<FakeTeacherOptions>, string | undefined, RegExp])[] = [
    ['no log-probabilities', { forms: [] }, undefined, /reports no log-probabilities of prompts.*use vLLM/],
    ['a smaller vocabulary', { vocabSize: 4 }, undefined, /reports no log-probabilities.*out of vocabulary/],
    ['other texts', { decode: (id) => `w${id}` }, undefined, /has another vocabulary: it reads 'w\d+w.*tokenizer/],
    ['two models', { models: ['a', 'b'] }, undefined, /expected a model of .* \(a, b\), got none/],
    ['no such model', {}, 'other', /expected a model of .* \(teacher\), got other/],
    ['a key', { key: 'secret' }, undefined, /does not answer: .*401.*set apiKeyEnv/],
  ];
  it.each(mistakes)('refuses a server with %s, in one line', async (_, options, model, message) => {
    const { url } = await serve(options);
    const thrown = await connectTeacher({ url, model }, probe()).catch((error: Error) => error);
    expect(thrown).toMatchObject({ name: 'UserError', message: expect.stringMatching(message) });
    expect((thrown as Error).message).toMatch(/^learner\.distillation\.teacher[^\n]*$/);
  });

  it('refuses one that is not there', async () => {
    await expect(connectTeacher({ url: 'http://127.0.0.1:9' }, probe())).rejects.toThrow(/is the server running\?/);
  });
});

/** Two groups: one prompt with two members, and one with one. Decisions name the token behind them. */
function someUnits(): TrainGroup[][] {
  const member = (tokens: readonly number[], ...at: number[]) => ({
    tokens,
    decisions: at.map((place) => ({
      ...{ trajectory: 0, turn: 0, token: 0, allowed: undefined, logprob: 0, value: 0 },
      ...{ at: place, chosen: tokens[place + 1]! },
    })),
  });
  const prompt = (...ids: number[]) => ({
    ...{ tokens: Int32Array.from(ids), shared: true, focus: new Set<number>(), mentions: () => [] },
  });
  return [
    [{ prompt: prompt(11, 12, 13), candidates: [], members: [member([1, 2, 3, 4], 0, 2), member([1, 5, 6], 0, 1)] }],
    [{ prompt: prompt(21), candidates: [], members: [member([7, 8], 0)] }],
  ];
}

describe('scoring', () => {
  const spec = (url: string): TeacherServer => ({ url, model: 'teacher', scoring: 'prompt_logprobs' });

  it('gives each decision the score of its own token, after its own prompt', async () => {
    const server = await serve();
    const teacher = openServerTeacher(spec(server.url), identity);
    const { logprobs, listed } = await teacher.score(someUnits(), 1);
    await teacher.dispose();
    const scores = [byPlace([11, 12, 13, 1, 2, 3, 4]), byPlace([11, 12, 13, 1, 5, 6]), byPlace([21, 7, 8])] as const;
    expect([...logprobs]).toEqual([scores[0][4], scores[0][6], scores[1][4], scores[1][5], scores[2][2]]);
    expect(listed).toBeUndefined();
    expect(server.prompts).toHaveLength(3);
  });

  it('asks again while the server is busy, and says which teacher failed', async () => {
    const server = await serve();
    server.busy = 2;
    const teacher = openServerTeacher(spec(server.url), identity);
    expect([...(await teacher.score(someUnits(), 1)).logprobs]).toHaveLength(5);
    const other = openServerTeacher({ ...spec(server.url), model: 'gone' }, identity);
    await expect(other.score(someUnits(), 1)).rejects.toThrow(`teacher gone at ${server.url}: `);
    await teacher.dispose();
    await other.dispose();
  });
});

/** A run of the tiny model, all of whose weights learn. */
function modelRun(change: ToyConfig = {}): RunConfig {
  return toyConfig('chain', {
    horizon: { type: 'fixed', rounds: 2 },
    stop: { updates: 1 },
    rollout: { groupSize: 2, concurrentGroups: 2 },
    ...change,
    policy: {
      ...{ kind: 'checkpoint', path: folder, decoder: 'tokens', masked: false, full: true, maxTokens: 4 },
      chat: { instructions: 'short', contextTokens: 1024 },
      ...change.policy,
    },
    learner: {
      groupsPerUpdate: 2,
      maxLag: 0,
      epochs: 1,
      entropyCoef: 0,
      learningRate: 0.01,
      warmupSteps: 0,
      ...change.learner,
    },
  });
}

it('a student comes nearer to its teacher behind a server, which is all that it learns by', {
  timeout: 120_000,
}, async () => {
  const size = 32;
  // Nine of ten draws among a few tokens, each alike.
  const favoured = new Set([...tokenizer().encode('left right'), ...tokenizer().encode('stop')]);
  const vocabulary = setUp(modelRun()).model.vocabSize;
  const [likely, other] = [Math.log(0.9 / favoured.size), Math.log(0.1 / (vocabulary - favoured.size))];
  const { url } = await serve({ score: (ids) => ids.map((id) => (favoured.has(id) ? likely : other)) });
  const config = modelRun({
    horizon: { type: 'fixed', rounds: 1 },
    stop: { updates: 8 },
    rollout: { groupSize: 1, concurrentGroups: size, maxBatch: size },
    learner: { groupsPerUpdate: size, distillation: { teacher: { type: 'server', url } } },
  });
  await inFolder((dir) =>
    withToyRun(config, dir, async ({ run, rows }) => {
      await run.train();
      const kl = rows.map(({ distillationKl }) => distillationKl!);
      expect(kl.length).toBeGreaterThan(6); // the last row may still be on its way
      expect(kl[0]).toBeGreaterThan(1);
      expect(kl.at(-1)).toBeLessThan(kl[0]! / 2);
    }),
  );
});

it('a language model is taught by a run of a larger one with its tokenizer', { timeout: 120_000 }, async () => {
  const large = join(folder, 'large');
  writeTinyChatModel(large, {
    text: ['left right stop', 'at 0 at 1 at 2'],
    merges: 40,
    config: { num_hidden_layers: 2, hidden_size: 64 },
    seed: 2,
  });
  await inFolder(async (root) => {
    const path = join(root, 'teacher');
    // An adapter beside a frozen base: the teacher's base is read from its own folder.
    const taught = modelRun({ policy: { path: large, full: false } });
    createRunFolder(path, taught);
    await withToyRun(taught, path, async ({ run }) => {
      await run.train();
      expect((await run.save()).ok).toBe(true);
    });
    const teacher = { type: 'run' as const, path };
    const config = modelRun({ stop: { updates: 6 }, learner: { distillation: { teacher }, groupsPerUpdate: 4 } });
    const dir = join(root, 'student');
    mkdirSync(dir);
    await withToyRun(config, dir, async ({ run, rows, notices }) => {
      await run.train();
      const kl = rows.map(({ distillationKl }) => distillationKl!);
      expect(kl.every(Number.isFinite)).toBe(true);
      expect(Math.abs(kl[0]!)).toBeGreaterThan(0.01);
      expect(notices).toContain(`the teacher is ${path}, update 1`);
    });
    // A model of another tokenizer does not fit.
    const other = join(folder, 'other');
    writeTinyChatModel(other, { text: ['quite other words'], merges: 20, config: { num_hidden_layers: 1 } });
    const stranger = modelRun({ policy: { path: other }, learner: { distillation: { teacher } } });
    await expect(withToyRun(stranger, dir, async () => {})).rejects.toThrow(/expected the vocabulary [\da-f]+, got/);
  });
});

function setUp(config: RunConfig) {
  const env = createEnv();
  return setUpPolicy(
    config,
    { view, prompt: worldPrompt({}, config.env.options, env.description) },
    folder,
    undefined,
  )!;
}

describe("the world's tokens (ECHO)", () => {
  const train = (config: RunConfig) =>
    inFolder(async (dir) => {
      const played: Trajectory[] = [];
      const onEpisodes = (some: readonly Trajectory[]) => played.push(...some);
      const use = async ({ run, rows }: ToyRun) => {
        await run.train();
        return { rows, played };
      };
      return withToyRun(config, dir, use, { onEpisodes });
    });
  const echo = { learner: { observationCoef: 0.1 } } satisfies ToyConfig;

  it('are all that is read behind the first answer and was not sampled', async () => {
    const { played } = await train(modelRun(echo));
    const { codec } = setUp(modelRun(echo));
    const [one] = played;
    const groups = trainUnits(codec, [one!], 0).flat();
    const read = one!.turns.slice(1).reduce((sum, { decision }) => sum + decision!.context.length, 0);
    expect(read).toBeGreaterThan(5);
    expect(countWorldTokens(groups)).toBe(read);
  });

  it('weigh as a plain forward pass computes them, in one pass or many', { timeout: 60_000 }, async () => {
    const { rows, played } = await train(modelRun(echo));
    const parts = await train(modelRun({ learner: { observationCoef: 0.1, maxTokens: 200 } }));
    // Twin: the whole sequence of each episode under the first weights, as a language model reads it.
    const { codec, model, params } = setUp(modelRun(echo));
    const engine = await openEngine({ name: 'reference' });
    const forward = await engine.compile(forwardGraph(model));
    const nlls: number[] = [];
    for (const one of played.slice(0, 4)) {
      const [group] = trainUnits(codec, [one], 0).flat();
      const ids = [...group!.prompt.tokens, ...group!.members[0]!.tokens];
      const sampled = new Set(group!.members[0]!.decisions.map(({ at }) => group!.prompt.tokens.length + at + 1));
      const first = Math.min(...sampled);
      const prompt = { tokens: Int32Array.from(ids), focus: new Set<number>() };
      const out = await forward.run({ ...promptFeeds(model, [prompt], ids.length), ...weightFeeds(model, params) });
      const logits = out.logits!.data as Float32Array;
      for (let i = first; i < ids.length; i++) {
        if (sampled.has(i)) continue;
        const row = logits.slice((i - 1) * model.vocabSize, i * model.vocabSize);
        const total = Math.log(row.reduce((sum, z) => sum + Math.exp(z), 0));
        nlls.push(total - row[ids[i]!]!);
      }
    }
    await engine.dispose();
    const mean = nlls.reduce((a, b) => a + b, 0) / nlls.length;
    expect(nlls.length).toBeGreaterThan(20);
    expect(rows[0]!.observationNll).toBeCloseTo(mean, 4);
    expect(parts.rows[0]!.observationNll).toBeCloseTo(mean, 4);
  });

  it('are learnt, where no episode earns anything and nothing else could be', { timeout: 60_000 }, async () => {
    const { rows } = await train(modelRun({ stop: { updates: 8 }, learner: { observationCoef: 1 } }));
    const nll = rows.map(({ observationNll }) => observationNll!);
    expect(nll).toHaveLength(8);
    expect(nll.at(-1)).toBeLessThan(nll[0]! - 1);
  });
});
