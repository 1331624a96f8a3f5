import type { EngineDevice, EngineName } from '../../src/compute/engine/engine.ts';

/** Results of a bench: named figures with units, and whatever they are compared with. */
export interface Figure {
  readonly name: string;
  /** Median where it was repeated. */
  readonly value: number;
  readonly unit: string;
  /**
   * Baseline it is measured against, in words and figures. Printed as a ratio: `value / reference`, or `ratio` where
   * pairs were measured and the median of their ratios is a better figure than the ratio of two medians.
   */
  readonly reference?: { readonly name: string; readonly value: number; readonly ratio?: number };
  readonly note?: string;
}

/** Flags of benches that print their own tables; absent ones have a default in the bench. */
export interface BenchFlags {
  readonly json: boolean;
  /** Commit whose build is benched beside this one. */
  readonly against?: string;
  /** Python with PyTorch, to measure beside. */
  readonly python?: string;
  readonly seconds?: number;
  readonly only?: readonly string[];
  /** Kinds of base of a language model. */
  readonly bases?: readonly string[];
  /** Folder of a language model. */
  readonly model?: string;
  readonly threads?: number;
  readonly rounds?: number;
  readonly engine?: EngineName | 'auto';
  readonly device?: EngineDevice;
  readonly qwen: boolean;
  readonly passages?: number;
  /** Parts of the bench of clusters. */
  readonly parts?: readonly string[];
  /** Most turns of the episodes that the bench of clusters plays. */
  readonly horizon?: number;
}

/** Bench that prints its own tables, by the flags it takes beside `--json`. */
export interface PrintingBench {
  readonly print: (flags: BenchFlags) => Promise<void>;
}

/** Bench that gives figures. */
export type Bench = () => Promise<readonly Figure[]>;
