/** WebArena's sites for tests: pages of an episode as text, links and forms, and a session that names elements. */
import { EmbeddedWebArena } from '../../envs/webarena/env.ts';
import { nodesOf } from '../../envs/webarena/nodes.ts';
import { layoutOf, type Page } from '../../envs/webarena/page.ts';
import type { WebSession } from '../../envs/webarena/session.ts';
import { Episode } from '../../envs/webarena/sites/episode.ts';
import { BASES } from '../../envs/webarena/sites/site.ts';
import { drawTask } from '../../envs/webarena/tasks.ts';
import { printTree } from '../../envs/webarena/tree.ts';
import type { SiteId } from '../../envs/webarena/urls.ts';
import { worldOf } from '../../envs/webarena/worlds/embedded.ts';

/** World that these tests look at. */
export const WORLD = worldOf(3);

/** All texts of a page, a line each. */
export function textOf(page: Page): string {
  const nodes = nodesOf(layoutOf(page), 'http://any.test/', { values: new Map(), focused: -1 });
  return printTree(nodes, { fidelity: 'corrected', dialect: '2023', screen: [1280, 1e6] }).text.replace(
    /^\t*\[\w+\] /gm,
    '',
  );
}

/** Pages of one site, in an episode of its own. */
export function siteOf(site: SiteId) {
  const episode = new Episode(WORLD);
  const url = (path: string) => new URL(path, `${BASES[site].replace(/\/admin$/, '')}/`).href;
  return {
    episode,
    world: WORLD,
    page: (path: string) => episode.get(url(path)),
    text: (path: string) => textOf(episode.get(url(path))),
    /** Sends a form. @returns the address it leads to, without the host */
    send(path: string, fields: Record<string, string> = {}): string {
      const to = new URL(episode.post(url(path), new URLSearchParams(fields)));
      return to.pathname + to.search;
    },
    get changes() {
      return episode.changes;
    },
  };
}

/** Cells of a page, of one kind where it is given. */
export function cellsOf(page: Page, kind?: string) {
  return layoutOf(page)
    .cells.map(({ cell }) => cell)
    .filter((cell) => kind === undefined || cell.kind === kind);
}

/** Hrefs of the links of a page, by text; of two of a text the first. */
export function linksOf(page: Page): ReadonlyMap<string, string> {
  const links = new Map<string, string>();
  for (const cell of cellsOf(page)) if (cell.kind === 'link' && !links.has(cell.text)) links.set(cell.text, cell.href);
  return links;
}

/** A session on a task's sites; actions name elements as `<role name>`. */
export async function browse(
  index = 0,
  options: { fidelity?: 'corrected' | 'original'; dialect?: '2023' | 'chromium' } = {},
) {
  const env = new EmbeddedWebArena({ fidelity: 'corrected', dialect: '2023', ...options });
  const session: WebSession = await env.openDrawn(drawTask({ index, seed: 0 }));
  let text = session.first.observation;
  return {
    session,
    get text() {
      return text;
    },
    /** Number of an element in view. */
    id(role: string, name: string): string {
      const escaped = name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
      return new RegExp(`^\\t*\\[(\\d+)\\] ${role} '${escaped}'`, 'm').exec(text)?.[1] ?? `no ${role} ${name}`;
    },
    /** Steps, one after the other. @returns the last observation */
    async act(...actions: readonly string[]): Promise<string> {
      for (const wanted of actions) {
        const action = wanted.replace(/<(\w+) ([^>]*)>/, (_all, role: string, name: string) => this.id(role, name));
        text = (await session.step(action)).observation;
      }
      return text;
    },
  };
}
