/** Page ALGORITHMS.md, made from the table of algorithms and the table of equivalents. A test holds the file to it. */
import { listAlgorithms } from './algorithms.ts';
import { EQUIVALENTS } from './equivalents.ts';

const INTRODUCTION = `# Algorithms

What an update may compute, from the registries in \`src/algo\`; \`longplay algorithms\` prints the same. A policy loss, an
advantage, an aggregation, a correction and a teacher are chosen apart from each other: each loss takes each advantage.

\`\`\`
npx longplay train experiments/quickstart.yaml --set 'learner.policyLoss={type: cispo}' --set 'learner.estimator={algorithm: max_rl}'
\`\`\`

Ranges and meanings of all keys are in [CONFIG.md](CONFIG.md). Some combinations are refused in one line: a policy loss
or a teacher with \`agent_evol\`, which imitates; \`learner.clipLow\` or \`clipHigh\` other than its
default with a loss that does not read it; a geometric mean of one ratio; \`pass_at_k\` with groups smaller than k.
`;

const RECIPES = `## Recipes

| name | settings |
| --- | --- |
| DAPO | \`learner.clipHigh=0.28\`, \`learner.oversampling=3\`, \`learner.estimator={algorithm: grpo}\` |
| Dr. GRPO | \`learner.estimator={algorithm: dr_grpo, aggregation: {type: constant, tokens: 512}}\` |
| GSPO | \`learner.policyLoss={type: gspo}\`, \`learner.estimator={algorithm: grpo, aggregation: {type: sequence-mean}}\` |
| GSPO-token | \`learner.policyLoss={type: gspo}\` with advantages by turn: \`learner.estimator={algorithm: grpo, credit: turn}\` |
| MIS per sequence | \`learner.offPolicy={type: masked, low: 0, cap: 2, per: trajectory}\` |
| Sequence weight by the geometric mean | \`learner.offPolicy={type: truncated, cap: 2, per: trajectory, geometricMean: true}\` |
| IcePop | \`learner.offPolicy={type: masked, low: 0.5, cap: 5, per: token}\` |
| M2PO | \`learner.offPolicy={type: second_moment, threshold: 0.04}\`, \`learner.policyLoss={type: unclipped}\`, \`learner.epochs=1\` |
| HGPO | \`learner.estimator={algorithm: hgpo, history: 2, alpha: 1, gamma: 0.95}\` |
| Pass@k training | \`learner.estimator={algorithm: pass_at_k, k: 4}\` |
| On-policy distillation | \`learner.distillation={teacher: {type: run, path: runs/teacher}}\`, \`learner.entropyCoef=0\`; one episode a task is enough (\`rollout.groupSize=1\`) |
| RL beside a teacher | \`learner.distillation={teacher: {type: run, path: runs/teacher}, coef: 0.3, useRewards: true}\` |
| Distillation from vLLM | \`learner.distillation={teacher: {type: server, url: http://127.0.0.1:8000, model: big, apiKeyEnv: TEACHER_KEY}}\` |
| Self-distillation (EMA-PG) | \`learner.distillation={teacher: {type: ema, decay: 0.95}, coef: 0.1, useRewards: true}\` |
| TCOD (F2B) | distillation with \`horizon={type: linear, rounds: [4, 24], steps_scaling_inter: 200}\`: a turn more every η = 200/20 updates |
| ECHO | \`learner.observationCoef=0.05\` with a language model that writes freely ([2605.24517](https://arxiv.org/abs/2605.24517)) |
`;

/** Renders the page. */
export function renderAlgorithmPage(): string {
  const parts = listAlgorithms().map(({ title, path, discriminator, algorithms }) => {
    const rows = algorithms.map(({ name, title, papers, links, summary, use, knobs }) => {
      const linked = links.map((link, i) => `[${papers[i]}](${link})`).join(', ');
      const keys = knobs.map((knob) => {
        const short = knob.path.startsWith(`${path}.`) ? knob.path.slice(path.length + 1) : knob.path;
        return `\`${short}\`${knob.default === '' ? '' : ` (${knob.default})`}`;
      });
      return cells([`\`${name}\``, title, summary, use, keys.join(', '), linked]);
    });
    const head = ['name', 'in the field', 'what', 'when', 'keys (default)', 'paper'];
    return `## ${title}\n\nKey: \`${path}.${discriminator}\`.\n\n${table(head, rows)}`;
  });
  const rows = EQUIVALENTS.map(({ library, theirs, ours, differs = '' }) =>
    cells([library, `\`${theirs}\``, ours.map((one) => `\`${one}\``).join(' '), differs]),
  );
  const equivalents = `## Keys of other libraries

Each row gives the same gradient of the policy loss of the same batch of one-turn episodes (tested), as these libraries document
their formulas. Terms of entropy and KL are apart: ours are \`learner.entropyCoef\` and \`learner.kl\`. Keys that a row does not
name are at their defaults.

${table(['library', 'there', 'here', 'differs'], rows)}`;
  return `${[INTRODUCTION.trimEnd(), ...parts, RECIPES.trimEnd(), equivalents].join('\n\n')}\n`;
}

function table(head: readonly string[], rows: readonly string[]): string {
  return [cells(head), `|${' --- |'.repeat(head.length)}`, ...rows].join('\n');
}

function cells(values: readonly string[]): string {
  return `| ${values.map((value) => value.replaceAll('|', '\\|')).join(' | ')} |`;
}
