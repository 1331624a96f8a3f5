/**
 * View tree → HTML: the same page for a real browser. The stylesheet is the row layout; the script takes the keys whose
 * effect would depend on fonts or platform (scrolling, focus order, closed selects), so that both drivers have one rule.
 */
import { type Block, type Cell, type Page, ROW, type Row, SCREEN } from './page.ts';

const STYLE = `*{margin:0;padding:0;border:0;box-sizing:border-box;font:12px/${ROW}px sans-serif;background:#fff;color:#111}
html{overflow-x:hidden;overflow-y:scroll;scrollbar-width:none;scroll-behavior:auto}
body{width:${SCREEN[0]}px;overflow-x:hidden}
.r{display:flex;height:${ROW}px;width:${SCREEN[0]}px}
.r>*{flex:1 1 0;min-width:0;height:${ROW}px;overflow:hidden;white-space:pre;text-align:left}
.d{display:flex}.d>*{flex:1 1 0;min-width:0;overflow:hidden;white-space:pre;text-align:left}
a{color:#06c}h1,h2,h3{font-weight:bold}button,input,select{background:#eee;border-radius:0}
input[type=checkbox],input[type=radio]{appearance:none;background:#ddd}input:checked{background:#06c}`;

/** Runs in the page. Its twin in process is drivers/keys.ts. */
const SCRIPT = `(() => {
const ROW = ${ROW}, H = ${SCREEN[1]};
history.scrollRestoration = 'manual';
const stops = () => [...document.querySelectorAll('a[href],button,input:not([type=hidden]),select')].filter((e) => e.type !== 'radio' || e === stop(e));
const group = (e) => [...document.querySelectorAll('input[type=radio]')].filter((o) => o.name === e.name && o.form === e.form);
const stop = (e) => group(e).find((o) => o.checked) || group(e)[0];
const caret = (e) => { if (e && e.setSelectionRange && (e.type === 'text' || e.type === 'search')) e.setSelectionRange(e.value.length, e.value.length); };
const show = (e) => {
  const y = e.getBoundingClientRect().top;
  if (y < 0 || y + ROW > H) window.scrollTo(0, Math.round((y + scrollY) / ROW) * ROW - 15 * ROW);
};
const focus = (e) => { e.focus({ preventScroll: true }); caret(e); show(e); };
const by = (px) => window.scrollTo(0, scrollY + px);
addEventListener('keydown', (e) => {
  const t = document.activeElement, k = e.key;
  const isText = t.matches('input[type=text],input[type=search]');
  if (k === 'Tab') {
    e.preventDefault();
    const all = stops();
    if (all.length === 0) return;
    const at = all.indexOf(t.type === 'radio' ? stop(t) : t);
    const next = at < 0 ? (e.shiftKey ? all.length - 1 : 0) : at + (e.shiftKey ? -1 : 1);
    if (next < 0 || next >= all.length) t.blur(); else focus(all[next]);
  } else if (isText) {
    if (['ArrowUp', 'ArrowDown', 'PageUp', 'PageDown', 'Escape'].includes(k)) e.preventDefault();
  } else if (t.tagName === 'SELECT') {
    if (e.ctrlKey) return;
    e.preventDefault();
    const to = k === 'ArrowDown' ? t.selectedIndex + 1 : k === 'ArrowUp' ? t.selectedIndex - 1 : k === 'Home' ? 0 : k === 'End' ? t.options.length - 1 : -1;
    if (to >= 0 && to < t.options.length) t.selectedIndex = to;
  } else if (t.type === 'radio' && k.startsWith('Arrow')) {
    e.preventDefault();
    const all = group(t), step = k === 'ArrowDown' || k === 'ArrowRight' ? 1 : -1;
    const next = all[(all.indexOf(t) + step + all.length) % all.length];
    next.checked = true;
    focus(next);
  } else if (k === ' ' && (t.tagName === 'BUTTON' || t.type === 'checkbox' || t.type === 'radio')) {
    return;
  } else {
    const px = { ArrowDown: 2 * ROW, ArrowUp: -2 * ROW, PageDown: H - 3 * ROW, PageUp: 3 * ROW - H, ' ': H - 3 * ROW, Home: -1e6, End: 1e6 }[k];
    if (px !== undefined) { e.preventDefault(); by(px); }
  }
});
addEventListener('mousedown', (e) => { if (e.target.tagName === 'SELECT') { e.preventDefault(); e.target.focus({ preventScroll: true }); } });
addEventListener('mouseup', (e) => setTimeout(() => caret(e.target)));
addEventListener('click', (e) => { const a = e.target.closest && e.target.closest('a[href]'); if (a && a.target === '_blank') window.opens = (window.opens || 0) + 1; else if (a) window.leaving = true; });
addEventListener('submit', () => { window.leaving = true; });
addEventListener('wheel', (e) => e.preventDefault(), { passive: false });
})();`;

