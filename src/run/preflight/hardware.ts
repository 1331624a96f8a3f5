/** Hardware that a run may be moved to, and what it would take there: computed from operations, never measured. Pure. */

/** Hardware: one accelerator. */
export interface Hardware {
  /** Peak of dense 16-bit matrix products with 32-bit sums, in operations a second. */
  readonly peak: number;
  /** Source of the peak. */
  readonly source: string;
}

/** Accelerators by the name that `--hardware` takes, as their makers state them; figures with sparsity are halved. */
export const HARDWARE: Readonly<Record<string, Hardware>> = {
  t4: { peak: 65e12, source: 'NVIDIA T4 datasheet, fp16' },
  a10: { peak: 125e12, source: 'NVIDIA A10 datasheet, bf16' },
  l4: { peak: 121e12, source: 'NVIDIA L4 datasheet, bf16 dense' },
  rtx4090: { peak: 165.2e12, source: 'NVIDIA Ada whitepaper, bf16 dense' },
  l40s: { peak: 362e12, source: 'NVIDIA L40S datasheet, bf16 dense' },
  a100: { peak: 312e12, source: 'NVIDIA A100 datasheet, bf16 dense' },
  h100: { peak: 989.4e12, source: 'NVIDIA H100 SXM datasheet, bf16 dense' },
  h200: { peak: 989.4e12, source: 'NVIDIA H200 SXM datasheet, bf16 dense' },
};

/**
 * Share of the peak that is reached, by default: 0.2, which is near GPT-3's 21.3 % in training.
 * @see Chowdhery et al. 2022 (PaLM), table 3, https://arxiv.org/abs/2204.02311
 */
export const UTILISATION = 0.2;

/**
 * Counts the operations of generating tokens and training on them: 2·N·T + 6·N·T·epochs.
 * @param parameters N, all of them: an adapter saves a part of the 6
 * @param tokens T, prompts included
 * @see Kaplan et al. 2020, section 2.1, https://arxiv.org/abs/2001.08361
 */
export function countOperations(parameters: number, tokens: number, epochs: number): number {
  return (2 + 6 * epochs) * parameters * tokens;
}
