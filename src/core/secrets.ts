/** Secrets of this process: keys and tokens in environment variables. They are removed from all output. */

/** Names of variables that hold secrets: OPENAI_API_KEY, LONGPLAY_SERVER_TOKEN, HF_TOKEN, … */
const SECRET_NAME = /(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$/i;
/** Shorter values are words that occur by themselves. */
const SECRET_LENGTH = 8;
/**
 * Credentials in front of a URL's host, up to the last `@`. It begins at `://`, which it cannot hold itself: one that began
 * with the scheme took minutes for 80 kB of `a.a.a.`.
 */
const CREDENTIALS = /:\/\/[^/?#\s]+@/g;
/** Variables that were read as secrets, whatever their names look like. */
const read = new Set<string>();

/** Secrets that are parts of others, as headers in a variable are. */
const values = new Set<string>();

/** True for a name whose value is a secret: of a variable, a header or a key of a configuration (`apiKey`, `x-api-key`). */
export function isSecretName(name: string): boolean {
  return SECRET_NAME.test(name.replace(/([a-z\d])(?=[A-Z])/g, '$1_').replace(/[-.\s]/g, '_'));
}

/** Adds a secret that is no variable's whole value; from now on it is struck out. */
export function addSecret(value: string): void {
  values.add(value);
}

/** Value of a variable that holds a secret; from now on it is struck out. @returns undefined where it is unset or empty */
export function readSecret(name: string): string | undefined {
  read.add(name);
  return process.env[name] || undefined;
}

/** Text without the values of secret variables and without credentials in URLs. */
export function redact(text: string, env: Readonly<Record<string, string | undefined>> = process.env): string {
  let out = text.replace(CREDENTIALS, '://[credentials]@');
  for (const name of Object.keys(env)) {
    if (!SECRET_NAME.test(name) && !read.has(name)) continue; // before its value, for which the system is asked
    const value = env[name];
    if (value !== undefined) out = strikeOut(out, value);
  }
  for (const value of values) out = strikeOut(out, value);
  return out;
}

function strikeOut(text: string, secret: string): string {
  if (secret.length < SECRET_LENGTH) return text;
  let out = text;
  for (const form of formsOf(secret)) out = out.replaceAll(form, '[key]');
  return out;
}

/** A secret as it is, as a text of JSON, and as a part of a URL. */
function formsOf(value: string): ReadonlySet<string> {
  if (/^[\w.-]*$/.test(value)) return new Set([value]);
  return new Set([value, JSON.stringify(value).slice(1, -1), encodeURIComponent(value)]);
}
