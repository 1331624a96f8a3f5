/** Mutants: what is changed, what is left alone, and that each is still TypeScript. */
import { readFileSync } from 'node:fs';
import { parseAst } from 'rolldown/parseAst';
import { describe, expect, it } from 'vitest';
import { applyMutant, listMutants } from './mutate.ts';

const of = (source: string) => listMutants(source).map((mutant) => applyMutant(source, mutant));

describe('the mutants of a source', () => {
  it('swap operators, numbers and conditions, and drop statements', () => {
    expect(of('const x = a + 2;')).toEqual(['const x = a - 2;', 'const x = a + 3;']);
    expect(of('if (a < b) go();')).toEqual([
      'if (true) go();',
      'if (false) go();',
      'if (a <= b) go();',
      'if (a > b) go();',
      'if (a < b) ;',
    ]);
    expect(of('const y = -Math.max(a, b);')).toEqual(['const y =  Math.max(a, b);', 'const y = -Math.min(a, b);']);
    expect(of('n += k;')).toEqual([';', 'n -= k;', 'n = k;']);
    expect(of('const z = a ?? (b && !c);')).toEqual([
      'const z = a && (b && !c);',
      'const z = a ?? (b || !c);',
      'const z = a ?? (b &&  c);',
    ]);
  });

  it('leave types, texts, imports and errors alone', () => {
    expect(of("import { a } from './a1.ts'; interface B { c: 1 | -1 } type D = 2; const e = 'f + 1' as 'g';")).toEqual(
      [],
    );
    expect(of("throw new RangeError('expected ' + (n + 1));")).toEqual([]);
    expect(of('const a = b as { c: 3 }; const d = e!.f satisfies 4;')).toEqual([]);
  });

  it.each(['src/learning/schedule/horizon-schedule.ts', 'src/algo/advantages.ts', 'src/core/rng.ts'])(
    'of %s are TypeScript',
    (path) => {
      const source = readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
      const mutants = of(source);
      expect(mutants.length).toBeGreaterThan(20);
      expect(new Set(mutants).size).toBe(mutants.length);
      for (const mutant of mutants) expect(() => parseAst(mutant, { lang: 'ts' })).not.toThrow();
    },
  );
});
