/** Parity with recorded episodes of the original's orchestrator, whose two sides follow scripts. */
import type { Difference, ParityCounts } from '../../src/core/parity.ts';
import { toJson } from './digest.ts';
import { openEnvironment } from './domain.ts';
import { DOMAINS } from './domains.ts';
import { type Message, type MessageCall, Orchestrator } from './orchestrator.ts';
import type { Arguments } from './python/calls.ts';
import { parsePython } from './python/json.ts';
import type { PyValue } from './python/values.ts';
import { noReward, playGold, rewardOf } from './reward.ts';

type Report = (difference: Difference) => void;
type Row = ReadonlyMap<string, PyValue>;

/** Replays episodes: messages, steps, errors, the reason of the end, the reward and the hashes at the end. */
export function replayEpisodes(rows: readonly Row[], report: Report): ParityCounts {
  let steps = 0;
  for (const row of rows) {
    const where = `episode ${row.get('i')} (${row.get('name')})`;
    const got = replay(row);
    steps += got.steps;
    const raised = row.get('raised');
    const reward = { reward: toJson(row.get('reward') ?? null), breakdown: toSortedJson(row.get('breakdown')) };
    const expected = {
      messages: toJson(row.get('messages')!),
      steps: Number(row.get('steps')),
      errors: Number(row.get('errors')),
      ...(raised === undefined ? { ending: row.get('termination_reason'), ...reward } : { ending: null }),
      end: toJson(row.get('end')!),
    };
    for (const [what, value] of Object.entries(expected)) {
      compare(report, where, what, value, got[what as keyof typeof got]);
    }
  }
  return { episodes: rows.length, steps };
}

function replay(row: Row) {
  const domain = DOMAINS[String(row.get('domain'))]!;
  const task = domain.tasks().find(({ id }) => id === row.get('task_id'))!;
  const isSolo = row.get('solo') === true;
  const environment = openEnvironment(domain, task, isSolo);
  const limits = {
    maxSteps: Number(row.get('max_steps')),
    maxErrors: Number(row.get('max_errors')),
    validates: row.get('validate_communication') === true,
    agentStops: true,
  };
  const course = new Orchestrator(task, environment, limits, isSolo);
  const scripts = { assistant: readScript(row.get('agent')), user: readScript(row.get('user')) };
  const turns = { assistant: 0, user: 0 };
  let hasRaised = false;
  while (!course.ending && !hasRaised) {
    if (course.next === 'tools') {
      course.execute();
      continue;
    }
    const side = course.next;
    const turn = ++turns[side];
    const { text, calls } = scripts[side][turn - 1]!;
    const prefix = side === 'user' ? 'u' : 'a';
    try {
      course.add(
        text,
        calls.map(([name, args], i) => ({ id: `${prefix}${turn}_${i}`, name, args })),
      );
    } catch (thrown) {
      if (!(thrown instanceof RangeError)) throw thrown;
      hasRaised = true;
    }
  }
  const isStopped = course.ending === 'user_stop' || course.ending === 'agent_stop';
  const { reward, breakdown } = isStopped
    ? rewardOf(task, course.messages, environment, playGold(domain, task))
    : noReward();
  return {
    messages: toJson(parsePython(JSON.stringify(course.messages.map(toRecorded)))),
    steps: course.steps,
    errors: course.errors,
    ending: course.ending ?? null,
    reward,
    breakdown: toSortedJson(new Map(Object.entries(breakdown))),
    end: { agent_hash: environment.hash('assistant'), user_hash: environment.hash('user') },
  };
}

function readScript(script: PyValue | undefined): { readonly text: string; readonly calls: [string, Arguments][] }[] {
  if (!Array.isArray(script)) return [];
  return (script as unknown as Row[]).map((entry) => ({
    text: String(entry.get('text') ?? ''),
    calls: (entry.get('calls') ?? []) as unknown as [string, Arguments][],
  }));
}

function toSortedJson(breakdown: PyValue | undefined): unknown {
  if (!(breakdown instanceof Map)) return undefined;
  return toJson(breakdown);
}

/** Message in the form of the recordings. */
function toRecorded({ role, content, calls, answers }: Message): unknown {
  if (answers) return { role, content, id: answers.id, requestor: answers.side, error: answers.error };
  const shown = content === '' ? null : content;
  if (calls.length === 0) return { role, content: shown };
  const list = calls.map(({ id, name, args }: MessageCall) => [id, role, name, toJson(args as Map<string, PyValue>)]);
  return { role, content: shown, calls: list };
}

/** Reports two values that differ as JSON. */
export function compare(report: Report, where: string, what: string, expected: unknown, got: unknown): void {
  if (JSON.stringify(expected) !== JSON.stringify(got)) report({ where, what, expected, got });
}
