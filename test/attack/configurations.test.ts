/** Mutated configurations and overrides: each is a configuration, or one line for each mistake. */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { capacities } from '../../actors/mailbox-capacities.ts';
import { loadRunConfig } from '../../src/config/load.ts';
import { create } from '../../src/learning/schedule/horizon-schedule.ts';
import { worldUrl } from '../../src/run/find-world.ts';
import { packageRoot } from '../../src/runtime/module-url.ts';
import { amount, campaign, orMistake, printFigure } from './campaign.ts';
import { invalidValue, type Json, mutated, mutatedText } from './mutations.ts';

const COUNT = amount(100_000, 300);

const files = ['quickstart', 'babyai', 'searchqa', 'llm', 'textcraft', 'serial'];
const texts = files.map((name) => readFileSync(new URL(`experiments/${name}.yaml`, packageRoot), 'utf8'));
const whole = texts.map((text) => JSON.parse(JSON.stringify(loadRunConfig(text, 'whole'))) as Json);
/** The same as they are written. More of what is made of them is taken, since less of it is struck. */
const written = texts.map((text) => parse(text) as Json);

/** Pieces of YAML that mean something. */
const PIECES = [
  '&a ',
  '*a',
  '<<: *a\n',
  '!!binary ',
  '!!js/function ',
  '? ',
  '---\n',
  '...\n',
  '\t',
  '|\n',
  '>-\n',
  '{',
  '}',
  '[',
  ']',
  ': ',
  '- ',
  '#',
  '%YAML 9.9\n',
  '0x7fffffffffffffff',
  '.inf',
  '.nan',
  '__proto__: {polluted: true}\n',
  'a: &a [*a, *a, *a]\n',
];

const paths = pathsOf(whole[0]!, '');

/** Paths that lead behind the configuration. */
const BEHIND = ['__proto__.polluted', 'env.__proto__.polluted', 'constructor.prototype.polluted', 'toString.polluted'];

function pathsOf(value: Json, at: string): string[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [at];
  return Object.entries(value).flatMap(([key, inner]) => [at, ...pathsOf(inner, at === '' ? key : `${at}.${key}`)]);
}

/** Largest numbers by what their names end in; timers beyond the first wrap to 1 ms. */
const LARGEST = [
  [/Ms$/, 2 ** 31 - 1],
  [/[tT]hreads$/, 256],
  [/^(hiddenSize|layers|heads)$/, 16_384],
  [/^(groupSize|concurrentGroups|concurrentEpisodes|maxBatch|rounds|horizon)$/, 100_000],
  [/./, Number.MAX_SAFE_INTEGER],
] as const;

/** Holds every number of a configuration that was taken to be of use. An env's own options are the env's to bound. */
function expectBounded(value: unknown, path: string): void {
  if (typeof value === 'number') {
    const name = path
      .replace(/\.\d+$/, '')
      .split('.')
      .at(-1)!;
    const [, largest] = LARGEST.find(([pattern]) => pattern.test(name))!;
    if (!(Math.abs(value) <= largest)) throw new Error(`${path} took ${value}, expected at most ${largest}`);
  } else if (typeof value === 'object' && value !== null && path !== '.env.options') {
    for (const [key, inner] of Object.entries(value)) expectBounded(inner, `${path}.${key}`);
  }
}

it(`${COUNT} mutated configurations are accepted, or refused in one line each`, { timeout: 3_600_000 }, async () => {
  let accepted = 0;
  await campaign('configurations', COUNT, (rng) => {
    const way = rng.int(4);
    const base = () => rng.pick(rng.int(4) === 0 ? whole : written);
    const text =
      way === 0
        ? mutatedText(rng.pick(texts), rng, PIECES)
        : way === 1
          ? stringify(mutated(base(), rng))
          : JSON.stringify(mutated(base(), rng));
    const overrides = Array.from({ length: rng.int(3) }, () => {
      const way = rng.int(10);
      const path = way === 0 ? rng.pick(BEHIND) : way < 3 ? mutatedText(rng.pick(paths), rng) : rng.pick(paths);
      const value = JSON.stringify(invalidValue(rng));
      return `${path}=${rng.int(3) === 0 ? mutatedText(value, rng, PIECES) : value}`;
    });
    const config = orMistake(() => loadRunConfig(text, 'x.yaml', overrides));
    if (!config) return;
    accepted++;
    expectBounded(config, '');
    for (const capacity of Object.values(capacities(config))) expect(Number.isSafeInteger(capacity)).toBe(true);
    orMistake(() => create(config.horizon));
    orMistake(() => worldUrl(config.env.id, config.env.options));
  });
  expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  expect(Object.keys(Object.prototype)).toEqual([]);
  printFigure(`configurations: ${accepted} of ${COUNT} accepted`);
  expect(accepted).toBeGreaterThan(COUNT / 100);
});
