/** CONFIG.md and the JSON schema against the zod source that they are made from. `UPDATE_FIXTURES=1` writes them anew. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { renderAlgorithmPage } from '../../src/config/algorithm-page.ts';
import { ALGORITHM_PARTS, listAlgorithms } from '../../src/config/algorithms.ts';
import { checkRunConfig } from '../../src/config/load.ts';
import { makeConfigReference } from '../../src/config/reference.ts';
import { runConfigSchema } from '../../src/config/run-config.ts';

const root = new URL('../../', import.meta.url);
const read = (path: string) => readFileSync(new URL(path, root), 'utf8');
const SCHEMA = 'src/config/run-config.schema.json';
const { keys, page, schema } = makeConfigReference(read('src/config/run-config.ts'));
if (process.env.UPDATE_FIXTURES === '1') {
  writeFileSync(new URL('CONFIG.md', root), page);
  writeFileSync(new URL('ALGORITHMS.md', root), renderAlgorithmPage());
  writeFileSync(new URL(SCHEMA, root), `${JSON.stringify(schema, null, 2)}\n`);
}

describe('the reference of the configuration', () => {
  it('is CONFIG.md, key by key', () => {
    expect(keys.length).toBeGreaterThan(120);
    expect(page).toBe(read('CONFIG.md'));
  });
  it('explains every key', () => {
    expect(keys.filter(({ meaning }) => meaning === '').map(({ path }) => path)).toEqual([]);
  });
  it('is the JSON schema that is shipped', () => {
    expect(schema).toEqual(JSON.parse(read(SCHEMA)));
  });
  it('would notice a key that is new, and a default that moved', () => {
    expect(keys.find(({ path }) => path === 'learner.maxLag')).toMatchObject({
      default: '`2`',
      type: /whole number, 0 … 10,000/,
    });
    expect(keys.find(({ path }) => path === 'learner.estimator.lambda')).toMatchObject({ kinds: ['ppo'] });
  });
});

describe('the table of algorithms', () => {
  it('is ALGORITHMS.md', () => {
    expect(renderAlgorithmPage()).toBe(read('ALGORITHMS.md'));
  });
  it('has every kind that the configuration takes, with each of its keys', () => {
    for (const { path, discriminator, facts } of ALGORITHM_PARTS) {
      const { type } = keys.find((key) => key.path === `${path}.${discriminator}`)!;
      expect([...type.matchAll(/`([^`]+)`/g)].map(([, word]) => word).sort()).toEqual(Object.keys(facts).sort());
    }
    const knobs = listAlgorithms().flatMap(({ algorithms }) => algorithms.flatMap((one) => one.knobs));
    const own = keys.filter(
      ({ path, kinds }) => /^learner\.(policyLoss|estimator|offPolicy|distillation)\./.test(path) && kinds.length > 0,
    );
    expect(own.length).toBeGreaterThan(15);
    expect(own.filter(({ path }) => !knobs.some((knob) => knob.path === path))).toEqual([]);
  });
  it('cites a paper and says when, for each', () => {
    for (const { algorithms } of listAlgorithms()) {
      for (const { name, links, summary, use } of algorithms) {
        expect(summary !== '' && use !== '', name).toBe(true);
        if (name !== 'unclipped') expect(links.length, name).toBeGreaterThan(0);
        for (const link of links) expect(link).toMatch(/^https:\/\/(arxiv\.org\/abs\/\d{4}\.\d{5}|openreview\.net\/)/);
      }
    }
  });
});

describe('a whole configuration that a page shows', () => {
  it.each([
    ['CONFIG.md', '## Set these first'],
    ['WORLDS.md', '# Your own world'],
  ])('%s: is accepted', (page, heading) => {
    const [, shown] = /```yaml\n([\s\S]*?)```/.exec(read(page).split(heading)[1]!)!;
    const config = checkRunConfig(parse(shown!), page);
    expect(config.horizon).toMatchObject((parse(shown!) as { horizon: object }).horizon);
  });
});

describe('the page is true', () => {
  type Raw = { [key: string]: unknown };
  const words = (type: string) => [...type.matchAll(/`([^`]+)`/g)].map(([, word]) => word!);
  /** Bounds of a number as the page writes them; `2^31 − 1`, `1e12`, `1,000,000`. */
  const bounds = (type: string) => {
    const [, above, low, high] = /number, (> )?(\S+) … (.+)$/.exec(type) ?? [];
    const number = (text: string) => {
      const [, base, power, less] = /^(\d+)\^(\d+)( − 1)?$/.exec(text) ?? [];
      return base ? Number(base) ** Number(power) - (less ? 1 : 0) : Number(text.replaceAll(',', ''));
    };
    return low === undefined ? undefined : { above: above !== undefined, low: number(low), high: number(high!) };
  };
  const some = (type: string): unknown => {
    const list = type.startsWith('list of ');
    const [word] = words(type);
    const one = word ?? bounds(type)?.low ?? (type.includes('text') ? 'textcraft' : {});
    return list ? [one] : one;
  };

  /** A configuration with a key set, and around it what has to be there for it. */
  function withKey({ path, kinds }: (typeof keys)[number], value: unknown): Raw {
    if (path.startsWith('worlds[].')) return withWorldKey(path.split('.').slice(1), value);
    const raw: Raw = { env: { id: 'textcraft' }, horizon: { type: 'fixed', rounds: 8 }, stop: { updates: 1 } };
    const names = path.split('.');
    let at = raw;
    for (const [depth, name] of names.slice(0, -1).entries()) {
      const parent = names.slice(0, depth + 1).join('.');
      const siblings = keys.filter(
        (key) => key.path.startsWith(`${parent}.`) && !key.path.slice(parent.length + 1).includes('.'),
      );
      const last = depth === names.length - 2;
      const kind = last ? kinds[0] : undefined;
      const section: Raw = kind === undefined ? ((at[name] as Raw | undefined) ?? {}) : {};
      for (const key of siblings) {
        const own = key.path.slice(parent.length + 1);
        if (kind !== undefined && words(key.type).includes(kind)) section[own] = kind;
        else if (key.default === 'must be given' && (key.kinds.length === 0 || (kind && key.kinds.includes(kind)))) {
          section[own] ??= some(key.type);
        }
      }
      at[name] = section;
      at = section;
    }
    at[names.at(-1)!] = value;
    return raw;
  }
  /** A configuration of two worlds, the first of them with a key set. */
  function withWorldKey([name, inner]: readonly string[], value: unknown): Raw {
    const horizon = { type: 'fixed', rounds: 8 };
    const given =
      inner === undefined
        ? { [name!]: value }
        : name === 'schedule[]'
          ? { schedule: [{ from: 0, weight: 1, [inner]: value }] }
          : { [name!]: { [inner]: value } };
    const worlds = [
      { name: 'a', env: { id: 'textcraft' }, horizon, ...given },
      { name: 'b', env: { id: 'textcraft' }, horizon },
    ];
    return { worlds, stop: { updates: 1 } };
  }
  /** Path of a key as messages have it: that of a list's first entry. */
  const placeOf = (path: string) => path.replaceAll('[]', '.0');
  const refusal = (raw: Raw): string => {
    try {
      checkRunConfig(raw, 'page');
      return '';
    } catch (thrown) {
      return (thrown as Error).message;
    }
  };

  it('in its ranges: a number outside is refused by the name of its key, the ends are taken', () => {
    let ranges = 0;
    for (const key of keys) {
      const range = bounds(key.type);
      if (!range || key.type.includes(' or ')) continue;
      ranges++;
      const list = key.type.startsWith('list of ');
      const as = (n: number) => withKey(key, list ? [n] : n);
      const step = key.type.includes('whole') ? 1 : Math.max(1e-9, Math.abs(range.high) * 1e-9);
      for (const wrong of [range.above ? range.low : range.low - step, range.high + step, Number.NaN]) {
        expect(refusal(as(wrong)), `${key.path}=${wrong}`).toContain(placeOf(key.path));
      }
      if (key.type.includes('whole')) expect(refusal(as(range.low + 0.5)), key.path).toContain(placeOf(key.path));
      for (const right of [range.above ? range.high / 2 : range.low, range.high]) {
        const { error } = runConfigSchema.safeParse(as(right));
        const about = error?.issues.filter(({ path }) => path.join('.').startsWith(placeOf(key.path))) ?? [];
        expect(about, `${key.path}=${right}`).toEqual([]);
      }
    }
    expect(ranges).toBeGreaterThan(60);
  });

  it('by its allowed values: each one is accepted, another is refused with the name of its key', () => {
    let enums = 0;
    for (const key of keys) {
      if (!/^`[^`]+`(, `[^`]+`)+$/.test(key.type)) continue;
      enums++;
      for (const word of words(key.type)) {
        const kind = keys.some(
          ({ path, kinds }) => path.startsWith(key.path.replace(/\.[^.]+$/, '.')) && kinds.includes(word),
        );
        if (kind) continue; // such a kind has keys of its own, which are tried with it
        const { error } = runConfigSchema.safeParse(withKey(key, word));
        expect(
          error?.issues.filter(({ path }) => path.join('.') === placeOf(key.path)) ?? [],
          `${key.path}=${word}`,
        ).toEqual([]);
      }
      expect(refusal(withKey(key, 'nonsense')), key.path).toContain(placeOf(key.path));
    }
    expect(enums).toBeGreaterThan(20);
  });

  it('in its defaults', () => {
    let defaults = 0;
    for (const key of keys) {
      const [stated] = words(key.default);
      if (stated === undefined || key.kinds.length > 0) continue;
      const parent = key.path.replace(/\.[^.]+$/, '');
      const base = withKey({ ...key, path: `${parent}.x`, kinds: [] }, undefined);
      let filled: unknown;
      try {
        filled = checkRunConfig(
          parent === key.path ? withKey({ ...key, path: 'seed' }, 1) : JSON.parse(JSON.stringify(base)),
          'page',
        );
      } catch {
        continue; // a section that is left out by default, such as learner.kl, needs more than its required keys
      }
      const value = key.path.split('.').reduce<unknown>((at, name) => (at as Raw | undefined)?.[name], filled);
      defaults++;
      expect(typeof value === 'object' ? JSON.stringify(value) : String(value), key.path).toBe(stated);
    }
    expect(defaults).toBeGreaterThan(70);
  });
});

describe('the JSON schema', () => {
  const checked = z.fromJSONSchema(schema as never);
  const configurations = readdirSync(new URL('experiments/', root)).filter((name) => name.endsWith('.yaml'));

  it.each(configurations)('accepts experiments/%s, which names it for editors', (name) => {
    const text = read(`experiments/${name}`);
    expect(text.split('\n', 1)[0]).toBe('# yaml-language-server: $schema=../src/config/run-config.schema.json');
    expect(checked.safeParse(parse(text)).error).toBeUndefined();
  });
  it('refuses a key that is none and a value out of range', () => {
    const good = parse(read('experiments/quickstart.yaml')) as Record<string, unknown>;
    expect(checked.safeParse({ ...good, lerner: {} }).success).toBe(false);
    expect(checked.safeParse({ ...good, seed: -1 }).success).toBe(false);
    expect(checked.safeParse({ ...good, learner: { estimator: { gamma: 0.9 } } }).success).toBe(true);
    expect(checked.safeParse({ ...good, learner: { estimator: { gama: 0.9 } } }).success).toBe(false);
  });
});
