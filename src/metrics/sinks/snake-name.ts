/** Names of metrics in snake case, as Prometheus and OpenTelemetry write them. */

/** Name in snake case: `successByLabel` is `success_by_label`. */
export function snakeName(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
