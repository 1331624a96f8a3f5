/** Results of a bench: named figures with units, and whatever they are compared with. */
export interface Figure {
  readonly name: string;
  /** Median where it was repeated. */
  readonly value: number;
  readonly unit: string;
  /**
   * Baseline it is measured against, in words and figures. Printed as a ratio: `value / reference`, or `ratio` where
   * pairs were measured and the median of their ratios says more than the ratio of two medians.
   */
  readonly reference?: { readonly name: string; readonly value: number; readonly ratio?: number };
  readonly note?: string;
}

export type Bench = () => Promise<readonly Figure[]>;
