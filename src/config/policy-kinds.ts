/**
 * Table of the kinds of policies, by `policy.kind`: what each is and needs. Code that depends on the kind reads a fact here and
 * compares no names. A new kind is an entry here, its setup (policy/setup.ts) and the way that it is opened (policy/open-policy.ts).
 */

/** Facts of a kind of policy. */
export interface PolicyKind {
  /** True where it has weights, which a run trains. */
  readonly learns: boolean;
  /** True for a language model from a folder: it reads conversations and writes tokens. Others that learn read the world's view. */
  readonly isLanguageModel: boolean;
  /** True where turns are decided by an engine of this process. */
  readonly hasEngine: boolean;
  /** True where a generation server samples its tokens, under adapters that the learner here trains. */
  readonly isServed: boolean;
  /** True where whole answers come from a model behind a server, with weights of its own. */
  readonly isRemote: boolean;
  /** True where workers of a cluster can play it. */
  readonly hasWorkers: boolean;
  /** True where one run has it play several worlds. */
  readonly playsWorlds: boolean;
}

const none = {
  learns: false,
  isLanguageModel: false,
  hasEngine: false,
  isServed: false,
  isRemote: false,
  hasWorkers: false,
  playsWorlds: false,
};

/** Names of the kinds. */
export type PolicyKindName = 'local' | 'random' | 'oracle' | 'openai' | 'checkpoint' | 'server';

/** Kinds of policies by name. */
export const POLICY_KINDS: Readonly<Record<PolicyKindName, PolicyKind>> = {
  local: { ...none, learns: true, hasEngine: true, hasWorkers: true, playsWorlds: true },
  random: { ...none, playsWorlds: true },
  oracle: none,
  openai: { ...none, isRemote: true },
  checkpoint: { ...none, learns: true, isLanguageModel: true, hasEngine: true },
  server: { ...none, learns: true, isLanguageModel: true, hasEngine: true, isServed: true, hasWorkers: true },
};

/** Names of the kinds, in order. */
export const POLICY_KIND_NAMES = Object.keys(POLICY_KINDS) as [PolicyKindName, ...PolicyKindName[]];

/** Facts of a configuration's policy. */
export function policyKindOf({ policy }: { readonly policy: { readonly kind: PolicyKindName } }): PolicyKind {
  return POLICY_KINDS[policy.kind];
}

/** Names of the kinds that have a fact, between commas: `'local', 'checkpoint' or 'server'`. */
export function kindsThat(fact: keyof PolicyKind): string {
  const names = POLICY_KIND_NAMES.filter((name) => POLICY_KINDS[name][fact]).map((name) => `'${name}'`);
  return new Intl.ListFormat('en', { type: 'disjunction' }).format(names);
}
