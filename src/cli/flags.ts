/** Flag parsers. */

import { type Command, InvalidArgumentError } from 'commander';
import { parse } from 'yaml';
import { nearest } from '../config/nearest.ts';
import { MAX_MS } from '../config/ranges.ts';
import type { EnvOptions } from '../core/env.ts';
import { messageOf, UserError } from '../core/errors.ts';
import { firstLineOf } from '../core/first-line.ts';

/** Upper bounds of flags, far above what is of use and below what breaks (as src/config/ranges.ts for configurations). */
export const MOST = {
  /** A timer's, beyond which Node makes it 1 ms. */
  milliseconds: MAX_MS,
  seconds: Math.floor(MAX_MS / 1000),
  minutes: Math.floor(MAX_MS / 60_000),
  /** Each is a V8 heap of its own. */
  threads: 256,
  /** Things in memory at once: sessions, turns of an episode, turns of a call. */
  held: 100_000,
  /** Episodes, cases or epochs of a whole command, which it counts through. */
  repeats: 1_000_000,
  /** Buffers are made of it. */
  bytes: 2 ** 30,
  /** Seeds are uint32. */
  seed: 0xffffffff,
} as const;

/** Makes a parser of whole numbers in [min, max]. */
export function wholeNumber(min: number, max = Number.MAX_SAFE_INTEGER): (text: string) => number {
  const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`;
  return (text) => {
    const value = Number(text);
    if (text.trim() !== '' && Number.isSafeInteger(value) && value >= min && value <= max) return value;
    throw new InvalidArgumentError(`Expected a whole number ${range}.`);
  };
}

export const MAX_PORT = 65_535;
/** Parser of ports: 0 picks a free one. */
export const port = wholeNumber(0, MAX_PORT);

/** Parser of numbers of at least `least`; `least` itself is left out with `above`. */
export function number(min: number, above = false): (text: string) => number {
  const range = min === Number.NEGATIVE_INFINITY ? '' : above ? ` above ${min}` : ` of at least ${min}`;
  return numbers((value) => (above ? value > min : value >= min), range);
}

/** Parser of numbers in [0, 1]. */
export const share = numbers((value) => value >= 0 && value <= 1, ' from 0 to 1');

function numbers(fits: (value: number) => boolean, range: string): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() !== '' && Number.isFinite(value) && fits(value)) return value;
    throw new InvalidArgumentError(`Expected a number${range}.`);
  };
}

/** Parser of one of some words. */
export function oneOf<W extends string>(words: readonly W[]): (text: string) => W {
  return (text) => {
    if ((words as readonly string[]).includes(text)) return text as W;
    const meant = nearest(text, words);
    throw new InvalidArgumentError(`Expected ${words.join(' or ')}${meant ? `; did you mean ${meant}?` : '.'}`);
  };
}

/**
 * Refuses flags that mean nothing beside another one: a flag that does nothing would mislead.
 * @param names of the options, as their values are called
 * @param why they mean nothing, and what to do instead
 * @throws {UserError} BAD_ARGUMENT naming those that were typed
 */
export function refuseFlags(command: Command, names: readonly string[], why: string): void {
  const typed = command.options.filter((option) => {
    const name = option.attributeName();
    return names.includes(name) && command.getOptionValueSource(name) === 'cli';
  });
  if (typed.length === 0) return;
  throw new UserError('BAD_ARGUMENT', `${command.name()}: ${typed.map(({ long }) => long).join(', ')}: ${why}`);
}

/**
 * Collects a flag that may be given again. Each time it takes one value: a list of values would swallow the argument
 * that comes after it.
 */
export function collectFlag(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

/** Parser of whole numbers of at least 1, several between commas, that may be given again. */
export function counts(text: string, before: readonly number[] = []): readonly number[] {
  return [...before, ...text.split(',').map(wholeNumber(1))];
}

/** Adds the flag for options of a world, to commands that take a world and no configuration. */
export function withEnvOptions(command: Command): Command {
  return command.option(
    '--option <key=value>',
    'an option of the world, e.g. fidelity=original; give it once for each',
    collectFlag,
    [],
  );
}

/** Flags of a command that takes options of a world. */
export interface EnvOptionFlags {
  readonly option: readonly string[];
}

/** Options of a world as flags give them. @throws {UserError} BAD_ARGUMENT for one that is not `key=value` */
export function envOptionsOf({ option }: EnvOptionFlags): EnvOptions {
  return Object.fromEntries(option.map((text) => keyValue(text, '--option')));
}

function keyValue(text: string, flag: string): [string, unknown] {
  const cut = text.indexOf('=');
  if (cut < 1) throw new UserError('BAD_ARGUMENT', `${flag} ${text}: expected key=value`);
  try {
    return [text.slice(0, cut), parse(text.slice(cut + 1), { logLevel: 'error' })];
  } catch (thrown) {
    throw new UserError('BAD_ARGUMENT', `${flag} ${text}: ${firstLineOf(messageOf(thrown))}`);
  }
}
