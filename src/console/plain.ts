/** Plain lines for logs: a row as one `key=value` line. Pure. */
import { type Metric, type MetricsRow, metricTable, type PlainName } from '../metrics/metric-table.ts';

/** Metrics that a person follows a run by. */
const NAMES = metricTable.filter((metric: Metric) => metric.inLine).map(({ name }) => name as PlainName);

/** Line of a row. Split metrics become `success[depth_1]=0.5`; a key has no blanks, so that the line splits at them. */
export function plainLine(row: MetricsRow): string {
  // Of several worlds each has its own outcomes: those of all together depend on how much of each was drawn.
  const names = row.shareByWorld ? NAMES.filter((name) => !OUTCOMES.includes(name)) : NAMES;
  const pairs = names.flatMap((name) => {
    const value = row[name];
    return value === undefined ? [] : [`${name}=${short(value)}`];
  });
  const worlds = row.shareByWorld ? listWorldPairs(row) : [];
  const labels = Object.entries(row.shareByWorld ? {} : (row.successByLabel ?? {})).map(
    ([label, value]) => `success[${label.replace(/[\s=[\]\p{C}]+/gu, '_')}]=${short(value)}`,
  );
  const parts = Object.entries(row.time ?? {}).map(([part, share]) => `time[${part}]=${short(share)}`);
  return [...pairs, ...worlds, ...labels, ...parts].join(' ');
}

/** Outcomes that a line names by world, where a run has several. */
const OUTCOMES: readonly PlainName[] = ['horizon', 'success', 'return', 'turns', 'truncated'];

/** Pairs of each world: `success[mine]=0.5`. */
function listWorldPairs(row: MetricsRow): string[] {
  const { horizonByWorld, successByWorld, returnByWorld, turnsByWorld, truncatedByWorld, downByWorld } = row;
  const columns = { horizon: horizonByWorld, success: successByWorld, return: returnByWorld, turns: turnsByWorld };
  const down = Object.fromEntries(Object.entries(downByWorld ?? {}).filter(([, value]) => value > 0));
  const all = { ...columns, truncated: truncatedByWorld, down };
  return Object.keys(row.shareByWorld ?? {}).flatMap((world) =>
    Object.entries(all).flatMap(([name, values]) => {
      const value = values?.[world];
      return value === undefined ? [] : [`${name}[${world}]=${short(value)}`];
    }),
  );
}

function short(value: number): string {
  return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(3)));
}
