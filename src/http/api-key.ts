/** Keys for HTTP headers, read from environment variables. */
import { UserError } from '../core/errors.ts';
import { readSecret } from '../core/secrets.ts';

/**
 * Reads the key of a server from a variable; from now on it is struck out of all output.
 * @returns undefined where the variable is unset or empty
 * @throws {UserError} BAD_CONFIG for a value that no header can hold; the message does not show it
 */
export function readApiKey(name: string): string | undefined {
  const key = readSecret(name);
  const at = key?.search(/[^\x20-\x7e]/) ?? -1;
  if (at < 0) return key;
  const found = /[\r\n]/.test(key![at]!) ? 'a line end' : 'a character outside ASCII';
  throw new UserError(
    'BAD_CONFIG',
    `${name}: expected a key that an HTTP header can hold, found ${found} at character ${at + 1} of ${key!.length}; set it again`,
  );
}
