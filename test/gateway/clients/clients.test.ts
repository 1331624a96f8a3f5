/**
 * Unchanged client libraries against the gateway: each scenario gets the recorded replies of its own, and must make the
 * recorded tree and come to the recorded answer. Where nothing was recorded, the script is one of `script.ts`.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Rng } from '../../../src/core/rng.ts';
import { AgentSession } from '../../../src/gateway/agent-session.ts';
import type { GatewayEpisode } from '../../../src/gateway/gateway.ts';
import { type OpenGateway, openGateway } from '../../../src/gateway/server.ts';
import { type Recording, readRecordings, whyNoRecordings } from '../recordings.ts';
import { followScript, type Script, scriptOf, scriptOfRecording } from './script.ts';

interface Context {
  readonly model: Readonly<Record<'baseURL' | 'root' | 'apiKey' | 'name', string>>;
  readonly quiz: { readonly log: readonly string[] };
  /** Agents at once, where a scenario plays several. */
  readonly width: number;
}

/** Agent. @returns its answer */
type Play = (context: Context) => Promise<string>;

/** Characters of a recorded answer. */
const MAX_RECORDED = 60;

/** Files that are played by replay alone, and why. */
const REPLAY_ONLY: readonly (readonly [name: RegExp, why: string])[] = [
  [/fault-cut/, 'the gateway ends no stream before its finish'],
  [/^openai-chat-n2$/, 'two choices are refused by name'],
  [
    /^anthropic-tool-runner(-stream|-threads-lost)?$/,
    'threads are refused: -threads-refused and -unthreaded are played',
  ],
  [/^(ai-\w+|ai)-compaction$/, 'this major of the library rewrites the list anew each step'],
  [/^claude-agent-/, 'its program has 400 MB'],
  [/^mastra-(?!.*@node20)/, 'a major for Node 22'],
  [/^mastra-compaction-/, 'its limiter is of another package'],
];

/** Recordings that are played, at the least. */
const MIN_PLAYED = 160;

/** Scenarios whose tree or end is of their own kind: only the recordings have their script. */
const RECORDED_ONLY = [
  /create-agent-structured|structured-function|two-runs/,
  /^openai-chat-(tools|parallel)/,
  /^openai-agents-chat-required$/,
  /^langchain-anthropic-structured$/,
  /^mastra-(tools|parallel|required)/,
];

/** Agents whose client forces the first call alone. */
const FREED = ['openai-agents-chat-required'];

/** Clients that do not send the choice of tools that they were asked for. */
const UNSENT = ['langgraph-required-responses'];

const isLong = process.env.LONGPLAY_LONG === '1';
/** Scenarios of `npm test`. */
const SHORT = ['openai-chat-tools-stream', 'ai-anthropic-tools', 'langgraph-react', 'anthropic-required'];

const folder = import.meta.dirname;
/** Modules that several clients share. */
const SHARED = ['quiz', 'ai', 'langchain'];
const clients = readdirSync(folder)
  .filter((file) => file.endsWith('.mjs') && !SHARED.includes(file.slice(0, -'.mjs'.length)))
  .map((file) => file.slice(0, -'.mjs'.length));

