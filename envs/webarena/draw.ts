/** Drawing of the page as it is seen, for console and viewer: lines of text, never markup. */
import type { Draw } from '../../src/core/draw.ts';
import { readTurn } from './describe.ts';

const MAX_LINES = 60;

export const draw: Draw = (_task, first, turns) => {
  const texts = [first.observation, ...turns.filter(({ partial }) => !partial).map(({ observation }) => observation)];
  const turn = texts.map(readTurn).findLast((read) => read !== undefined);
  if (!turn) return { panels: [{ kind: 'text', title: 'Page', lines: [texts.at(-1)!] }] };
  const [tabs = '', , ...tree] = turn.observation.split('\n');
  const lines = tree.map((line) => line.replaceAll('\t', '  '));
  const shown =
    lines.length > MAX_LINES ? [...lines.slice(0, MAX_LINES - 1), `… ${lines.length - MAX_LINES + 1} more`] : lines;
  const about = [`objective  ${turn.objective}`, `address    ${turn.url}`, `last       ${turn.previousAction}`];
  return {
    panels: [
      { kind: 'text', title: tabs, lines: turn.error === '' ? about : [...about, `error      ${turn.error}`] },
      { kind: 'text', title: 'Page', lines: shown },
    ],
  };
};
