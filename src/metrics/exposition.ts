/**
 * Exposition: metrics in Prometheus' text format, version 0.0.4. Names of counters end in `_total`, times are seconds.
 *
 * @see https://prometheus.io/docs/instrumenting/exposition_formats/
 */

/** Content type of the text. */
export const EXPOSITION_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** Family: all samples of one metric, with its type and help. */
export interface Family {
  /** Name, `[a-zA-Z_:][a-zA-Z0-9_:]*`; a counter's ends in `_total`. */
  readonly name: string;
  /** Type: a counter only grows (until a restart), a gauge moves, a histogram counts by upper bounds. */
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  readonly samples: readonly Sample[];
}

/** Sample: one value of a family. */
export interface Sample {
  /** Suffix of the family's name: `_bucket`, `_sum`, `_count` of a histogram. */
  readonly suffix?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Text of families, each once with its help and type. */
export function expositionText(families: readonly Family[]): string {
  const lines: string[] = [];
  for (const { name, type, help, samples } of families) {
    lines.push(`# HELP ${name} ${escapeHelp(help)}`, `# TYPE ${name} ${type}`);
    for (const { suffix = '', labels, value } of samples) {
      const pairs = Object.entries(labels ?? {}).map(([label, text]) => `${label}="${escapeLabel(text)}"`);
      lines.push(`${name}${suffix}${pairs.length > 0 ? `{${pairs.join(',')}}` : ''} ${numberText(value)}`);
    }
  }
  return lines.map((line) => `${line}\n`).join('');
}

/**
 * Histogram as a family.
 * @param bounds upper bounds, increasing
 * @param counts values up to each bound and above the one before; one more for those above the last
 * @param sum of all values
 */
export function histogram(
  name: string,
  help: string,
  bounds: readonly number[],
  counts: readonly number[],
  sum: number,
): Family {
  let below = 0;
  const buckets = [...bounds, Number.POSITIVE_INFINITY].map((bound, i) => {
    below += counts[i]!;
    return { suffix: '_bucket', labels: { le: numberText(bound) }, value: below };
  });
  const totals = [
    { suffix: '_sum', value: sum },
    { suffix: '_count', value: below },
  ];
  return { name, type: 'histogram', help, samples: [...buckets, ...totals] };
}

/** Number as Go's ParseFloat reads it. */
function numberText(value: number): string {
  if (Number.isFinite(value)) return String(value);
  if (Number.isNaN(value)) return 'NaN';
  return value > 0 ? '+Inf' : '-Inf';
}

function escapeHelp(text: string): string {
  return text.replace(/\\/g, '\\\\').replace(/\n/g, '\\n');
}

function escapeLabel(text: string): string {
  return escapeHelp(text).replace(/"/g, '\\"');
}
