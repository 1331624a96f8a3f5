/** Options of the world, checked: `env: { id: terminal, options: { … } }`. */
import { describeValue } from '../../src/core/describe-value.ts';
import type { EnvOptions } from '../../src/core/env.ts';
import { UserError } from '../../src/core/errors.ts';
import { FAMILIES } from './families/all.ts';

/** Tools of an episode: a free command line, or commands as tools with typed arguments. */
export type ToolsKind = 'shell' | 'forms';

/** Options of the world; README.md explains each. */
export interface TerminalOptions {
  readonly tools: ToolsKind;
  readonly heldOut: readonly string[];
  readonly maxLevel: number;
  readonly maxCalls: number;
  /** Folder of tasks in Harbor's form; absent: the families. */
  readonly folder?: string | undefined;
}

const KNOWN = ['tools', 'heldOut', 'maxLevel', 'maxCalls', 'folder'];
const TOOLS: readonly ToolsKind[] = ['shell', 'forms'];

/**
 * Reads the options.
 * @throws {UserError} BAD_CONFIG for an option or a value that the world does not have
 */
export function readOptions(options: EnvOptions): TerminalOptions {
  for (const key of Object.keys(options)) {
    if (!KNOWN.includes(key)) refuse(`terminal has no option "${key}"; it has: ${KNOWN.join(', ')}`);
  }
  const given = options.tools ?? 'shell';
  const tools = TOOLS.find((kind) => kind === given);
  if (!tools) return refuse(`terminal: tools must be "shell" or "forms", got ${describeValue(given)}`);
  const { folder } = options;
  if (folder !== undefined && (typeof folder !== 'string' || folder === '')) {
    return refuse(`terminal: folder must be the path of a folder of tasks, got ${describeValue(folder)}`);
  }
  const other = ['heldOut', 'maxLevel'].find((name) => options[name] !== undefined);
  if (folder !== undefined && (other !== undefined || tools === 'forms')) {
    return refuse(`terminal: folder goes with maxCalls alone, got ${other ?? 'tools: forms'} beside it`);
  }
  return {
    tools,
    heldOut: readFamilies(options.heldOut ?? []),
    maxLevel: integer(options, 'maxLevel', 3, 3),
    maxCalls: integer(options, 'maxCalls', 30, 1000),
    ...(folder === undefined ? {} : { folder }),
  };
}

function readFamilies(given: unknown): readonly string[] {
  const ids = FAMILIES.map(({ id }) => id);
  const isList = Array.isArray(given) && given.every((id) => ids.includes(id));
  if (isList && given.length < ids.length) return given;
  return refuse(`terminal: heldOut must be a list of some of ${ids.join(', ')}, got ${describeValue(given)}`);
}

function integer(options: EnvOptions, name: string, fallback: number, most: number): number {
  const value = options[name] ?? fallback;
  if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= most) return value;
  return refuse(`terminal: ${name} must be an integer in [1, ${most}], got ${describeValue(value)}`);
}

function refuse(message: string): never {
  throw new UserError('BAD_CONFIG', message);
}
