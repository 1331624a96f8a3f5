/**
 * Environment variables of an env host: ours without the secrets. A world is foreign code, which has no business with
 * the keys of the user who runs it. This keeps them from being inherited; it is no sandbox: code of the same user can
 * read the memory of its processes where the system lets it.
 */

/** Parts of a variable's name, between underscores, that mark a secret: OPENAI_API_KEY, HF_TOKEN, AWS_ACCESS_KEY_ID. */
const SECRET_PART = /(?:^|_)(?:API)?(?:KEY|KEYS|TOKEN|TOKENS|AUTH|CREDENTIAL|CREDENTIALS)(?:_|$)/i;
/** Texts that mark one anywhere in a name. */
const SECRET_TEXT = /SECRET|PASSWORD|PASSWD|PASSPHRASE|AUTHTOKEN/i;
/** A URL with a password in front of its host, whatever the variable's name. */
const WITH_PASSWORD = /^[a-z][a-z0-9+.-]*:\/\/[^/?#\s:@]*:[^/?#\s@]+@/i;

/** Variables that hosts do not inherit although nothing about them looks secret, and those they do although it does. */
export interface HostVariables {
  /** Names that the configuration has for keys. */
  readonly secret?: readonly string[];
  /** Names that the world needs: the token of its server. */
  readonly passed?: readonly string[];
}

/** The variables of `all` that a host gets. */
export function hostEnvironment(
  all: NodeJS.ProcessEnv,
  { secret = [], passed = [] }: HostVariables = {},
): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(all)) {
    if (value === undefined) continue;
    const looksSecret =
      SECRET_PART.test(name) || SECRET_TEXT.test(name) || WITH_PASSWORD.test(value) || secret.includes(name);
    if (!looksSecret || passed.includes(name)) kept[name] = value;
  }
  return kept;
}
