/** Evaluations of runs as a table: the newest of each name, with its interval and its sub-tasks. */
import type { EvaluatedTasks, EvaluationRow } from '../api.ts';
import { isRandom, type RunCurves } from './curves.ts';
import { h, numberText, visible } from './dom.ts';

/** Most sub-tasks that have a column of their own. */
const MAX_LABELS = 8;

interface Evaluated {
  readonly run: string;
  readonly row: EvaluationRow;
}

/** Table of the newest evaluations; null where no run was evaluated. */
export function evaluationsElement(runs: readonly RunCurves[]): HTMLElement | null {
  const rows = runs.flatMap(({ info, curves }): Evaluated[] => {
    const newest = new Map(curves.evaluations.map((row) => [row.name, row]));
    return [...newest.values()]
      .sort((a, b) => b.horizon - a.horizon || compareNames(a.name, b.name))
      .map((row) => ({ run: info.name, row }));
  });
  if (rows.length === 0) return null;
  const labels = [...new Set(rows.flatMap(({ row }) => row.labels.map(({ label }) => label)))];
  const shown = labels.length > 1 ? labels.slice(0, MAX_LABELS) : [];
  const several = runs.length > 1;
  const repeated = rows.some(({ row: { all } }) => all.episodes !== all.tasks);
  const unseen = rows.some(({ row }) => row.unseen);
  const head = h(
    'tr',
    {},
    h('th', { scope: 'col' }, 'evaluation'),
    h('th', { scope: 'col' }, 'success (95 %)'),
    several ? h('th', { scope: 'col' }, 'run') : null,
    shown.map((label) => h('th', { scope: 'col', class: 'n' }, visible(label))),
    unseen ? h('th', { scope: 'col', class: 'n' }, 'unseen') : null,
    ['return', 'turns', 'tasks', ...(repeated ? ['episodes'] : []), 'update'].map((name) =>
      h('th', { scope: 'col', class: 'n' }, name),
    ),
  );
  const body = h('tbody', { class: 'plain' });
  for (const { run, row } of rows) {
    const { all, name } = row;
    const findLabel = (label: string) => row.labels.find((one) => one.label === label);
    body.append(
      h(
        'tr',
        {},
        h('th', { scope: 'row' }, visible(name)),
        h('td', {}, intervalBar(all), h('strong', {}, percentText(all.success.value)), ` ${intervalText(all)}`),
        several ? h('td', {}, visible(run)) : null,
        shown.map((label) => h('td', { class: 'n' }, percentText(findLabel(label)?.success.value))),
        unseen ? h('td', { class: 'n' }, percentText(row.unseen?.success.value)) : null,
        [all.score, all.turns, all.tasks, ...(repeated ? [all.episodes] : []), row.update].map((value) =>
          h('td', { class: 'n' }, numberText(value)),
        ),
      ),
    );
  }
  return h(
    'section',
    { class: 'card evaluations' },
    h('h2', {}, 'Evaluations'),
    h('div', { class: 'scroll' }, h('table', { aria: { 'aria-label': 'evaluations' } }, h('thead', {}, head), body)),
    labels.length > shown.length && shown.length > 0
      ? h('p', { class: 'muted' }, `${labels.length - shown.length} more sub-tasks are in results.json`)
      : null,
  );
}

/** Random play last: it is what the others are compared with. */
function compareNames(a: string, b: string): number {
  return Number(isRandom(a)) - Number(isRandom(b)) || (a < b ? 1 : -1);
}

function percentText(share: number | null | undefined): string {
  return share === null || share === undefined ? '–' : `${(100 * share).toFixed(1)} %`;
}

function intervalText({ success: { low, high } }: EvaluatedTasks): string {
  return low === null || high === null ? '' : `(${(100 * low).toFixed(1)}–${(100 * high).toFixed(1)})`;
}

/** Bar from 0 to 100 %: filled up to the value, with the interval as a line over it. */
function intervalBar({ success: { value, low, high } }: EvaluatedTasks): HTMLElement {
  const width = (share: number | null) => `${(100 * (share ?? 0)).toFixed(1)}%`;
  return h(
    'span',
    { class: 'interval', aria: { 'aria-hidden': 'true' } },
    h('span', { style: { width: width(value) } }),
    h('i', { style: { left: width(low), width: width((high ?? 0) - (low ?? 0)) } }),
  );
}
