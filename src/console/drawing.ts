/** Drawings (core/draw.ts) as styled lines for a terminal. */
import type { Drawing, Panel } from '../core/draw.ts';
import { type Line, type Style, span } from './text.ts';

const COLORS: Readonly<Record<string, Style>> = {
  red: 'red',
  green: 'green',
  yellow: 'yellow',
  blue: 'blue',
  purple: 'magenta',
  grey: 'dim',
  white: 'bold',
};

/** Panels one below the other, each under its title. */
export function drawingLines({ panels }: Drawing): Line[] {
  return panels.flatMap((panel) => [[span(`── ${panel.title}`)], ...panelLines(panel)]);
}

function panelLines(panel: Panel): Line[] {
  if (panel.kind === 'text') return panel.lines.map((text) => [span(text)]);
  if (panel.kind === 'list') {
    if (panel.items.length === 0) return [[span('(nothing)')]];
    return panel.items.map(({ name, count, mark }) => [
      span(`${mark === 'goal' ? '★ ' : ''}${count === undefined ? '' : `${count} × `}${name}`),
    ]);
  }
  return panel.rows.map((row) =>
    row.map(({ glyph, color, dim }) =>
      span(glyph.padEnd(2), dim ? 'dim' : color ? (COLORS[color] ?? 'plain') : 'plain'),
    ),
  );
}
