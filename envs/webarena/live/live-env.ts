/**
 * Adapter: WebArena's tasks on sites that the user runs, with the original's observation, actions and evaluators.
 * Actions there cannot be taken back, so an episode is never repeated, and sessions take turns on a site.
 */
import type { Browser, BrowserContext } from 'playwright-core';
import type { Env, Session } from '../../../src/core/env.ts';
import { UserError } from '../../../src/core/errors.ts';
import type { Split, Task, TaskTable } from '../../../src/core/task.ts';
import type { Resources } from '../../../src/core/world.ts';
import { ChromiumDriver } from '../drivers/chromium.ts';
import { launchChromium } from '../drivers/launch.ts';
import { type EvaluationPage, evaluate, type Judge } from '../evaluate.ts';
import type { WebArenaOptions } from '../options.ts';
import { SCREEN } from '../page.ts';
import { screenshotsOf } from '../screenshots.ts';
import { MAX_OBSERVATION, type Objective, WebSession } from '../session.ts';
import { PAPER_SPLIT } from '../split.ts';
import type { SiteBases } from '../urls.ts';
import { type LiveTask, type LiveTasks, readTasks, siteBases } from './configs.ts';
import { Turns } from './turns.ts';

/** Rest after an action: the original sleeps, we wait until the page has loaded and a little longer. */
const SETTLE_MS = { original: 1500, corrected: 100 } as const;

/** One Chromium a host, which reaches the sites' hosts and nothing else. */
export class LiveBrowser implements Resources {
  readonly browser: Browser;
  readonly turns = new Turns();

  private constructor(browser: Browser) {
    this.browser = browser;
  }

  /** @throws {UserError} without a Chromium, or where a site's variable holds no address */
  static async start(): Promise<LiveBrowser> {
    const hosts = Object.values(siteBases()).map((base) => new URL(base).hostname);
    return new LiveBrowser(
      await launchChromium(['MAP * ~NOTFOUND', ...new Set(hosts.map((host) => `EXCLUDE ${host}`))].join(',')),
    );
  }

  async dispose(): Promise<void> {
    await this.browser.close().catch(() => {});
  }
}

/** Environment of WebArena's tasks on sites that the user runs. */
export class LiveWebArena implements Env {
  readonly id = 'webarena';
  readonly description: string;
  readonly tasks: TaskTable;
  readonly rewardRange = [0, 1] as const;
  readonly maxObservationChars = MAX_OBSERVATION;
  readonly replay = 'never' as const;
  readonly #options: WebArenaOptions;
  readonly #bases: SiteBases;
  readonly #origins: ReadonlySet<string>;
  readonly #all: LiveTasks;
  readonly #resources: LiveBrowser | undefined;

  /** @throws {UserError} BAD_CONFIG */
  constructor(options: WebArenaOptions, resources: LiveBrowser | undefined) {
    this.#options = options;
    this.#resources = resources;
    this.#bases = siteBases();
    this.#origins = new Set(Object.values(this.#bases).map((base) => new URL(base).origin));
    this.#all = readTasks(options.configs!, this.#bases);
    const { tasks, withoutSite, withoutJudge } = this.#all;
    this.description = `WebArena's own tasks on live sites: ${tasks.length}; left out ${withoutSite} without a site's address and ${withoutJudge} that need a judge.`;
    this.tasks = tableOf(tasks);
  }

