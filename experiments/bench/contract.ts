/** What a bench gives: named figures with units, and whatever they are compared with. */
export interface Figure {
  readonly name: string;
  /** Median where it was repeated. */
  readonly value: number;
  readonly unit: string;
  /** What it is measured against, in words and figures; `value / reference` is printed as a ratio. */
  readonly reference?: { readonly name: string; readonly value: number };
  readonly note?: string;
}

export type Bench = () => Promise<readonly Figure[]>;
