/** Prometheus' text format 0.0.4, read by its rules: names, types, escapes, and the habits that its linter asks for. */
import { expect } from 'vitest';

export interface ReadSample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface ReadFamily {
  readonly type: string;
  readonly help: string;
  readonly samples: ReadSample[];
}

const NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*';

/** Families of a page by name. Fails a test at the first rule that is broken. */
export function readExposition(text: string): ReadonlyMap<string, ReadFamily> {
  const families = new Map<string, ReadFamily>();
  expect(text.endsWith('\n'), 'the last line ends').toBe(true);
  const lines = text.slice(0, -1).split('\n');
  let current = '';
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i]!;
    const help = new RegExp(`^# HELP (${NAME}) (.+)$`).exec(line);
    if (help) {
      current = help[1]!;
      expect(families.has(current), `${current} has one help, and its lines stand together`).toBe(false);
      const type = new RegExp(`^# TYPE ${current} (counter|gauge|histogram|summary|untyped)$`).exec(lines[++i]!);
      expect(type, `the type follows the help of ${current}`).not.toBeNull();
      expect(help[2]).not.toMatch(/\\(?![\\n])/); // the only escapes
      families.set(current, { type: type![1]!, help: help[2]!, samples: [] });
      continue;
    }
    expect(line).not.toMatch(/^#/);
    const sample = readSample(line);
    const { type, samples } = families.get(current)!;
    const suffixes = type === 'histogram' ? ['_bucket', '_sum', '_count'] : [''];
    expect(suffixes.map((suffix) => current + suffix)).toContain(sample.name);
    const key = JSON.stringify([sample.name, sample.labels]);
    expect(samples.map(({ name, labels }) => JSON.stringify([name, labels]))).not.toContain(key); // each once
    samples.push(sample);
  }
  for (const [name, family] of families) expectHabits(name, family);
  return families;
}

function readSample(line: string): ReadSample {
  const whole = new RegExp(`^(${NAME})(?:\\{(.*)\\})? (\\S+)$`).exec(line);
  expect(whole, line).not.toBeNull();
  const [, name, inner = '', number] = whole!;
  const pair = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(?:,|$)/y;
  const labels: Record<string, string> = {};
  for (let at = 0; at < inner.length; at = pair.lastIndex) {
    pair.lastIndex = at;
    const found = pair.exec(inner);
    expect(found, `labels of ${line}`).not.toBeNull();
    labels[found![1]!] = found![2]!.replace(/\\(.)/g, (_, char) => (char === 'n' ? '\n' : char));
  }
  expect(number).toMatch(/^(?:[+-]Inf|NaN|[+-]?[0-9.]+(?:e[+-]?\d+)?)$/);
  return { name: name!, labels, value: Number(number!.replace('Inf', 'Infinity')) };
}

/** Counters end in `_total` and nothing else does; base units; buckets add up. */
function expectHabits(name: string, { type, samples }: ReadFamily): void {
  expect(name.endsWith('_total'), `${name} is a ${type}`).toBe(type === 'counter');
  expect(name).not.toMatch(/_(ms|milliseconds|minutes|kib|percent|count|sum|bucket)(_|$)/i);
  if (type === 'counter') for (const { value } of samples) expect(value).toBeGreaterThanOrEqual(0);
  if (type !== 'histogram') return;
  const buckets = samples.filter((sample) => sample.name.endsWith('_bucket'));
  const bounds = buckets.map(({ labels }) => Number(labels.le!.replace('Inf', 'Infinity')));
  expect(bounds).toEqual([...new Set(bounds)].sort((a, b) => a - b));
  expect(bounds.at(-1)).toBe(Number.POSITIVE_INFINITY);
  const counts = buckets.map(({ value }) => value);
  expect(counts).toEqual([...counts].sort((a, b) => a - b));
  expect(samples.find((sample) => sample.name === `${name}_count`)!.value).toBe(counts.at(-1));
  expect(samples.some((sample) => sample.name === `${name}_sum`)).toBe(true);
}
