/** Environment over the sites of our own, driven in process or in Chromium. */
import type { Env, Session } from '../../src/core/env.ts';
import type { Task } from '../../src/core/task.ts';
import type { Driver } from './drivers/driver.ts';
import { InProcessDriver } from './drivers/in-process.ts';
import { isSiteKey } from './drivers/keys.ts';
import type { Fidelity } from './grammar.ts';
import { SCREEN } from './page.ts';
import { screenshotsOf } from './screenshots.ts';
import { type BrowseOptions, MAX_OBSERVATION, type Objective, WebSession } from './session.ts';
import { Episode } from './sites/episode.ts';
import { BASES, frontPage, HOSTS } from './sites/site.ts';
import { type Drawn, drawTask, judge, tasks } from './tasks.ts';
import type { Dialect } from './tree.ts';

/** The address to open: one of the sites', without user, port or fragment. */
function siteAddress(text: string): string | undefined {
  const full = /^[a-z][a-z0-9+.-]*:/i.test(text) ? text : `http://${text}`;
  if (text.length > 2000 || !URL.canParse(full)) return undefined;
  const url = new URL(full);
  if (url.protocol !== 'http:' || !HOSTS.has(url.host) || url.username !== '' || url.password !== '') return undefined;
  url.hash = '';
  return url.href;
}

/** Options of the world that its sessions need. */
export interface EmbeddedOptions {
  readonly fidelity: Fidelity;
  readonly dialect: Dialect;
  /** Folder that keeps a screenshot a turn; of a driver that paints. */
  readonly screenshots?: string | undefined;
}

/** Makes the driver of one episode. @param focusesOpened whether a tab that a link opens becomes current */
export type OpenDriver = (episode: Episode, focusesOpened: boolean) => Driver | Promise<Driver>;

/**
 * WebArena on sites of our own: shop, its back office, forum, code host, map, encyclopaedia.
 *
 * Observation  tabs, the accessibility tree of what is in view, the address, the objective, the previous action
 * Action       WebArena's id-based actions: `click [5]`, `type [7] [text] [1]`, `scroll [down]`, `stop [answer]`, …
 * Reward       at `stop`: 1 if answer, page and changes are what the task asks for, else 0
 * Terminates   at `stop`. Truncation belongs to the horizon.
 * Randomness   world and slots from (index, seed); steps have none.
 * Source       WebArena, https://arxiv.org/abs/2307.13854; AgentGym `agentenv-webarena` at 3ef9235d
 * Differs      the sites are ours; see README.md
 */
export class EmbeddedWebArena implements Env {
  readonly id = 'webarena';
  readonly description =
    'Carry out tasks in a shop, its back office, a forum, a code host and a map, as a browser shows them.';
  readonly tasks = tasks;
  readonly rewardRange = [0, 1] as const;
  readonly maxObservationChars = MAX_OBSERVATION;
  readonly replay = 'exact' as const;
  readonly #options: EmbeddedOptions;
  readonly #openDriver: OpenDriver;

  /** @param openDriver by default the in-process driver */
  constructor(
    options: EmbeddedOptions,
    openDriver: OpenDriver = (episode, focuses) => new InProcessDriver(episode, focuses),
  ) {
    this.#options = options;
    this.#openDriver = openDriver;
  }

  /** @throws {RangeError} for a task index outside the table */
  async open(task: Task): Promise<Session> {
    return this.openDrawn(drawTask(task), task);
  }

  /** Opens a task whose slots are filled. @param task names its screenshots; none are kept without it */
  async openDrawn(drawn: Drawn, task?: Task): Promise<WebSession> {
    const episode = new Episode(drawn.world);
    const { fidelity, screenshots } = this.#options;
    const driver = await this.#openDriver(episode, fidelity === 'corrected');
    const browse = { ...browseOptions(this.#options), ...screenshotsOf(driver, screenshots, task) };
    return WebSession.open(driver, browse, objectiveOf(drawn, episode, fidelity));
  }
}

/** Options of a session on the sites of our own. */
export function browseOptions({ fidelity, dialect }: EmbeddedOptions): BrowseOptions {
  return {
    fidelity,
    dialect,
    screen: SCREEN,
    bases: BASES,
    numbered: true,
    resolveAllowed: siteAddress,
    isKey: isSiteKey,
  };
}

/** Objective of a drawn task: its words, where it starts, and its judge. */
export function objectiveOf({ template, instance }: Drawn, episode: Episode, fidelity: Fidelity): Objective {
  return {
    intent: instance.intent,
    startUrls: [frontPage(template.sites[0]!)],
    judge(answer, url) {
      const success = judge(instance, { answer, url, changes: episode.changes }, fidelity);
      return { success, reward: Number(success) };
    },
  };
}
