/**
 * Credentials of a cluster: the one file that a machine needs to take part. It holds a role, a key and the certificate of
 * the server. `longplay cluster init` writes it. A file of your own needs no certificate where the server's is signed by
 * an authority that the system trusts.
 */

import { readText } from '../core/bounded-file.ts';
import { messageOf, UserError } from '../core/errors.ts';
import { isRole, ROLES, type Role } from './roles.ts';

export interface Credentials {
  readonly role: Role;
  /** Seed of its nkey, `SU…`: secret. */
  readonly seed: string;
  /** Certificates that the server may show, PEM. */
  readonly ca?: string | undefined;
}

/** Variable that names the file where no flag does. */
export const CREDENTIALS_VARIABLE = 'LONGPLAY_CLUSTER_CREDS';

const HEAD = 'longplay cluster credentials 1';
const SEED = /^-----BEGIN USER NKEY SEED-----\s+(SU[A-Z2-7]{56})\s+------END USER NKEY SEED------$/m;
const CERTIFICATES = /-----BEGIN CERTIFICATE-----[\s\S]+-----END CERTIFICATE-----/;

/** Writes the text of a credentials file. */
export function encodeCredentials({ role, seed, ca }: Credentials): string {
  const key = `-----BEGIN USER NKEY SEED-----\n${seed}\n------END USER NKEY SEED------\n`;
  return `${HEAD}\nrole: ${role}\n\n${key}${ca === undefined ? '' : `\n${ca.trim()}\n`}`;
}

/**
 * Reads a credentials file.
 * @throws {UserError} BAD_ARGUMENT for a missing or invalid file; the message repeats nothing of its text
 */
export function readCredentials(path: string): Credentials {
  let text: string;
  try {
    text = readText(path);
  } catch (thrown) {
    throw new UserError(
      'BAD_ARGUMENT',
      `credentials: ${messageOf(thrown)}; longplay cluster init writes such files, one a role`,
    );
  }
  const role = /^role: (\w+)$/m.exec(text)?.[1];
  const seed = SEED.exec(text)?.[1];
  if (!text.startsWith(HEAD) || !isRole(role) || seed === undefined) {
    throw new UserError(
      'BAD_ARGUMENT',
      `${path}: expected credentials as longplay cluster init writes them ('${HEAD}', a role of ${ROLES.join(', ')}, a key), got something else`,
    );
  }
  return { role, seed, ca: CERTIFICATES.exec(text)?.[0] };
}

/** Reads the credentials that a flag names, or the environment; undefined where neither does. @throws {UserError} BAD_ARGUMENT */
export function findCredentials(path: string | undefined): Credentials | undefined {
  const named = path ?? (process.env[CREDENTIALS_VARIABLE] || undefined);
  return named === undefined ? undefined : readCredentials(named);
}
