/**
 * Table of algorithms: every policy loss, estimator of advantages, aggregation, off-policy correction and teacher, with
 * paper, use and keys. Made from the registries of `src/algo` and from the schema of the configuration.
 */
import { aggregationFacts } from '../algo/aggregate.ts';
import { distillationFacts } from '../algo/distillation.ts';
import { estimatorFacts } from '../algo/estimators.ts';
import type { AlgorithmFacts } from '../algo/facts.ts';
import { offPolicyFacts } from '../algo/off-policy.ts';
import { policyLossFacts } from '../algo/policy-loss.ts';
import { type ConfigKey, makeConfigReference } from './reference.ts';

/** Part of an update that is chosen by itself. */
export interface AlgorithmPart {
  readonly title: string;
  /** Key of the configuration, e.g. `learner.policyLoss`. */
  readonly path: string;
  /** Key inside that holds the name, e.g. `type`. */
  readonly discriminator: string;
  readonly facts: Readonly<Record<string, AlgorithmFacts>>;
}

/** Algorithm of a part. */
export interface Algorithm extends AlgorithmFacts {
  /** Name in the configuration. */
  readonly name: string;
  /** Value for `--set`, e.g. `learner.policyLoss={type: gspo}`. */
  readonly setting: string;
  /** Links to its papers. */
  readonly links: readonly string[];
  /** Keys of its own, and those elsewhere that it reads. */
  readonly knobs: readonly Pick<ConfigKey, 'path' | 'type' | 'default' | 'meaning'>[];
}

/** Parts in the order of the page. */
export const ALGORITHM_PARTS: readonly AlgorithmPart[] = [
  { title: 'Policy losses', path: 'learner.policyLoss', discriminator: 'type', facts: policyLossFacts },
  { title: 'Advantages', path: 'learner.estimator', discriminator: 'algorithm', facts: estimatorFacts },
  { title: 'Aggregation', path: 'learner.estimator.aggregation', discriminator: 'type', facts: aggregationFacts },
  { title: 'Off-policy corrections', path: 'learner.offPolicy', discriminator: 'type', facts: offPolicyFacts },
  {
    title: 'On-policy distillation',
    path: 'learner.distillation.teacher',
    discriminator: 'type',
    facts: distillationFacts,
  },
];

/**
 * Lists the algorithms of each part.
 * @param keys of the configuration; read from its schema where absent
 */
export function listAlgorithms(
  keys: readonly ConfigKey[] = makeConfigReference('').keys,
): readonly (AlgorithmPart & { readonly algorithms: readonly Algorithm[] })[] {
  return ALGORITHM_PARTS.map((part) => {
    const { path, discriminator } = part;
    const own = keys.filter((key) => {
      const name = key.path.startsWith(`${path}.`) ? key.path.slice(path.length + 1) : '.';
      return !name.includes('.') && name !== discriminator;
    });
    const algorithms = Object.entries(part.facts).map(([name, facts]) => ({
      ...facts,
      name,
      setting: `${path}={${discriminator}: ${name}}`,
      links: facts.papers.map((paper) => (paper.includes('/') ? paper : `https://arxiv.org/abs/${paper}`)),
      knobs: [
        ...own.filter(({ kinds }) => kinds.includes(name)),
        ...keys.filter((key) => facts.keys?.includes(key.path)),
      ].map((key) => ({ path: key.path, type: key.type, default: key.default, meaning: key.meaning })),
    }));
    return { ...part, algorithms };
  });
}
