/** Two drivers, one observation: random whole episodes in process and in Chromium, compared after every action. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EmbeddedBrowser } from '../../../envs/webarena/drivers/embedded-browser.ts';
import { InProcessDriver } from '../../../envs/webarena/drivers/in-process.ts';
import { findChromium } from '../../../envs/webarena/drivers/launch.ts';
import { EmbeddedWebArena } from '../../../envs/webarena/env.ts';
import { oracle } from '../../../envs/webarena/oracle.ts';
import type { Episode } from '../../../envs/webarena/sites/episode.ts';
import type { TimeStep } from '../../../src/core/env.ts';
import { compareEpisode, type MakeDriver, openSide, type Side } from '../../support/two-drivers.ts';

const long = process.env.LONGPLAY_LONG === '1';
const missing = findChromium() === undefined;
if (missing) console.log('skipped: no Chromium (apt-get install chromium, or set CHROMIUM)');

/** Episodes of `ACTIONS` or more to compare: at least these, and as many more as the time allows. */
const MIN_RUNS = Number(process.env.LONGPLAY_EPISODES ?? (long ? 2000 : 10));
/** Actions of an episode that counts; one that stops before is compared and not counted. */
const ACTIONS = 20;
const MAX_MS = long ? 0 : 6_000;

/** A walk over everything a page of ours can hold; `<role name>` stands for the element's number. */
const WALK = [
  'goto [http://wikipedia.org]',
  'click [<checkbox Whole titles and facts>]',
  'click [<checkbox Whole titles and facts>]',
  'press [Space]',
  'press [Shift+Tab]',
  'press [ArrowDown]',
  'press [ArrowUp]',
  'click [<radio Titles only>]',
  'type [<searchbox Search articles>] [History of] [1]',
  'go_back',
  'go_forward',
  'goto [http://onestopmarket.com/category/kitchen]',
  'goto [http://onestopmarket.com/category/kitchen]',
  'go_back',
  'go_forward',
  'click [<combobox Sort by>]',
  'press [ArrowDown]',
  'click [<combobox Sort by>]',
  'click [<option Name>]',
  'click [<checkbox With reviews>]',
  'type [<textbox Highest price>] [250] [0]',
  'click [<combobox Sort by>]',
  'click [<textbox Highest price>]',
  'press [5]',
  'press [ArrowLeft]',
  'press [Backspace]',
  'press [7]',
  'press [Home]',
  'press [Delete]',
  'press [Ctrl+a]',
  'press [9]',
  'press [9]',
  'press [Enter]',
  'goto [http://luma.com/admin/orders]',
  'press [PageDown]',
  'press [ArrowUp]',
  'press [End]',
  'scroll [up]',
  'press [Tab]',
  'press [Tab]',
  'press [Enter]',
  'goto [http://wikipedia.org/wiki/history-of-books]',
  'scroll [down]',
  'scroll [down]',
  'press [PageUp]',
  'press [ArrowDown]',
  'scroll [up]',
  'goto [http://homepage.com]',
  'click [<link Map>]',
  'tab_focus [0]',
  'new_tab',
  'close_tab',
  'close_tab',
  'hover [1]',
];

const inProcess: MakeDriver = (episode) => new InProcessDriver(episode, true);

/** Rules broken one by one: the comparison must see each of them. */
const PLANTED: Readonly<Record<string, (episode: Episode) => InProcessDriver>> = {
  'a Tab that goes nowhere': (episode) =>
    new (class extends InProcessDriver {
      override press(key: string): void {
        if (key !== 'Tab') super.press(key);
      }
    })(episode, true),
  'a text that is typed behind what was there': (episode) =>
    new (class extends InProcessDriver {
      override type(text: string): void {
        super.type(text, false);
      }
    })(episode, true),
  'a closed tab that leaves the first one current': (episode) =>
    new (class extends InProcessDriver {
      override closeTab(): void {
        super.closeTab();
        this.focusTab(0);
      }
    })(episode, true),
  'a page that does not scroll': (episode) =>
    new (class extends InProcessDriver {
      override scroll(): void {}
    })(episode, true),
  'a way back that keeps the page': (episode) =>
    new (class extends InProcessDriver {
      override goBack(): void {}
    })(episode, true),
};

