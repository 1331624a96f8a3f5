/** Name of a model on Hugging Face's hub: `hf:owner/name[@revision][/file.gguf]`. */

export interface HubName {
  /** `owner/name`. */
  readonly repo: string;
  /** Branch, tag or commit; `main` where none is named. */
  readonly revision: string;
  /** File in the repository, where one is named: a GGUF file. */
  readonly file: string | undefined;
}

const PREFIX = 'hf:';
const NAME = /^hf:([\w.-]{1,96}\/[\w.-]{1,96})(?:@([\w.-]{1,96}))?(?:\/([\w.-][\w. /-]{0,255}\.gguf))?$/i;

/** True for what begins as a hub's name does. */
export function isHubName(model: string): boolean {
  return model.startsWith(PREFIX);
}

/** Parses a name of the hub. @returns undefined for what is none */
export function parseHubName(model: string): HubName | undefined {
  const [, repo, revision = 'main', file] = NAME.exec(model) ?? [];
  const parts = [...(repo ?? '').split('/'), revision, ...(file ?? '').split('/')];
  if (repo === undefined || parts.includes('..') || parts.includes('.')) return undefined;
  return { repo, revision, file };
}
