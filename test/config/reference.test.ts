/** CONFIG.md and the JSON schema against the zod source that they are made from. `UPDATE_FIXTURES=1` writes them anew. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { configReference } from '../../src/config/reference.ts';

const root = new URL('../../', import.meta.url);
const read = (path: string) => readFileSync(new URL(path, root), 'utf8');
const SCHEMA = 'src/config/run-config.schema.json';
const { keys, page, schema } = configReference(read('src/config/run-config.ts'));
if (process.env.UPDATE_FIXTURES === '1') {
  writeFileSync(new URL('CONFIG.md', root), page);
  writeFileSync(new URL(SCHEMA, root), `${JSON.stringify(schema, null, 2)}\n`);
}

describe('the reference of the configuration', () => {
  it('is CONFIG.md, key by key', () => {
    expect(keys.length).toBeGreaterThan(120);
    expect(page).toBe(read('CONFIG.md'));
  });
  it('says what every key means', () => {
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