/** Text as HTML. */
function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}

/** HTML of a page, complete with style and script. */
export function htmlOf(page: Page): string {
  const body = page.blocks.map(blockHtml).join('\n');
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><link rel="icon" href="data:,"><title>${escapeHtml(page.title)}</title><style>${STYLE}</style></head>
<body>${body}<script>${SCRIPT}</script></body></html>`;
}

const TAGS: Readonly<Record<string, string>> = { navigation: 'nav', main: 'main', form: 'form' };

function blockHtml(block: Block): string {
  if (block.kind === 'row') return rowHtml(block);
  const tag = TAGS[block.role] ?? 'div';
  const role = TAGS[block.role] ? '' : ` role="${block.role}"`;
  const name = block.name === '' ? '' : ` aria-label="${escapeHtml(block.name)}"`;
  const { form } = block;
  const attributes = form ? ` action="${escapeHtml(form.action)}" method="${form.method}" autocomplete="off"` : '';
  const hidden = Object.entries(form?.hidden ?? {}).map(([key, value]) => {
    return `<input type="hidden" name="${escapeHtml(key)}" value="${escapeHtml(value)}">`;
  });
  return `<${tag}${role}${name}${attributes}>${hidden.join('')}${block.blocks.map(blockHtml).join('\n')}</${tag}>`;
}

function rowHtml({ role, cells }: Row): string {
  if (role === 'plain') return `<div class="r">${cells.map(cellHtml).join('')}</div>`;
  if (role === 'item') return `<div class="r" role="listitem">${cells.map(cellHtml).join('')}</div>`;
  const cellRole = role === 'header' ? 'columnheader' : 'cell';
  return `<div class="r" role="row">${cells.map((cell) => `<div class="d" role="${cellRole}">${cellHtml(cell)}</div>`).join('')}</div>`;
}

function cellHtml(cell: Cell): string {
  switch (cell.kind) {
    case 'text':
      return `<span>${escapeHtml(cell.text)}</span>`;
    case 'status':
      return `<div role="status">${escapeHtml(cell.text)}</div>`;
    case 'heading':
      return `<h${cell.level}>${escapeHtml(cell.text)}</h${cell.level}>`;
    case 'link':
      return `<a href="${escapeHtml(cell.href)}"${cell.blank ? ' target="_blank"' : ''}>${escapeHtml(cell.text)}</a>`;
    case 'button':
      return `<button name="${escapeHtml(cell.name)}" value="${escapeHtml(cell.value)}">${escapeHtml(cell.text)}</button>`;
    case 'textbox':
    case 'searchbox':
      return `<input type="${cell.kind === 'textbox' ? 'text' : 'search'}" name="${escapeHtml(cell.name)}" aria-label="${escapeHtml(cell.label)}" value="${escapeHtml(cell.value)}">`;
    case 'checkbox':
      return `<input type="checkbox" name="${escapeHtml(cell.name)}" aria-label="${escapeHtml(cell.label)}"${cell.checked ? ' checked' : ''}>`;
    case 'radio':
      return `<input type="radio" name="${escapeHtml(cell.name)}" value="${escapeHtml(cell.value)}" aria-label="${escapeHtml(cell.label)}"${cell.checked ? ' checked' : ''}>`;
    case 'select': {
      const options = cell.options.map(
        (option) => `<option${option === cell.value ? ' selected' : ''}>${escapeHtml(option)}</option>`,
      );
      return `<select name="${escapeHtml(cell.name)}" aria-label="${escapeHtml(cell.label)}">${options.join('')}</select>`;
    }
  }
}
