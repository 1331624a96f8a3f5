/**
 * Makes elements. Text only ever becomes a text node or an attribute of a fixed name: there is no way from a trace to
 * markup in this page.
 */
import { cutAt } from '../search.ts';

/** Content of an element: a node, a text, nothing, or a list of them of any length. */
export type Child = Node | string | number | null | undefined | false | readonly Child[];

export interface Attributes {
  readonly class?: string;
  readonly title?: string;
  readonly href?: string;
  readonly type?: string;
  readonly value?: string;
  readonly placeholder?: string;
  readonly role?: string;
  readonly id?: string;
  readonly for?: string;
  readonly scope?: string;
  readonly src?: string;
  readonly alt?: string;
  readonly disabled?: boolean;
  readonly tabindex?: string;
  /** Attributes `aria-…` and `data-…` by their full names. */
  readonly aria?: Readonly<Record<string, string | undefined>>;
  /** Styles, set by property, as the security policy allows. */
  readonly style?: Readonly<Record<string, string>>;
  readonly on?: Readonly<Record<string, (event: Event) => void>>;
}

export function h(tag: string, attributes: Attributes = {}, ...children: readonly Child[]): HTMLElement {
  const element = document.createElement(tag);
  const { aria = {}, style = {}, on = {}, disabled, ...plain } = attributes;
  for (const [name, value] of Object.entries(plain)) if (value !== undefined) element.setAttribute(name, String(value));
  for (const [name, value] of Object.entries(aria)) if (value !== undefined) element.setAttribute(name, value);
  for (const [name, value] of Object.entries(style)) element.style.setProperty(name, value);
  for (const [name, listener] of Object.entries(on)) element.addEventListener(name, listener);
  if (disabled) element.setAttribute('disabled', '');
  put(element, children);
  return element;
}

/** Appends children one by one: a call takes some 120,000 arguments, a text may have more marks. */
function put(element: Element, children: readonly Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (isList(child)) put(element, child);
    else element.append(typeof child === 'object' ? child : String(child));
  }
}

function isList(child: Child): child is readonly Child[] {
  return Array.isArray(child);
}

/** Visible text: control characters as symbols (␛ for escape), newlines and tabs as they are. */
export function visible(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is replaced
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, (char) => {
    const code = char.charCodeAt(0);
    return code < 0x20 ? String.fromCharCode(0x2400 + code) : code === 0x7f ? '␡' : '�';
  });
}

export function numberText(value: number | null | undefined): string {
  if (value === null || value === undefined || Number.isNaN(value)) return '–';
  if (Number.isInteger(value)) return value.toLocaleString('en');
  const size = Math.abs(value);
  if (size >= 1000) return Math.round(value).toLocaleString('en');
  return size < 0.001 ? value.toExponential(1) : String(Number(value.toPrecision(3)));
}

/** Pieces of a text as children, with each place of the needle marked. */
export function markText(text: string, needle: string): Child[] {
  return cutAt(visible(text), needle).map((piece, i) => (i % 2 === 1 ? h('mark', {}, piece) : piece));
}

/** Key and value of a legend: a swatch of a colour, a name, a number in bold. */
export function legendItem(color: string, name: string, value: string): HTMLElement {
  return h(
    'li',
    {},
    h('span', { class: 'swatch', style: { background: color } }),
    `${visible(name)} `,
    h('strong', {}, value),
  );
}

/** Choice: a select with a label that screen readers read. */
export function choice(
  label: string,
  value: string,
  options: readonly (readonly [value: string, text: string])[],
  change: (value: string) => void,
): HTMLElement {
  const select = h('select', {
    aria: { 'aria-label': label, 'data-focus': `choice ${label}` },
    on: { change: () => change(select.value) },
  }) as HTMLSelectElement;
  for (const [key, text] of options) select.append(h('option', { value: key }, text));
  select.value = value;
  return h('label', {}, h('span', { class: 'muted' }, `${label} `), select);
}

/** Shows content: replaces what an element holds. */
export function show(parent: Element, ...children: readonly Child[]): void {
  parent.replaceChildren();
  put(parent, children);
}

/** Focuses the element of a name (`data-focus`) within another. @returns false where there is none */
export function focusWithin(parent: Element, name: string): boolean {
  const element = parent.querySelector<HTMLElement>(`[data-focus="${CSS.escape(name)}"]`);
  element?.focus();
  return element !== null;
}