describe('the comparison', () => {
  it('finds no difference of a driver to itself', { timeout: 120_000 }, async () => {
    for (let n = 0; n < 20; n++) expect((await compareEpisode(n, inProcess, inProcess)).difference).toBeUndefined();
  });

  it.each(Object.entries(PLANTED))('finds %s', { timeout: 120_000 }, async (_what, broken) => {
    let found: string | undefined;
    for (let n = 0; n < 60 && found === undefined; n++) found = (await compareEpisode(n, inProcess, broken)).difference;
    expect(found).toBeDefined();
  });
});

describe.skipIf(missing)('both drivers', () => {
  let browser: EmbeddedBrowser;
  beforeAll(async () => {
    browser = await EmbeddedBrowser.start();
  }, 120_000);
  afterAll(() => browser?.dispose());
  const inChromium: MakeDriver = (episode) => browser.openDriver(episode, true);
  const sides = async (task: { index: number; seed: number }): Promise<[Side, Side]> => [
    await openSide(task, inProcess),
    await openSide(task, inChromium),
  ];

  it('show the same, pay the same and leave the same, whatever is done', { timeout: 24 * 3600_000 }, async () => {
    const first = Number(process.env.LONGPLAY_FIRST_SEED ?? (long ? 1 : Math.floor(Math.random() * 2 ** 31)));
    const began = Date.now();
    let steps = 0;
    let counted = 0;
    let n = 0;
    for (; counted < MIN_RUNS || Date.now() - began < MAX_MS; n++) {
      const compared = await compareEpisode(first + n, inProcess, inChromium);
      expect(compared.difference, `seed ${first + n}`).toBeUndefined();
      steps += compared.steps;
      if (compared.steps >= ACTIONS) counted++;
    }
    console.log(
      `two drivers: ${n} episodes, ${counted} of ${ACTIONS} actions or more, ${steps} steps without a difference`,
    );
    expect(browser.contexts).toBe(0);
  });

  it('agree on the history of a form that is sent again', { timeout: 300_000 }, async () => {
    const [ours, chromium] = await sides({ index: 308, seed: 5 });
    for (const action of [
      'click [7]',
      'click [7]',
      'type [6] [abc] [1]',
      'type [6] [abc] [1]',
      ...Array(4).fill('go_back'),
    ]) {
      expect(await chromium.session.step(action), action).toEqual(await ours.session.step(action));
    }
    await ours.session.close();
    await chromium.session.close();
  });

  it('agree on every kind of element, key and way through history', { timeout: 300_000 }, async () => {
    const [ours, chromium] = await sides({ index: 0, seed: 0 });
    let text = ours.session.first.observation;
    for (const wanted of WALK) {
      const action = wanted.replace(
        /<(\w+) ([^>]*)>/,
        (_all, role, name) => new RegExp(`\\[(\\d+)\\] ${role} '${name}'`).exec(text)?.[1] ?? '0',
      );
      const step = await ours.session.step(action);
      expect(await chromium.session.step(action), action).toEqual(step);
      expect(step.observation, `${wanted} as ${action}`).not.toContain('ERROR');
      text = step.observation;
    }
    await ours.session.close();
    await chromium.session.close();
  });

  it('solve a task the same way', { timeout: 300_000 }, async () => {
    const env = new EmbeddedWebArena({ fidelity: 'corrected', dialect: '2023' }, browser.openDriver);
    const task = { env: 'webarena', index: 372, seed: 0 };
    const session = await env.open(task);
    const next = oracle(task);
    let step: TimeStep = session.first;
    while (step.kind !== 'terminated') step = await session.step(next(step)!);
    expect(step).toMatchObject({ reward: 1, success: true });
    await session.close();
  });

  it('reach nothing outside this machine', { timeout: 120_000 }, async () => {
    const [, { session }] = await sides({ index: 0, seed: 0 });
    for (const address of [
      'http://example.com/',
      'https://127.0.0.1/',
      'data:text/html,x',
      'chrome://version',
      'http://shop.test:81/',
      'http://a@shop.test/',
    ]) {
      const answer = await session.step(`goto [${address}]`);
      expect(answer.observation).toMatch(/\nERROR: that address cannot be opened$/);
    }
    await session.close();
  });
});
