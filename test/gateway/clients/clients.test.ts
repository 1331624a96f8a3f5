/**
 * Unchanged client libraries against the gateway: each scenario gets the recorded replies of its own, and must make the
 * recorded tree and come to the recorded answer. Where nothing was recorded, the script is one of `script.ts`.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type OpenGateway, openGateway } from '../../../src/gateway/server.ts';
import { type Recording, readRecordings, whyNoRecordings } from '../recordings.ts';
import { followScript, recordedScript, type Script, scriptOf } from './script.ts';

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
  [/^mastra-/, 'its installation has 500 MB'],
];

/** Scenarios whose structured answer is a call: only the recordings have its script. */
const BY_TOOL = /^(create-agent-structured|structured-function)/;

/** Clients that do not send the choice of tools that they were asked for. */
const UNSENT = ['langgraph-required-responses'];

const { dependencies } = JSON.parse(readFileSync(join(import.meta.dirname, 'package.json'), 'utf8')) as {
  readonly dependencies: Readonly<Record<string, string>>;
};
const missing = Object.keys(dependencies).filter(
  (name) => !existsSync(join(import.meta.dirname, 'node_modules', name)),
);
const why = missing.length > 0 ? `npm install --ignore-scripts in ${import.meta.dirname}: ${missing.join(', ')}` : '';
if (why) console.log(`live clients are skipped: ${why}`);
if (whyNoRecordings) console.log(`live clients play scripts alone: ${whyNoRecordings}`);

const isLong = process.env.LONGPLAY_LONG === '1';
const CLIENTS = readdirSync(import.meta.dirname)
  .filter((name) => name.endsWith('.mjs') && !['quiz.mjs', 'ai.mjs', 'langchain.mjs'].includes(name))
  .map((name) => name.slice(0, -'.mjs'.length));
/** Scenarios of `npm test`. */
const SHORT = ['openai-chat-tools-stream', 'ai-anthropic-tools', 'langgraph-react', 'anthropic-required'];

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
    return [{ scenario, play, script: scenario.includes('abort') ? scriptOf('abort')! : recordedScript(recording) }];
  });
  for (const [scenario, play] of Object.entries(scenarios)) {
    const script = scriptOf(scenario);
    if (!script || cases.some((one) => one.scenario === scenario) || BY_TOOL.test(scenario)) continue;
    if (/\bfault\b(?!-500)/.test(scenario)) continue;
    cases.push({ scenario, play, script });
  }
  return cases;
}

const { openQuiz } = (why ? {} : await import('./quiz.mjs' as string)) as { openQuiz: () => Context['quiz'] };

describe.skipIf(why !== '')(`live clients ${why}`, () => {
  let gateway: OpenGateway;
  beforeAll(async () => {
    gateway = await openGateway();
  });
  afterAll(() => gateway.close());

  describe.each(why ? [] : CLIENTS)('%s', async (client) => {
    const { scenarios } = (await import(join(import.meta.dirname, `${client}.mjs`))) as {
      readonly scenarios: Readonly<Record<string, Play>>;
    };
    const cases = listCases(
      client,
      scenarios,
      recordings.filter(({ head }) => head.client === client),
    ).filter(({ scenario }) => isLong || SHORT.includes(`${client}-${scenario}`));

    it.for(cases.map((one) => [one.scenario, one] as const))('%s', { timeout: 60_000 }, async ([scenario, one]) => {
      const { play, script } = one;
      const episode = gateway.open();
      const over = new AbortController();
      const quiz = openQuiz();
      const model = { baseURL: episode.baseURL, root: episode.root, apiKey: episode.key, name: 'policy' };
      const isOrdered = !scenario.includes('two-at-once'); // there they run as they come
      const orderOf = (log: readonly string[]) => (isOrdered ? log : log.toSorted());
      const width = script.calls.filter(({ parent }) => parent === null).length;
      const playing = play({ model, quiz, width })
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
        if (outcome.log !== undefined)
          expect(orderOf(quiz.log)).toEqual(orderOf(outcome.log.split(',').filter(Boolean)));
        expect(made.map(({ place }) => place).sort((a, b) => a - b)).toEqual(script.calls.map((_, i) => i));
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
  });
});
