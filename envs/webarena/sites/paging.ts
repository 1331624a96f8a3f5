/** Long lists in pages. */
import { type CellLike, link, type Row, row } from '../page.ts';

const PAGE_SIZE = 10;

/** Page of a long list. */
export interface Paged<T> {
  readonly items: readonly T[];
  /** Page from 1. */
  readonly page: number;
  readonly pages: number;
  readonly total: number;
}

/** Takes one page of a long list. @param requested page number as an address has it; anything else is the first */
export function takePage<T>(items: readonly T[], requested: string | null, size = PAGE_SIZE): Paged<T> {
  const pages = Math.max(1, Math.ceil(items.length / size));
  const number = /^\d{1,4}$/.test(requested ?? '') ? Number(requested) : 1;
  const page = Math.min(Math.max(1, number), pages);
  return { items: items.slice((page - 1) * size, page * size), page, pages, total: items.length };
}

/** Row with the number of the page, and links to its neighbours. */
export function pager({ page, pages, total }: Paged<unknown>, path: string, query: URLSearchParams): Row {
  const to = (n: number) => {
    const next = new URLSearchParams(query);
    next.set('page', String(n));
    return `${path}?${next}`;
  };
  const cells: CellLike[] = [`${total} found, page ${page} of ${pages}`];
  if (page > 1) cells.push(link('Previous', to(page - 1)));
  if (page < pages) cells.push(link('Next', to(page + 1)));
  return row(...cells);
}
