/** Chromium over the sites of our own: one browser and one loopback server a host, one context an episode. */
import type { Browser } from 'playwright-core';
import type { Resources } from '../../../src/core/world.ts';
import { SCREEN } from '../page.ts';
import { Episode } from '../sites/episode.ts';
import { worldOf } from '../worlds/embedded.ts';
import { ChromiumDriver } from './chromium.ts';
import type { Driver } from './driver.ts';
import { launchChromium } from './launch.ts';
import { EPISODE_HEADER, type Loopback, startLoopback } from './loopback.ts';

/** Longest wait for one step of a browser. */
const LOAD_MS = 20_000;

/** Browser and loopback server of one host, shared by its episodes. */
export class EmbeddedBrowser implements Resources {
  readonly #browser: Browser;
  readonly #loopback: Loopback;

  private constructor(browser: Browser, loopback: Loopback) {
    this.#browser = browser;
    this.#loopback = loopback;
  }

  /** @throws {UserError} where there is no Chromium */
  static async start(): Promise<EmbeddedBrowser> {
    const loopback = await startLoopback();
    try {
      const hosts = `MAP *.test 127.0.0.1:${loopback.port},MAP * ~NOTFOUND,EXCLUDE 127.0.0.1`;
      return new EmbeddedBrowser(await launchChromium(hosts), loopback);
    } catch (thrown) {
      await loopback.close();
      throw thrown;
    }
  }

  /** Contexts that are open, for tests of what leaks. */
  get contexts(): number {
    return this.#browser.contexts().length;
  }

  /** Episodes that are served, for the same. */
  get episodes(): number {
    return this.#loopback.size;
  }

  readonly openDriver = (episode: Episode, focusesOpened: boolean): Promise<Driver> =>
    this.#open(episode, focusesOpened);

  async #open(episode: Episode, focusesOpened: boolean): Promise<ChromiumDriver> {
    const name = this.#loopback.add(episode);
    const context = await this.#browser.newContext({
      viewport: { width: SCREEN[0], height: SCREEN[1] },
      deviceScaleFactor: 1,
      extraHTTPHeaders: { [EPISODE_HEADER]: name },
      acceptDownloads: false,
      serviceWorkers: 'block',
    });
    context.on('close', () => this.#loopback.remove(name));
    const options = { screen: SCREEN, focusesOpened, rows: true, loadMs: LOAD_MS, settleMs: 0 };
    return ChromiumDriver.open(context, options).catch(async (thrown) => {
      await context.close().catch(() => {});
      throw thrown;
    });
  }

  /**
   * Milliseconds for all rectangles of a page, by one snapshot and by two calls a node: the medians of `runs`.
   * @param url address on a site of our own
   */
  async compareObservations(url: string, runs: number): Promise<{ snapshot: number; oneByOne: number }> {
    const driver = await this.#open(new Episode(worldOf(0)), true);
    try {
      await driver.goto(url);
      return await driver.compareRectangles(runs);
    } finally {
      await driver.close();
    }
  }

  async dispose(): Promise<void> {
    await this.#browser.close().catch(() => {});
    await this.#loopback.close();
  }
}
