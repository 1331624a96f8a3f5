/** Recorded episodes of the original: no difference in `original`, only the README's rows in `corrected`. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createEnv } from '../../../envs/textcraft/index.ts';
import { parity as replay } from '../../../envs/textcraft/parity.ts';
import { parity, readRecords } from '../../../experiments/parity.ts';
import type { Difference } from '../../../src/core/parity.ts';

const folder = join(process.env.LONGPLAY_GOLDEN ?? '../shared/golden', 'textcraft');
const files = ['episodes.jsonl.gz', 'http.jsonl.gz', 'tree.json.gz'].map((name) => join(folder, name));
const absent = files.filter((file) => !existsSync(file));
if (absent.length > 0) console.log(`skipped: no golden traces (${absent.join(', ')}); set LONGPLAY_GOLDEN`);

interface Episode {
  readonly goal: string;
  readonly commands: readonly string[];
  steps: readonly {
    readonly action: string;
    readonly observation: string;
    readonly reward: number;
    readonly done: boolean;
    readonly inventory: readonly (readonly [string, number])[];
  }[];
}

describe.skipIf(absent.length > 0)('parity with the original', () => {
  it('has no difference in any recording', async () => {
    const printed: string[] = [];
    expect(await parity('textcraft', files, (line) => printed.push(line)), printed.join('\n')).toBe(0);
    expect(printed.at(-1)).toMatch(/^episodes [1-9]\d*, steps [1-9]\d*, differences 0$/);
  });

  it('sees one changed character, reward, flag, amount or recipe', async () => {
    const count = async (records: readonly unknown[]) => {
      const found: Difference[] = [];
      await replay(records, (difference) => found.push(difference), 'textcraft');
      return found.length;
    };
    const changed = (change: (episode: Record<string, unknown>, step: Record<string, unknown>) => void) => {
      const episode = structuredClone(readRecords(files[0]!)[3]) as Episode & Record<string, unknown>;
      change(episode, episode.steps[1] as unknown as Record<string, unknown>);
      return [episode];
    };
    expect(await count(changed(() => {}))).toBe(0);
    expect(await count(changed((_, step) => (step.observation += ' ')))).toBe(1);
    expect(await count(changed((_, step) => (step.reward = 0.5)))).toBe(1);
    expect(await count(changed((_, step) => (step.done = !step.done)))).toBe(1);
    expect(await count(changed((_, step) => (step.inventory = [])))).toBe(1);
    expect(await count(changed((episode) => (episode.data_idx = Number(episode.data_idx) + 1)))).toBe(1);
    expect(await count(changed((episode) => (episode.initial_observation = 'Goal: craft stick.')))).toBe(1);
    const tree = structuredClone(readRecords(files[2]!)[0]) as { recipes: { recipes: { count: number }[] }[] };
    tree.recipes[17]!.recipes[0]!.count++;
    expect(await count([tree])).toBe(1);
    const exchanges = structuredClone(readRecords(files[1]!)) as { path: string; response: { observation: string } }[];
    exchanges.find(({ path }) => path === '/step')!.response.observation += '!';
    expect(await count(exchanges)).toBeGreaterThan(0);
  });

  it('differs in the corrected world only after the end, in entries of none, and in the name of a tag', () => {
    const env = createEnv();
    const withoutNone = (text: string) => {
      return text
        .replace(/\[[^\]]*\] \(0\) /g, '')
        .replace(/^Inventory: $/, 'Inventory: You are not carrying anything.');
    };
    let steps = 0;
    for (const { goal, commands, steps: recorded } of readRecords(files[0]!) as Episode[]) {
      const session = env.openFrom({ goal: goal.replace('minecraft:', ''), commands });
      for (const { action, observation, reward, done, inventory } of recorded) {
        const answer = session.step(action);
        if (/using (.*, *)?0+ /.test(action) && answer.observation !== observation) {
          // None of something: the original finds it held after `get 0`, ours never. It fails either way.
          expect(observation).toMatch(/^Could not find a valid recipe /);
          expect(answer.observation).toMatch(/^Could not find enough items /);
        } else {
          const nameless = observation.endsWith(' to craft None');
          const ours = nameless ? answer.observation.replace(/minecraft:\w+$/, 'None') : answer.observation;
          expect(ours).toBe(withoutNone(observation));
        }
        expect([answer.reward, answer.kind === 'terminated']).toEqual([reward, done]);
        const ours = session.inventory.map(([name, amount]) => [`minecraft:${name}`, Number(amount)]);
        expect(ours).toEqual(inventory.filter(([, amount]) => amount !== 0));
        steps++;
        if (done) break;
      }
    }
    expect(steps).toBeGreaterThan(1000);
  });
});
