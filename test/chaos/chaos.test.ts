import { describe, expect, it } from 'vitest';
import { ChaosLedger, chaosTable } from '../../src/chaos/chaos-ledger.ts';
import { fullDisk } from '../../src/chaos/full-disk.ts';
import { diskFault, stepFault } from '../../src/chaos/injector.ts';
import { type FaultKind, faultKinds, parseChaos } from '../../src/chaos/spec.ts';

describe('a chaos spec', () => {
  it('is kinds with rates and a seed', () => {
    expect(parseChaos('throw=0.01, hang=0.001,seed=7')).toEqual({ seed: 7, rates: { throw: 0.01, hang: 0.001 } });
    const { rates } = parseChaos('all=0.08,disk-full=0.5');
    expect(Object.keys(rates).sort()).toEqual([...faultKinds].sort());
    expect(rates.kill).toBe(0.01);
  });

  it.each(['', 'throw', 'throw=', 'throw=2', 'throw=-1', 'gremlins=0.1', 'seed=1.5', 'throw=0.6,nan=0.6'])(
    'refuses %j and states what was expected',
    (text) => {
      expect(() => parseChaos(text)).toThrow(expect.objectContaining({ code: 'BAD_ARGUMENT' }));
      expect(() => parseChaos(text)).toThrow(/^--chaos: '.*': expected .*, e\.g\. throw=0\.01/);
    },
  );
});

describe('the injector', () => {
  it('strikes at the stated rates, the same steps for the same seed', () => {
    const spec = parseChaos('throw=0.05,nan=0.02,slow=0.01,disk-full=0.25,seed=3');
    const counts: Partial<Record<FaultKind, number>> = {};
    let again = 0;
    const total = 40_000;
    for (let i = 0; i < total; i++) {
      const fault = stepFault(spec, i >> 3, i & 7);
      if (fault) counts[fault.kind] = (counts[fault.kind] ?? 0) + 1;
      if (fault?.kind === stepFault({ ...spec, seed: 4 }, i >> 3, i & 7)?.kind && fault) again++;
      expect(stepFault(spec, i >> 3, i & 7)).toEqual(fault);
    }
    expect(Object.keys(counts).sort()).toEqual(['nan', 'slow', 'throw']);
    // Within five standard deviations.
    for (const [kind, rate] of [
      ['throw', 0.05],
      ['nan', 0.02],
      ['slow', 0.01],
    ] as const) {
      expect(Math.abs(counts[kind]! - total * rate)).toBeLessThan(5 * Math.sqrt(total * rate));
    }
    expect(again).toBeLessThan(0.2 * counts.throw!);
    const full = Array.from({ length: 2000 }, (_, update) => diskFault(spec, update)).filter(Boolean).length;
    expect(Math.abs(full - 500)).toBeLessThan(100);
  });
});

describe('the ledger', () => {
  it('follows each fault to its end', () => {
    const ledger = new ChaosLedger(parseChaos('disk-full=1'));
    const kinds = ['throw', 'slow', 'duplicate', 'duplicate', 'nan', 'hang', 'drop'] as const;
    kinds.forEach((kind, episode) => {
      ledger.inject(episode, kind);
    });
    expect(ledger.recordFailed(0, 'threw')).toBe('throw');
    ledger.recordAnswered(1); // slow, in time
    ledger.recordAnswered(2);
    ledger.recordFailed(2, 'protocol'); // its second answer was noticed
    ledger.recordAnswered(3);
    ledger.late(3); // its second answer came when it was over
    ledger.recordAnswered(4); // a NaN that was not noticed
    ledger.recordClosed(5);
    expect(ledger.recordFailed(9, 'timeout')).toBeUndefined();
    ledger.checkpoint(1, false);
    ledger.checkpoint(2, true);
    ledger.end();
    const none = { injected: 1, detected: 0, absorbed: 0, abandoned: 0, lost: 0 };
    expect(ledger.report()).toMatchObject({
      kinds: {
        throw: { ...none, detected: 1 },
        slow: { ...none, absorbed: 1 },
        duplicate: { ...none, injected: 2, detected: 1, absorbed: 1 },
        nan: { ...none, lost: 1 },
        hang: { ...none, abandoned: 1 },
        drop: { ...none, abandoned: 1 },
        'disk-full': { ...none, injected: 2, detected: 1, lost: 1 },
      },
      unexplained: { timeout: 1 },
    });
    expect(chaosTable(ledger.report()).at(-1)).toBe('failures that no injected fault explains: 1 timeout');
  });
});

it('a full disk refuses with ENOSPC after the writes it still takes', () => {
  const written: string[] = [];
  const disk = fullDisk(1, { write: (path: string) => void written.push(path) } as never);
  disk.write('a', new Uint8Array());
  expect(() => disk.write('b', new Uint8Array())).toThrow(expect.objectContaining({ code: 'ENOSPC' }));
  expect(written).toEqual(['a']);
});
