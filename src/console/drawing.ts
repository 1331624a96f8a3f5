/** Drawings (core/draw.ts) as lines of text for a terminal. */
import type { Drawing, Panel } from '../core/draw.ts';

const COLORS = { red: 31, green: 32, yellow: 33, blue: 34, purple: 35, grey: 90, white: 37 } as const;

/**
 * Draws as text.
 * @param color false where escape codes are unwelcome (`NO_COLOR`, a pipe)
 */
export function drawingText(
  { panels }: Drawing,
  color = process.stdout.isTTY === true && !process.env.NO_COLOR,
): string[] {
  return panels.flatMap((panel) => [`── ${panel.title}`, ...panelText(panel, color)]);
}

function panelText(panel: Panel, color: boolean): string[] {
  if (panel.kind === 'text') return [...panel.lines];
  if (panel.kind === 'list') {
    if (panel.items.length === 0) return ['(nothing)'];
    return panel.items.map(
      ({ name, count, mark }) => `${mark === 'goal' ? '★ ' : ''}${count === undefined ? '' : `${count} × `}${name}`,
    );
  }
  return panel.rows.map((row) =>
    row
      .map(({ glyph, color: name, dim }) => {
        const text = glyph.padEnd(2);
        if (!color || (!name && !dim)) return text;
        return `\x1b[${dim ? '2;' : ''}${name ? COLORS[name] : 39}m${text}\x1b[0m`;
      })
      .join(''),
  );
}
