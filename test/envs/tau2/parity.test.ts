/** Recordings of the original: no difference in any, and any change of one is seen. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, describe, expect, it } from 'vitest';
import { DOMAINS } from '../../../envs/tau2/domains.ts';
import { systemPrompt } from '../../../envs/tau2/episode.ts';
import { parity as replay } from '../../../envs/tau2/parity.ts';
import { parity, readRecords } from '../../../experiments/parity.ts';
import type { Difference } from '../../../src/core/parity.ts';

const folder = join(process.env.LONGPLAY_GOLDEN ?? '../shared/golden', 'tau2');
const names = ['episodes.json', ...Object.keys(DOMAINS).map((id) => `${id}.jsonl.gz`)];
const files = names.map((name) => join(folder, name)).filter((file) => existsSync(file));
if (files.length === 0) console.log(`skipped: no golden traces in ${folder}; set LONGPLAY_GOLDEN`);

const scratch = mkdtempSync(join(tmpdir(), 'longplay-tau2-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** Every task, or else each tenth: all of them take a minute. */
const long = process.env.LONGPLAY_LONG === '1';

/** File with a share of a recording's lines, as they are: written anew, `2.0` would be `2`. */
function shortened(file: string): string {
  if (long || !file.endsWith('.jsonl.gz')) return file;
  const lines = gunzipSync(readFileSync(file)).toString('utf8').split('\n');
  const short = join(scratch, basename(file, '.gz'));
  writeFileSync(short, lines.filter((_, i) => i % 10 === 0).join('\n'));
  return short;
}

/** Kinds of differences in records that are written to a file, as recordings lie in one. */
async function differencesIn(records: readonly unknown[], name: string): Promise<string[]> {
  const file = join(scratch, name);
  const isLines = name.endsWith('.jsonl');
  writeFileSync(file, isLines ? records.map((one) => JSON.stringify(one)).join('\n') : JSON.stringify(records));
  const found: Difference[] = [];
  await replay(records, (difference) => found.push(difference), file);
  return found.map(({ what }) => what);
}

interface Prompts {
  readonly agent_system: string;
  readonly solo_system?: Readonly<Record<string, string>>;
}
interface Run {
  readonly calls: { text: string; error: boolean; agent_hash?: string }[];
  end: { agent_hash: string; agent_digest: string; agent_diff: unknown[] };
  reward: { reward: number; breakdown: Record<string, number>; action_checks: boolean[] };
}
interface Row {
  start: { agent_hash: string };
  readonly runs: Run[];
}
interface Episode {
  steps: number;
  errors: number;
  termination_reason: string;
  reward: number;
  readonly messages: { content: string }[];
}

describe.skipIf(files.length === 0)('parity with the original', { timeout: 300_000 }, () => {
  it.each(files)('has no difference in %s', async (file) => {
    const printed: string[] = [];
    expect(await parity('tau2', [shortened(file)], (line) => printed.push(line)), printed.join('\n')).toBe(0);
    expect(printed.at(-1)).toMatch(/^episodes [1-9]\d*, steps [1-9]\d*, differences 0$/);
  });

  it('has the system prompts of the original', () => {
    const prompts = readRecords(join(folder, 'data/prompts.json.gz'))[0] as Record<string, Prompts>;
    const ids = Object.keys(DOMAINS).filter((id) => id in prompts);
    expect(ids.length).toBeGreaterThan(2);
    for (const id of ids) {
      const { agent_system, solo_system } = prompts[id]!;
      expect(systemPrompt(DOMAINS[id]!, false)).toBe(agent_system);
      // The original has the ticket at the end of the prompt; here it is a message.
      for (const prompt of Object.values(solo_system ?? {})) {
        expect(`${systemPrompt(DOMAINS[id]!, true)}\n`).toBe(prompt.slice(0, prompt.indexOf('<ticket>')));
      }
    }
  });

  it('sees one changed text, flag, hash, digest, change or reward', async () => {
    const [original] = readRecords(join(folder, 'retail.jsonl.gz')) as Row[];
    const changed = (change: (row: Row, run: Run) => void) => {
      const row = structuredClone(original!);
      change(row, row.runs[0]!);
      return differencesIn([row], 'row.jsonl');
    };
    expect(await changed(() => {})).toEqual([]);
    expect(await changed((_, { calls }) => (calls[1]!.text += ' '))).toEqual(['text']);
    expect(await changed((_, { calls }) => (calls[1]!.error = true))).toEqual(['error']);
    expect(await changed((_, { calls }) => (calls[1]!.agent_hash = 'x'))).toEqual(['agent hash']);
    expect(await changed((row) => (row.start.agent_hash = 'x'))).toEqual(['agent hash at the start']);
    expect(await changed((_, { end }) => (end.agent_digest = 'x'))).toEqual(['agent digest at the end']);
    expect(await changed((_, { end }) => end.agent_diff.pop())).toEqual(['agent changes']);
    expect(await changed((_, { reward }) => (reward.reward = 0))).toEqual(['reward: reward']);
    expect(await changed((_, { reward }) => (reward.breakdown.DB = 0))).toEqual(['reward: breakdown']);
    expect(await changed((_, { reward }) => (reward.action_checks[0] = false))).toEqual(['reward: action_checks']);
  });

  it('sees one changed message, count, reason or reward of an episode', async () => {
    const [[original]] = readRecords(join(folder, 'episodes.json')) as [Episode[]];
    const changed = (change: (episode: Episode) => void) => {
      const episode = structuredClone(original!);
      change(episode);
      return differencesIn([episode], 'episodes.json');
    };
    expect(await changed(() => {})).toEqual([]);
    expect(await changed((episode) => (episode.messages[0]!.content += ' '))).toEqual(['messages']);
    expect(await changed((episode) => episode.steps++)).toEqual(['steps']);
    expect(await changed((episode) => episode.errors++)).toEqual(['errors']);
    expect(await changed((episode) => (episode.termination_reason = 'max_steps'))).toEqual(['ending']);
    expect(await changed((episode) => (episode.reward = 0))).toEqual(['reward']);
  });
});

it('refuses what is no recording of it', async () => {
  expect(() => replay([{ a: 1 }], () => {}, 'absent.json')).toThrow('expected tasks with runs, or episodes');
});
