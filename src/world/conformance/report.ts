/** Report of `longplay check-env`, for people and for programs. */
import { append } from '../../core/extremes.ts';
import type { AgentResult } from './agents.ts';
import { formatBroken, type LawResult } from './check.ts';
import { type Costs, type Latency, LEAK_BYTES, type Leak } from './measure.ts';

export interface ConformanceReport {
  readonly format: 1;
  readonly env: string;
  readonly ok: boolean;
  /** Seed that repeats the check. */
  readonly seed: number;
  readonly laws: readonly LawResult[];
  readonly leak: Leak;
  readonly costs: Costs;
  readonly agents: readonly AgentResult[];
}

/** True when no law is broken. A weak oracle is no broken law; one that throws is. */
export function conforms({ laws, leak, agents }: Pick<ConformanceReport, 'laws' | 'leak' | 'agents'>): boolean {
  return laws.every(({ ok }) => ok) && leak.ok && agents.every(({ broken }) => broken === undefined);
}

/**
 * Lines of the report.
 * @returns lines without a trailing newline
 */
export function reportLines(report: ConformanceReport): string[] {
  const { laws, leak, costs, agents } = report;
  const mark = (ok: boolean) => (ok ? 'ok    ' : 'BROKEN');
  const lines = [`${report.env}: the laws, seed ${report.seed}`];
  for (const { law, ok, cases } of laws)
    lines.push(`  ${mark(ok)} ${law} (${cases} ${cases === 1 ? 'case' : 'cases'})`);
  lines.push(
    `  ${mark(leak.ok)} keeps nothing of finished episodes (${leak.episodes} episodes, ${Math.max(0, leak.bytesPerEpisode).toFixed(1)} bytes each; at most ${LEAK_BYTES})`,
  );
  for (const result of laws)
    append(
      lines,
      formatBroken(result).map((line, i) => (i === 0 ? `\n${line}` : line)),
    );
  lines.push(
    '',
    'cost, one thread',
    `  open  ${latency(costs.open)}`,
    `  step  ${latency(costs.step)}`,
    `  list  ${latency(costs.list)}`,
    `  ${Math.round(costs.stepsPerSecond)} steps/s with opening and listing; ${kilobytes(costs.bytesPerSession)} per live session`,
    '',
    'agents',
  );
  for (const agent of agents) append(lines, agentLines(agent));
  lines.push('', report.ok ? `${report.env} keeps the laws` : `${report.env} breaks the laws`);
  return lines;
}

function agentLines({
  agent,
  horizon,
  episodes,
  success,
  meanReturn,
  turnsSolved,
  labels,
  broken,
}: AgentResult): string[] {
  const solvedIn = Number.isNaN(turnsSolved) ? '' : `, ${turnsSolved.toFixed(1)} turns where solved`;
  const parts = Object.entries(labels).map(([label, { solved, played }]) => `${label} ${solved}/${played}`);
  return [
    `  ${agent}: solves ${(100 * success).toFixed(0)} % of ${episodes} tasks in ${horizon} turns, return ${meanReturn.toFixed(2)}${solvedIn}`,
    `    ${parts.join(' · ')}`,
    ...(broken === undefined ? [] : [`    BROKEN ${broken}`]),
  ];
}

function latency({ median, p99, max, n }: Latency): string {
  return `median ${milliseconds(median)}, 99 % ${milliseconds(p99)}, longest ${milliseconds(max)} (${n} calls)`;
}

function milliseconds(ms: number): string {
  return Number.isNaN(ms) ? '–' : ms < 1 ? `${(1000 * ms).toFixed(0)} µs` : `${ms.toFixed(1)} ms`;
}

function kilobytes(bytes: number): string {
  return `${(bytes / 1024).toFixed(1)} kB`;
}
