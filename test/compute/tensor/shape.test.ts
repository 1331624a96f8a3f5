import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  broadcastShapes,
  canonical,
  type Dim,
  evaluate,
  minus,
  multipleOf,
  plus,
  times,
} from '../../../src/compute/tensor/shape.ts';
import { ShapeError } from '../../../src/core/errors.ts';

const symbols = { G: 3, K: 5, T: 7 };
const dim: fc.Arbitrary<Dim> = fc.letrec<{ dim: Dim }>((tie) => ({
  dim: fc.oneof(
    { depthSize: 'small' },
    fc.nat(9),
    fc.constantFrom('G', 'K', 'T'),
    fc.tuple(tie('dim'), tie('dim')).map(([a, b]) => times(a, b)),
    fc.tuple(tie('dim'), tie('dim')).map(([a, b]) => plus(a, b)),
  ),
})).dim;
const value = (d: Dim) => evaluate(d, new Map(Object.entries(symbols)));

describe('symbolic sizes', () => {
  it('are written coefficient first, symbols sorted', () => {
    expect(times('G', 8)).toBe('8*G');
    expect(times('K', 2, 'G', 4)).toBe('8*G*K');
    expect(times(plus('T', 'P'), 8)).toBe('8*P+8*T');
    expect(canonical('K*8*G')).toBe('8*G*K');
    expect(minus('P+T', 'P')).toBe('T');
    expect(minus('T', 1)).toBe('T-1');
    expect(times(2, 3)).toBe(6);
  });

  it('compute as numbers do, whatever the order', () => {
    fc.assert(
      fc.property(dim, dim, (a, b) => {
        expect(value(times(a, b))).toBe(value(a) * value(b));
        expect(value(plus(a, b))).toBe(value(a) + value(b));
        expect(times(a, b)).toBe(times(b, a));
        expect(plus(a, b)).toBe(plus(b, a));
        expect(minus(plus(a, b), b)).toBe(a);
        expect(canonical(a)).toBe(a);
      }),
    );
  });

  it('give a symbol away only where they are a multiple of it', () => {
    expect(multipleOf('8*G')).toEqual({ symbol: 'G', multiple: 8 });
    expect([multipleOf('G*K'), multipleOf('G+1'), multipleOf(3)]).toEqual([undefined, undefined, undefined]);
  });

  it.each([-1, 1.5, Number.NaN, '', 'N+', '2N', 'N M', 'N**2'])('refuse %s', (bad) => {
    expect(() => canonical(bad)).toThrow(ShapeError);
  });

  it('broadcast only with their equals and a literal 1', () => {
    expect(broadcastShapes(['N', 1], ['T'])).toEqual(['N', 'T']);
    expect(broadcastShapes(['N'], ['T'])).toBeUndefined();
    expect(broadcastShapes(['N'], [2])).toBeUndefined();
  });
});
