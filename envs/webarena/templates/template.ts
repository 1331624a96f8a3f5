/** Templates of tasks: wording with slots, what counts as done, and the steps that do it. */
import type { Rng } from '../../../src/core/rng.ts';
import type { Answer } from '../answers.ts';
import type { Changes } from '../sites/site.ts';
import type { SiteId } from '../urls.ts';
import type { Embedded } from '../worlds/embedded.ts';

/** Labels of the paper's columns. */
export const LABELS = ['shopping', 'shopping_admin', 'map', 'gitlab', 'reddit'] as const;
/** Label of a task: the paper's column. */
export type Label = (typeof LABELS)[number];

/** One step of a plan: an element by role and name, never by number. */
export type Step =
  | { readonly do: 'click'; readonly role: string; readonly name: string; readonly nth: number }
  | { readonly do: 'type'; readonly label: string; readonly text: string; readonly enter: boolean }
  | { readonly do: 'choose'; readonly label: string; readonly option: string }
  | { readonly do: 'goto'; readonly site: SiteId }
  | { readonly do: 'stop'; readonly answer: string };

/** A task with its slots filled. */
export interface Instance {
  readonly intent: string;
  /** Right answer; undefined where only the page or the changes count. */
  readonly answer?: Answer;
  /** Path and query the current page must have at the end. */
  readonly url?: string;
  /** Changes there must be, and no others; none by default. */
  readonly changes?: Changes;
  /** Steps before `stop`. */
  readonly plan: readonly Step[];
}

/** Template of tasks: wording with slots, drawn by a seed. */
export interface Template {
  /** `shopping/price` */
  readonly id: string;
  readonly label: Label;
  /** Sites it plays on; the first is where it starts. */
  readonly sites: readonly SiteId[];
  /** True for one that no training task has. */
  readonly unseen: boolean;
  /** Fills the slots; undefined where this draw has no unique answer. */
  draw(world: Embedded, rng: Rng): Instance | undefined;
}

/** Step that clicks the `nth` element of this role and name. */
export function click(name: string, role = 'link', nth = 0): Step {
  return { do: 'click', role, name, nth };
}

/** Step that presses a button. */
export function press(name: string): Step {
  return click(name, 'button');
}

/** Step that types into a field. */
export function fill(label: string, text: string): Step {
  return { do: 'type', label, text, enter: false };
}

/** Step that types into a field and presses Enter. */
export function enter(label: string, text: string): Step {
  return { do: 'type', label, text, enter: true };
}

/** Step that chooses an option of a list. */
export function choose(label: string, option: string): Step {
  return { do: 'choose', label, option };
}

/** Step that opens the front page of a site. */
export function goTo(site: SiteId): Step {
  return { do: 'goto', site };
}

/** Steps that click `Next` until the page of an item is there. */
export function pages(index: number, size = 10): Step[] {
  return Array.from({ length: Math.floor(index / size) }, () => click('Next'));
}

type Draw = Template['draw'];

/** Templates of one site from a table of draws; names that end in `*` are kept for testing. */
export function templatesOf(label: Label, site: SiteId, draws: Readonly<Record<string, Draw>>): Template[] {
  return Object.entries(draws).map(([name, draw]) => {
    const unseen = name.endsWith('*');
    return { id: `${label}/${name.replace('*', '')}`, label, sites: [site], unseen, draw };
  });
}
