/**
 * Invalid versions of good input: of JSON by its structure, of text by its bytes. Pure; everything follows from the
 * generator.
 */
import type { Rng } from '../../src/core/rng.ts';

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

const ODD_NUMBERS = [
  0,
  -1,
  1,
  0.5,
  -0.5,
  2,
  255,
  256,
  65_536,
  2 ** 31 - 1,
  2 ** 31,
  -(2 ** 31),
  2 ** 32,
  2 ** 53,
  -(2 ** 53),
  1e15,
  1e300,
  -1e300,
  5e-324,
];
const ODD_TEXTS = [
  '',
  ' ',
  '\0',
  '\n',
  '\u001b[2J',
  '\u202e',
  '\ud800',
  '__proto__',
  'constructor',
  'toString',
  '../../etc/passwd',
  '/dev/null',
  'NaN',
  '1e999',
  '-1',
  '[]',
  '💥',
];

/** Draws one value that is rarely valid where it lands. */
export function invalidValue(rng: Rng): Json {
  switch (rng.int(8)) {
    case 0:
      return null;
    case 1:
      return rng.int(2) === 0;
    case 2:
    case 3:
      return rng.pick(ODD_NUMBERS);
    case 4:
      return rng.pick(ODD_TEXTS);
    case 5:
      return [];
    case 6:
      return {};
    default:
      return rng.int(2) === 0 ? 'x'.repeat(1 + rng.int(5000)) : nested(1 + rng.int(200));
  }
}

function nested(depth: number): Json {
  let value: Json = 1;
  for (let i = 0; i < depth; i++) value = i % 2 === 0 ? [value] : { a: value };
  return value;
}

interface Place {
  readonly holder: { [key: string]: Json };
  readonly key: string;
}

/** Every value inside a value, by the place it lies at. Bounded: large lists give their first and last ones. */
function places(root: Json): Place[] {
  const found: Place[] = [];
  const visit = (value: Json) => {
    if (typeof value !== 'object' || value === null) return;
    const holder = value as { [key: string]: Json };
    const keys = Object.keys(holder);
    for (const key of keys.length > 40 ? [...keys.slice(0, 20), ...keys.slice(-20)] : keys) {
      found.push({ holder, key });
      visit(holder[key]!);
    }
  };
  visit(root);
  return found;
}

/** Texts of the values that are mutated again and again. */
const texts = new WeakMap<object, string>();

/** A copy of good input, made from its text: a structured clone takes longer. */
function copyOf(value: Json): Json {
  if (typeof value !== 'object' || value === null) return value;
  let text = texts.get(value);
  if (text === undefined) texts.set(value, (text = JSON.stringify(value)));
  return JSON.parse(text) as Json;
}

/** A copy with one to three changes: values replaced, removed, doubled, exchanged, nudged, keys added or renamed. */
export function mutated(value: Json, rng: Rng): Json {
  const box = { root: copyOf(value) };
  for (let changes = 1 + rng.int(3); changes > 0; changes--) {
    box.root ??= invalidValue(rng);
    const all = places(box);
    // Deep places are many: the depth is drawn first, so that sections are struck as often as leaves.
    const one = rng.pick(rng.int(4) === 0 ? all.slice(0, 12) : all);
    change(one, all, rng);
  }
  return box.root ?? null;
}

function change({ holder, key }: Place, all: readonly Place[], rng: Rng): void {
  const value = holder[key];
  switch (rng.int(9)) {
    case 0:
      if (Array.isArray(holder)) holder.splice(Number(key), 1);
      else delete holder[key];
      return;
    case 1:
      if (Array.isArray(value)) value.push(...structuredClone(value.slice(-1)));
      else holder[key] = invalidValue(rng);
      return;
    case 2: {
      const other = rng.pick(all);
      const taken = structuredClone(other.holder[other.key] ?? null);
      other.holder[other.key] = structuredClone(value ?? null);
      holder[key] = taken;
      return;
    }
    case 3:
      if (typeof value === 'number') holder[key] = nudged(value, rng);
      else if (typeof value === 'string') holder[key] = value.slice(0, rng.int(value.length + 1)) + rng.pick(ODD_TEXTS);
      else if (typeof value === 'boolean') holder[key] = !value;
      else holder[key] = invalidValue(rng);
      return;
    case 4:
      if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
        Object.defineProperty(value, rng.pick(ODD_TEXTS), {
          value: invalidValue(rng),
          enumerable: true,
          configurable: true,
          writable: true,
        });
      } else holder[key] = [value ?? null];
      return;
    default:
      holder[key] = invalidValue(rng);
  }
}

function nudged(value: number, rng: Rng): number {
  switch (rng.int(6)) {
    case 0:
      return value + 1;
    case 1:
      return value - 1;
    case 2:
      return -value;
    case 3:
      return value + 0.5;
    case 4:
      return value * 1e6;
    default:
      return rng.pick(ODD_NUMBERS);
  }
}

/** A text with one to four changes: bytes flipped, cut out, doubled, put in. */
export function mutatedText(
  text: string,
  rng: Rng,
  pieces: readonly string[] = [
    '{',
    '}',
    '[',
    ']',
    '"',
    ',',
    ':',
    '1e999',
    '-',
    'null',
    '\\u0000',
    '\n',
    ' ',
    '\u0000',
    '\ufffd',
  ],
): string {
  let out = text;
  for (let changes = 1 + rng.int(4); changes > 0; changes--) {
    const at = rng.int(out.length + 1);
    switch (rng.int(5)) {
      case 0:
        out = out.slice(0, at);
        break;
      case 1:
        out = out.slice(0, at) + out.slice(at + 1 + rng.int(20));
        break;
      case 2:
        out = out.slice(0, at) + out.slice(at, at + 1 + rng.int(50)).repeat(1 + rng.int(3)) + out.slice(at);
        break;
      case 3:
        out = out.slice(0, at) + String.fromCharCode(rng.int(256)) + out.slice(at + 1);
        break;
      default:
        out = out.slice(0, at) + rng.pick(pieces) + out.slice(at);
    }
  }
  return out;
}

/** JSON text of a value that was mutated by structure, by its bytes, or both. */
export function mutatedJson(value: Json, rng: Rng): string {
  const way = rng.int(4);
  const text = JSON.stringify(way === 0 ? value : mutated(value, rng));
  return way < 2 ? mutatedText(text, rng) : text.replaceAll(/1e\+?300/g, '1e999');
}
