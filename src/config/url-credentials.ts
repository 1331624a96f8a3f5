/** Credentials in the URLs of a configuration, which would be stored with its run. */

import { UserError } from '../core/errors.ts';

/** Text of an URL with a name or a password in front of its host. */
const CREDENTIALS = /^[a-z][a-z0-9+.-]*:\/\/[^/?#\s]*@/i;
/** Name of a key in the query of a URL: `?api_key=…`, `&access-token=…`. */
const QUERY_KEY = /key|token|secret|passw|signature/i;

/** True for a URL with a name, a password or a key in it. */
function holdsCredentials(text: string): boolean {
  if (CREDENTIALS.test(text)) return true;
  const query = text.indexOf('?');
  if (query < 0 || !URL.canParse(text)) return false;
  return [...new URL(text).searchParams].some(([name, value]) => value !== '' && QUERY_KEY.test(name));
}

/** Refuses credentials, since a configuration is written into its run and its traces. @throws {UserError} BAD_CONFIG */
export function refuseCredentials(value: unknown, source: string, path = ''): void {
  if (typeof value === 'string' && holdsCredentials(value)) {
    throw new UserError(
      'BAD_CONFIG',
      `${source}: ${path}: the URL carries a name, a password or a key, which would be stored with the run; put a key into an environment variable, which policy.apiKeyEnv and the sinks of metrics name`,
    );
  }
  if (typeof value !== 'object' || value === null) return;
  for (const [key, inner] of Object.entries(value)) refuseCredentials(inner, source, path ? `${path}.${key}` : key);
}
