/** Secrets of this process: keys and tokens in environment variables. They are struck out of everything that is told. */

/** Names of variables that hold secrets: OPENAI_API_KEY, LONGPLAY_SERVER_TOKEN, HF_TOKEN, … */
const SECRET_NAME = /(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$/i;
/** Shorter values are words that occur by themselves. */
const SECRET_LENGTH = 8;
/** Variables that were read as secrets, whatever their names look like. */
const read = new Set<string>();

/** Value of a variable that holds a secret; from now on it is struck out. @returns undefined where it is unset or empty */
export function readSecret(name: string): string | undefined {
  read.add(name);
  return process.env[name] || undefined;
}

/** Text without the values of secret variables and without credentials in URLs. */
export function redacted(text: string, env: Readonly<Record<string, string | undefined>> = process.env): string {
  let out = text.replace(/\b([a-z][a-z0-9+.-]*:\/\/)[^/?#\s@]+@/gi, '$1[credentials]@');
  for (const [name, value] of Object.entries(env)) {
    if (value === undefined || value.length < SECRET_LENGTH || !(SECRET_NAME.test(name) || read.has(name))) continue;
    out = out.replaceAll(value, '[key]');
  }
  return out;
}
