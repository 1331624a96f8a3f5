/** Drawings of a world: panels of text, counted things and grids. */
import type { Drawing, GridPanel, ListPanel, Panel, TextPanel } from '../../core/draw.ts';
import { h, visible } from './dom.ts';

export function drawingElement(drawing: Drawing): HTMLElement {
  return h(
    'div',
    {},
    drawing.panels.map((panel) => h('section', { class: 'card' }, h('h3', {}, visible(panel.title)), panelBody(panel))),
  );
}

function panelBody(panel: Panel): HTMLElement {
  if (panel.kind === 'text') return textBody(panel);
  return panel.kind === 'list' ? listBody(panel) : gridBody(panel);
}

function textBody({ lines }: TextPanel): HTMLElement {
  return h('pre', {}, visible(lines.join('\n')));
}

const MARKS: Readonly<Record<string, string>> = { good: 'good', bad: 'bad', goal: 'warn' };

function listBody({ items }: ListPanel): HTMLElement {
  if (items.length === 0) return h('p', { class: 'muted' }, 'nothing');
  const body = h('tbody');
  for (const { name, count, mark } of items) {
    const text = h(
      'td',
      mark ? { class: MARKS[mark]! } : {},
      visible(name),
      mark ? h('span', { class: 'sr' }, ` (${mark})`) : '',
    );
    body.append(h('tr', {}, h('td', { class: 'n' }, count ?? ''), text));
  }
  return h('table', {}, body);
}

function gridBody({ title, rows }: GridPanel): HTMLElement {
  const width = rows[0]?.length ?? 0;
  const named = rows.flatMap((row, y) => row.flatMap(({ name }, x) => (name ? [`${name} at ${x}, ${y}`] : [])));
  const grid = h('div', {
    class: 'grid',
    role: 'img',
    aria: { 'aria-label': `${visible(title)}, ${width} by ${rows.length}: ${visible(named.slice(0, 60).join('; '))}` },
    style: { 'grid-template-columns': `repeat(${width}, auto)` },
  });
  for (const row of rows) {
    for (const { glyph, color, dim, name } of row) {
      // A block fills its cell: as a glyph it would leave gaps between walls.
      const full = glyph === '█';
      const classes = [color ? `c-${color}` : '', full ? 'full' : '', dim ? 'dim' : ''].filter(Boolean).join(' ');
      grid.append(h('span', { class: classes, ...(name ? { title: visible(name) } : {}) }, full ? '' : visible(glyph)));
    }
  }
  return h('div', { class: 'scroll' }, grid);
}
