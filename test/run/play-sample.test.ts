/** A sample of a language model's play: what it shows, and what it advises. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeTinyChatModel } from '../../experiments/tiny-chat-model.ts';
import { describeSample, playSample, summariseSample } from '../../src/run/play-sample.ts';
import { trajectoryOf } from '../support/traces.ts';

const folder = mkdtempSync(join(tmpdir(), 'longplay-sample-test-'));
beforeAll(() => void writeTinyChatModel(folder));
afterAll(() => rmSync(folder, { recursive: true }));

describe('a sample of play', () => {
  it('counts answers that name an action, and a listed one', () => {
    const base = trajectoryOf({ actions: ['go', 'look', 'sing', 'hum'], success: true });
    const respond = (formatError?: string) => ({
      response: {
        text: '',
        promptTokens: 1,
        completionTokens: 1,
        ...(formatError === undefined ? {} : { formatError }),
      },
    });
    const decision = { kind: 'tokens', version: 0, value: 0, masked: false } as const;
    const run = { ...decision, context: new Int32Array(0), tokens: new Int32Array(3), logprobs: new Float32Array(3) };
    const turns = base.turns.map((turn, i) => ({
      ...turn,
      actions: Int32Array.of(0, 1), // go and look
      ...respond(i === 1 ? 'no action' : undefined),
      decision: run,
    }));
    const sample = summariseSample([{ ...base, actionTable: ['go', 'look'], turns }, trajectoryOf({ actions: [] })]);
    expect(sample).toEqual({ episodes: 2, solved: 1, turns: 4, read: 3, listed: 1, tokens: 12 });
    expect(describeSample(sample, false)).toBe(
      '75 % of answers name an action, 25 % a listed one; 3.0 tokens a turn; 1 of 2 solved in 4 turns; keep policy.masked, or imitate first (warmStart.episodes, or longplay sft)',
    );
    expect(describeSample({ ...sample, listed: 2 }, false)).not.toMatch(/keep/);
    expect(describeSample(sample, true)).toBe('3.0 tokens a turn; 1 of 2 solved in 4 turns');
  });

  it('plays both ways to answer, by the code of a run', async () => {
    const checks = await playSample(folder, 'none', 'textcraft');
    expect(checks.map(({ what, ok }) => [what, ok])).toEqual([
      ['textcraft, free answers', true],
      ['textcraft, listed actions only', true],
    ]);
    expect(checks[0]!.found).toMatch(/^\d+ % of answers name an action, \d+ % a listed one; .* of 4 solved in 4 turns/);
  }, 60_000);

  it('is one line where the model cannot play', async () => {
    const checks = await playSample(join(folder, 'nowhere'), 'none', 'textcraft');
    expect(checks).toEqual([{ what: 'textcraft, free answers', ok: false, found: expect.stringMatching(/nowhere/) }]);
  });
});
