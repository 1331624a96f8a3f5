/**
 * Identity of a run, `run.json` of its folder: a digest of its seed, its configuration and the run that its weights come
 * from, made with the folder. Its checkpoints carry it: one that was copied here from another run is not taken for its own.
 */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { readJsonFile } from '../core/bounded-file.ts';
import { messageOf, UserError } from '../core/errors.ts';

/** File of a run's folder. */
export const IDENTITY_FILE = 'run.json';

/** Hexadecimal digits of an identity. */
const DIGITS = 32;

/**
 * Renders the identity of a new run as its file holds it.
 * @param config resolved configuration
 * @param parent identity of the run that its first weights come from
 */
export function renderIdentity(seed: number, config: unknown, parent?: string): string {
  const facts = { seed, config: digestOf(config), ...(parent === undefined ? {} : { parent }) };
  return `${JSON.stringify({ format: 1, id: digestOf(facts).slice(0, DIGITS), ...facts }, null, 2)}\n`;
}

/**
 * Reads the identity of a run.
 * @returns undefined for the folder of an earlier version, which has none
 * @throws {UserError} UNKNOWN_RUN for a file that holds none
 */
export function readIdentity(dir: string): string | undefined {
  const path = join(dir, IDENTITY_FILE);
  if (!existsSync(path)) return undefined;
  try {
    const { id } = readJsonFile(path) as { readonly id?: unknown };
    if (typeof id === 'string' && /^[\da-f]+$/.test(id) && id.length === DIGITS) return id;
    throw new Error(`expected an id of ${DIGITS} hexadecimal digits`);
  } catch (thrown) {
    throw new UserError('UNKNOWN_RUN', `${path}: expected the identity of a run: ${messageOf(thrown)}`);
  }
}

function digestOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex');
}
