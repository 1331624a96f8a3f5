/** Flags that name a policy which plays: a model behind a server, the world's solver, random play, or a trained run. */

export interface PolicyFlags {
  /** `openai`, `random`, `oracle`, or a run's folder. */
  readonly policy: string;
  readonly baseUrl?: string;
  readonly model?: string;
  /** Episodes at once. */
  readonly concurrency: number;
}

/** Policies by name; any other name is a run's folder. */
const KINDS: ReadonlySet<string> = new Set(['openai', 'random', 'oracle']);

/** Folder of the run whose newest checkpoint plays; undefined for the other policies. */
export function policyRunOf(policy: string): string | undefined {
  return KINDS.has(policy) ? undefined : policy;
}

/** Settings of a configuration, `key=value`, that the flags mean. */
export function policySettings({ policy, baseUrl, model, concurrency }: PolicyFlags): readonly string[] {
  return [
    ...(policyRunOf(policy) === undefined ? [`policy.kind=${policy}`] : []),
    ...(baseUrl === undefined ? [] : [`policy.openai.baseUrl=${JSON.stringify(baseUrl)}`]),
    ...(model === undefined ? [] : [`policy.openai.model=${JSON.stringify(model)}`]),
    `policy.openai.concurrency=${concurrency}`,
  ];
}
