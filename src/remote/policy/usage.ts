/** Usage of a policy behind a server since the start. */
export interface RemoteUsage {
  /** Requests that were answered well. */
  readonly requests: number;
  /** Requests that had to be sent again, by fault. */
  readonly retries: Readonly<Record<string, number>>;
  /** Turns that no attempt answered. */
  readonly failures: number;
  /** Answers from which no action could be read. */
  readonly formatErrors: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** Cost in the currency of the configured prices. */
  readonly cost: number;
  /** Milliseconds from the first attempt to the answer, summed over the requests. */
  readonly latencyMs: number;
  readonly inFlight: number;
}