  /** Waits for its turn on the task's sites. @throws {RangeError} for a task index outside the table */
  async open(issued: Task): Promise<Session> {
    const { index } = issued;
    const task = this.#all.tasks[index];
    if (!task) throw new RangeError(`webarena: task index must be in [0, ${this.#all.tasks.length}), got ${index}`);
    if (!this.#resources)
      throw new UserError('MISSING_ENGINE', 'webarena: live sites need their host to have started the browser');
    const release = this.#options.readOnly ? () => {} : await this.#resources.turns.take(task.sites);
    try {
      return await this.#play(issued, task, this.#resources.browser, release);
    } catch (thrown) {
      release();
      throw thrown;
    }
  }

  async #play(issued: Task, task: LiveTask, browser: Browser, release: () => void): Promise<Session> {
    const { fidelity, dialect, loadMs, screenshots } = this.#options;
    const context = await browser.newContext({
      viewport: { width: SCREEN[0], height: SCREEN[1] },
      deviceScaleFactor: 1,
      acceptDownloads: false,
      ...(task.storage_state === null ? {} : { storageState: task.storage_state }),
    });
    try {
      await context.route('**/*', (route) => (this.#isOurs(route.request().url()) ? route.continue() : route.abort()));
      const driverOptions = {
        screen: SCREEN,
        focusesOpened: fidelity === 'corrected',
        rows: false,
        loadMs,
        settleMs: SETTLE_MS[fidelity],
      };
      const driver = await ChromiumDriver.open(context, driverOptions);
      const browse = {
        fidelity,
        dialect,
        screen: SCREEN,
        bases: this.#bases,
        numbered: fidelity === 'corrected',
        allowed: (url: string) => (this.#isOurs(url) ? url : undefined),
        ...screenshotsOf(driver, screenshots, issued),
      };
      const session = await WebSession.open(driver, browse, this.#objective(task, driver));
      context.on('close', release);
      return session;
    } catch (thrown) {
      await context.close().catch(() => {});
      throw thrown;
    }
  }

  #isOurs(url: string): boolean {
    return URL.canParse(url) && this.#origins.has(new URL(url).origin);
  }

  #objective(task: LiveTask, driver: ChromiumDriver): Objective {
    return {
      intent: task.intent,
      startUrls: task.start_url.split(' |AND| '),
      judge: async (answer) => {
        const page = new LivePage(driver, this.#options.loadMs);
        try {
          const score = await evaluate(
            task.eval,
            { intent: task.intent, answer, page, judge: judgeWithoutModel },
            this.#options.fidelity,
          );
          return { success: score === 1, reward: score };
        } finally {
          await page.close();
        }
      },
    };
  }
}

/** Without a judge, a reason other than `N/A` is no match. Tasks that need one are not in the table. */
const judgeWithoutModel: Judge = async ({ kind }) => {
  if (kind === 'reason') return 'different';
  throw new Error('webarena: this task needs a judge');
};

function tableOf(tasks: readonly LiveTask[]): TaskTable {
  const held = new Set(PAPER_SPLIT.test);
  const indices = tasks.map((_, i) => i);
  const test = indices.filter((i) => held.has(tasks[i]!.task_id));
  const train = indices.filter((i) => !held.has(tasks[i]!.task_id));
  const label = (index: number): string => {
    const task = tasks[index];
    if (!task) throw new RangeError(`webarena: task index must be in [0, ${tasks.length}), got ${index}`);
    return task.sites[0] ?? 'none';
  };
  return {
    count: tasks.length,
    labels: [...new Set(tasks.map((_, i) => label(i)))],
    label,
    split: (split: Split) => (split === 'train' ? train : test),
    evalSeed: 0,
  };
}

/** The agent's page for what is judged where it stands; a page of its own, in the same login, for other addresses. */
class LivePage implements EvaluationPage {
  readonly #driver: ChromiumDriver;
  readonly #loadMs: number;
  #own: Awaited<ReturnType<BrowserContext['newPage']>> | undefined;

  constructor(driver: ChromiumDriver, loadMs: number) {
    this.#driver = driver;
    this.#loadMs = loadMs;
  }

  get #page() {
    return this.#own ?? this.#driver.page;
  }

  url(): string {
    return this.#page.url();
  }

  async goto(url: string): Promise<void> {
    this.#own ??= await this.#driver.openAsidePage();
    await this.#own.goto(url, { timeout: this.#loadMs });
  }

  content(): Promise<string> {
    return this.#page.content();
  }

  evaluate(source: string): Promise<unknown> {
    return this.#page.evaluate(`(${source})()`);
  }

  async close(): Promise<void> {
    await this.#own?.close().catch(() => {});
  }
}