/** Lists the libraries that a module imports, by itself or by those beside it. */
function librariesOf(module: string): readonly string[] {
  const text = readFileSync(join(folder, `${module}.mjs`), 'utf8');
  const libraries = [...text.matchAll(/from '((?:@[\w-]+\/)?[\w-]+)/g)].map(([, name]) => name!);
  const beside = [...text.matchAll(/from '\.\/([\w-]+)\.mjs'/g)].map(([, name]) => name!);
  return [...new Set([...libraries, ...beside.flatMap(librariesOf)])];
}

const missing = new Map(
  clients.map((client) => [
    client,
    librariesOf(client).filter((library) => !existsSync(join(folder, 'node_modules', library))),
  ]),
);
for (const [client, libraries] of missing) {
  if (libraries.length === 0) continue;
  console.log(`live client ${client} is skipped: npm install --ignore-scripts in ${folder} (${libraries.join(', ')})`);
}
if (whyNoRecordings) console.log(`live clients play scripts alone: ${whyNoRecordings}`);
const played = clients.filter((client) => {
  return missing.get(client)!.length === 0 && (isLong || SHORT.some((name) => name.startsWith(`${client}-`)));
});

const recordings = readRecordings().filter(({ name }) => !REPLAY_ONLY.some(([pattern]) => pattern.test(name)));

/** Finds what plays a scenario: itself, or the agent of its client that meets faults. */
function find(scenarios: Readonly<Record<string, Play>>, scenario: string): Play | undefined {
  return scenarios[scenario] ?? scenarios[scenario.replace(/fault-\w+/, 'fault')];
}

/** Scenario of a client, and the script that it meets. */
interface Case {
  readonly scenario: string;
  readonly play: Play;
  readonly script: Script;
}

/** Lists the scenarios of a client: the recorded ones, then its others. */
function listCases(client: string, scenarios: Readonly<Record<string, Play>>, recorded: readonly Recording[]): Case[] {
  const cases = recorded.flatMap((recording): Case[] => {
    const { scenario } = recording.head;
    const play = find(scenarios, scenario);
    if (!play) throw new Error(`${client} has no agent for the recording of ${scenario}`);
    return [{ scenario, play, script: scenario.includes('abort') ? scriptOf('abort')! : scriptOfRecording(recording) }];
  });
  for (const [scenario, play] of Object.entries(scenarios)) {
    const script = scriptOf(scenario);
    if (!script || cases.some((one) => one.scenario === scenario)) continue;
    if (RECORDED_ONLY.some((pattern) => pattern.test(`${client}-${scenario}`))) continue;
    if (/\bfault\b(?!-500)/.test(scenario)) continue;
    cases.push({ scenario, play, script });
  }
  return cases;
}

function load<T>(module: string): Promise<T> {
  return import(join(folder, `${module}.mjs`)) as Promise<T>;
}

function modelOf({ baseURL, root, key }: GatewayEpisode): Context['model'] {
  return { baseURL, root, apiKey: key, name: 'policy' };
}

/** True where every call of a scenario must be answered by a call. */
function isForced(name: string): boolean {
  return /\brequired\b/.test(name) && !UNSENT.includes(name) && !FREED.includes(name);
}

it('pin the majors of their libraries, each of which a client imports', () => {
  const { dependencies, optionalDependencies } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
    readonly [kind: string]: Readonly<Record<string, string>>;
  };
  const pinned = { ...dependencies, ...optionalDependencies };
  expect(Object.keys(pinned).sort()).toEqual([...new Set(clients.flatMap(librariesOf))].sort());
  for (const version of Object.values(pinned)) expect(version).toMatch(/^[\^~]\d+\.\d+\.\d+$/);
});

it.skipIf(whyNoRecordings !== undefined)('are of every client that was recorded', () => {
  for (const { head } of recordings) expect(clients).toContain(head.client);
  for (const [pattern] of REPLAY_ONLY) expect(readRecordings().some(({ name }) => pattern.test(name))).toBe(true);
  expect(recordings.length).toBeGreaterThanOrEqual(MIN_PLAYED);
});

describe.skipIf(played.length === 0).each(played)('the live client %s', async (client) => {
  const { scenarios } = await load<{ readonly scenarios: Readonly<Record<string, Play>> }>(client);
  const { openQuiz } = await load<{ openQuiz(): Context['quiz'] }>('quiz');
  const ofClient = recordings.filter(({ head }) => head.client === client);
  const cases = listCases(client, scenarios, ofClient).filter(({ scenario }) => {
    return isLong || SHORT.includes(`${client}-${scenario}`);
  });
  const forced = Object.keys(scenarios).filter((scenario) => {
    return isForced(`${client}-${scenario}`) && (isLong || SHORT.includes(`${client}-${scenario}`));
  });
  let gateway: OpenGateway;
  beforeAll(async () => {
    gateway = await openGateway();
  });
  afterAll(() => gateway.close());

  it.for(cases.map((one) => [one.scenario, one] as const))('%s', { timeout: 60_000 }, async ([scenario, one]) => {
    const { play, script } = one;
    const episode = gateway.open();
    const over = new AbortController();
    const quiz = openQuiz();
    const isOrdered = !scenario.includes('two-at-once'); // there they run as they come
    const orderOf = (log: readonly string[]) => (isOrdered ? log : log.toSorted());
    const width = script.calls.filter(({ parent }) => parent === null).length;
    const playing = play({ model: modelOf(episode), quiz, width })
      .then((answer) => ({ answer, error: undefined }))
      .catch((thrown: Error) => ({ answer: undefined, error: thrown }))
      .finally(() => over.abort());
    try {
      const made = await followScript(episode, script, over.signal);
      const { answer, error } = await playing;
      const { outcome } = script;
      if (outcome.error === undefined && error) throw error;
      expect(error?.constructor.name).toBe(outcome.error);
      if (!error) expect(answer!.slice(0, MAX_RECORDED)).toBe(outcome.answer!.slice(0, MAX_RECORDED));
      if (outcome.log !== undefined) expect(orderOf(quiz.log)).toEqual(orderOf(outcome.log.split(',').filter(Boolean)));
      expect(made.map(({ place }) => place).sort((a, b) => a - b)).toEqual(script.calls.map((_, i) => i));
      for (const { call } of made) {
        const result = call.parent === null ? undefined : call.fresh.find(({ role }) => role === 'tool');
        if (result) expect(result).toHaveProperty('callId', made[call.parent!]!.call.callId(0)); // not a twin's
      }
      if (!scenario.includes('abort')) expect(episode.takeUndelivered()).toEqual([]);
      if (scenario.includes('required')) {
        const isSent = !UNSENT.includes(`${client}-${scenario}`);
        expect(made[0]!.call.call.toolChoice).toBe(isSent ? 'required' : 'auto');
      }
    } finally {
      episode.close();
      await playing;
    }
  });

  it.each(forced)('%s calls at each turn, whatever a policy chooses', async (scenario) => {
    for (let seed = 0; seed < 4; seed++) {
      const rng = Rng.fromSeed(seed);
      const quiz = openQuiz();
      const episode = gateway.open();
      const run = async () => {
        await scenarios[scenario]!({ model: modelOf(episode), quiz, width: 1 });
        return { reward: 1, success: true, metrics: {} };
      };
      const session = await AgentSession.open({ gateway: episode, run, horizon: 6, rewardAtHorizon: 'keep' });
      let replies = 0;
      for (let isOver = false; !isOver; ) {
        const choices = session.actions();
        const taken = await session.step(choices[rng.int(choices.length)]!);
        if (taken.kind === 'terminated' || !taken.partial) replies++;
        isOver = taken.kind === 'terminated' || replies === 6;
      }
      session.close();
      expect(replies).toBeGreaterThan(0);
      expect(quiz.log.length).toBeGreaterThanOrEqual(replies);
    }
  });
});
