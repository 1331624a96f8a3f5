/** Two drivers, one observation: random whole episodes in process and in Chromium, compared after every action. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Driver } from '../../envs/webarena/drivers/driver.ts';
import { EmbeddedBrowser } from '../../envs/webarena/drivers/embedded-browser.ts';
import { InProcessDriver } from '../../envs/webarena/drivers/in-process.ts';
import { findChromium } from '../../envs/webarena/drivers/launch.ts';
import { browseOptions, EmbeddedWebArena, objectiveOf } from '../../envs/webarena/env.ts';
import { oracle } from '../../envs/webarena/oracle.ts';
import { WebSession } from '../../envs/webarena/session.ts';
import { Episode } from '../../envs/webarena/sites/episode.ts';
import { drawTask } from '../../envs/webarena/tasks.ts';
import type { TimeStep } from '../../src/core/env.ts';
import { Rng } from '../../src/core/rng.ts';

const long = process.env.LONGPLAY_LONG === '1';
const missing = findChromium() === undefined;
if (missing) console.log('skipped: no Chromium (apt-get install chromium, or set CHROMIUM)');

/** Episodes to compare: at least these, and as many more as the time allows. */
const LEAST = long ? 2000 : 10;
const MOST_MS = long ? 0 : 20_000;
const TURNS = 22;
const KEYS =
  'Tab,Shift+Tab,Enter,Space,ArrowDown,ArrowUp,ArrowLeft,ArrowRight,Home,End,PageDown,PageUp,Backspace,Delete,Ctrl+a,Escape,x,Q,7,F5'.split(
    ',',
  );
const WORDS = ['kettle', 'Ann  Bee', '5', '2023-03', `it's "q" \\`, 'd\u00e9j\u00e0 \u6f22', 'books', 'marlow', ' '];
const ADDRESSES = [
  'http://homepage.com',
  'http://reddit.com/f/books?sort=Top',
  'http://onestopmarket.com/nowhere',
  'http://luma.com/admin/orders?page=2',
  'file:///etc/passwd',
  'http://gitlab.com/#x',
  'http://wikipedia.org',
  'http://wikipedia.org/search?q=garden',
  'http://onestopmarket.com/category/kitchen?sort=Name',
];

/** Any action: on elements in view mostly, keys, typing, scrolling, history, tabs, addresses, an answer now and then. */
function anyAction(observation: string, rng: Rng): string {
  const inView = Array.from(observation.matchAll(/^\t*\[(\d+)\] (\S+)/gm), ([, id, role]) => ({
    id: id!,
    role: role!,
  }));
  const one = (...roles: string[]) => {
    const found = inView.filter(({ role }) => roles.length === 0 || roles.includes(role));
    return found.length === 0 ? '9999' : rng.pick(found).id;
  };
  const kinds = [
    () => `click [${one('link', 'button', 'checkbox', 'combobox', 'option', 'radio')}]`,
    () => `click [${one('link', 'button', 'checkbox', 'combobox', 'option', 'radio')}]`,
    () => `click [${one('combobox', 'option', 'checkbox', 'radio')}]`,
    () => `click [${one()}]`,
    () => `type [${one('textbox', 'searchbox')}] [${rng.pick(WORDS)}] [${rng.int(2)}]`,
    () => `press [${rng.pick(KEYS)}]`,
    () => `press [${rng.pick(KEYS)}]`,
    () => `scroll [${rng.pick(['down', 'up'])}]`,
    () => rng.pick(['go_back', 'go_forward', 'go_back']),
    () => rng.pick(['new_tab', 'close_tab', `tab_focus [${rng.int(3)}]`]),
    () => `goto [${rng.pick(ADDRESSES)}]`,
    () => `hover [${one()}]`,
    () => (rng.int(12) === 0 ? `stop [${rng.int(20)}]` : `click [${one('link', 'button')}]`),
  ];
  return rng.pick(kinds)();
}

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
  'goto [http://homepage.com]',
  'click [<link Map>]',
  'tab_focus [0]',
  'new_tab',
  'close_tab',
  'close_tab',
  'hover [1]',
];

interface Side {
  readonly session: WebSession;
  readonly episode: Episode;
}

describe.skipIf(missing)('both drivers', () => {
  let browser: EmbeddedBrowser;
  beforeAll(async () => {
    browser = await EmbeddedBrowser.start();
  }, 120_000);
  afterAll(() => browser?.dispose());

  async function sides(task: { index: number; seed: number }): Promise<[Side, Side]> {
    const drawn = drawTask(task);
    const options = { fidelity: 'corrected', dialect: task.seed % 2 === 0 ? '2023' : 'chromium' } as const;
    const openSide = async (make: (episode: Episode) => Driver | Promise<Driver>) => {
      const episode = new Episode(drawn.world);
      const session = await WebSession.open(
        await make(episode),
        browseOptions(options),
        objectiveOf(drawn, episode, 'corrected'),
      );
      return { session, episode };
    };
    return [
      await openSide((episode) => new InProcessDriver(episode, true)),
      await openSide((episode) => browser.openDriver(episode, true)),
    ];
  }

  it('say the same, pay the same and leave the same, whatever is done', { timeout: 24 * 3600_000 }, async () => {
    const seed = long ? 1 : 20_231;
    const began = Date.now();
    let steps = 0;
    for (let n = 0; n < LEAST || Date.now() - began < MOST_MS; n++) {
      const rng = Rng.fromSeed(seed + n);
      const task = { env: 'webarena', index: rng.int(422), seed: rng.int(40) };
      const [ours, chromium] = await sides(task);
      const solver = rng.int(3) === 0 ? oracle(task) : undefined;
      const trace: string[] = [];
      let step: TimeStep = ours.session.first;
      let other: TimeStep = chromium.session.first;
      const where = () => `episode ${n}, task ${task.index}/${task.seed}\n${trace.join('\n')}`;
      expect(other, where()).toEqual(step);
      while (trace.length < TURNS && step.kind !== 'terminated') {
        const action = (solver && rng.int(4) > 0 ? solver(step) : undefined) ?? anyAction(step.observation, rng);
        trace.push(action);
        step = await ours.session.step(action);
        other = await chromium.session.step(action);
        expect(other, where()).toEqual(step);
        expect(chromium.session.url, where()).toBe(ours.session.url);
        steps++;
      }
      expect(chromium.episode.changes, where()).toEqual(ours.episode.changes);
      await ours.session.close();
      await chromium.session.close();
    }
    console.log(`two drivers: ${steps} steps without a difference`);
    expect(browser.contexts).toBe(0);
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
