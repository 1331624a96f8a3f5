import { describe, expect, it } from 'vitest';
import { type Decision, versionRuns, versionsKept } from '../../src/core/trajectory.ts';

const base = { context: new Int32Array(), value: 0 };
const run = (versions: readonly number[]): Decision => ({
  ...base,
  kind: 'tokens',
  tokens: new Int32Array(versions.length),
  logprobs: new Float32Array(versions.length),
  masked: false,
  ...versionsKept(versions),
});

describe('versions of a run of tokens', () => {
  it('are one number where no update came in between', () => {
    expect(versionsKept([3, 3, 3])).toEqual({ version: 3 });
    expect(versionRuns(run([3, 3, 3]))).toEqual([{ version: 3, tokens: 3 }]);
  });

  it('are run-length coded where one did; the oldest is the decision’s', () => {
    expect(versionsKept([3, 3, 4, 6, 6, 6])).toEqual({ version: 3, versions: Int32Array.of(3, 2, 4, 1, 6, 3) });
    expect(versionRuns(run([3, 3, 4, 6, 6, 6]))).toEqual([
      { version: 3, tokens: 2 },
      { version: 4, tokens: 1 },
      { version: 6, tokens: 3 },
    ]);
    expect(versionsKept([5, 2, 5]).version).toBe(2);
  });

  it('of a choice are its one', () => {
    expect(versionRuns({ ...base, kind: 'choice', version: 7, choice: 0, logprob: 0 })).toEqual([
      { version: 7, tokens: 1 },
    ]);
  });
});
