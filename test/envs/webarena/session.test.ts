/** A session on WebArena's sites: actions by number, errors in their own line, stages, tabs, and both fidelities. */
import { describe, expect, it } from 'vitest';
import { webArenaOptions } from '../../../envs/webarena/options.ts';
import { MAX_OBSERVATION } from '../../../envs/webarena/session.ts';
import { drawTask } from '../../../envs/webarena/tasks.ts';
import { ACTIONS_PER_STAGE } from '../../../src/core/env.ts';
import { UserError } from '../../../src/core/errors.ts';
import { browse } from '../../support/web-pages.ts';

/** A task of each first site of the table: shop, back office, map, code host, forum. */
const [SHOP, OFFICE, MAP, CODE, FORUM] = [0, 109, 189, 302, 367] as const;

describe('an observation', () => {
  it('has tabs, page, public address, objective and the previous action', async () => {
    const { text } = await browse(SHOP);
    const { instance } = drawTask({ index: SHOP, seed: 0 });
    expect(text).toMatch(
      /^OBSERVATION:\nTab 0 \(current\): Welcome - Harbour Store\n\n\[1\] RootWebArea 'Welcome - Harbour Store' focused: True\n/,
    );
    expect(text).toContain('\nURL: http://onestopmarket.com/\n');
    expect(text).toContain(`\nOBJECTIVE: ${instance.intent}\n`);
    expect(text.endsWith('\nPREVIOUS ACTION: None')).toBe(true);
  });

  it('prints addresses at links in the dialect of today', async () => {
    expect((await browse(SHOP)).text).not.toContain(' url: ');
    expect((await browse(SHOP, { dialect: 'chromium' })).text).toMatch(/link 'My Cart' url: http:\/\/shop\.test\/cart/);
  });

  it('stays under its bound, whatever is typed', async () => {
    const page = await browse(FORUM);
    const text = await page.act(`type [<searchbox Search posts>] [${'x'.repeat(30_000)}] [0]`);
    expect(text.length).toBeLessThanOrEqual(MAX_OBSERVATION);
  });
});

describe('an action', () => {
  it('on a link follows it, and is described by the element', async () => {
    const page = await browse(SHOP);
    const id = page.id('link', 'My Cart');
    const text = await page.act('click [<link My Cart>]');
    expect(text).toContain('\nURL: http://onestopmarket.com/cart\n');
    expect(text).toContain(`\nPREVIOUS ACTION: click [${id}] where [${id}] is link 'My Cart'`);
  });

  it('typed with Enter sends the form; without, it only fills the field', async () => {
    const page = await browse(SHOP);
    const filled = await page.act('type [<searchbox Search>] [kettle] [0]');
    expect(filled).toContain("StaticText 'kettle'");
    expect(filled).toContain('URL: http://onestopmarket.com/\n');
    const sent = await page.act('type [<searchbox Search>] [pan] [1]');
    expect(sent).toContain('URL: http://onestopmarket.com/search?q=pan\n');
  });

  it.each([
    ['click [999]', 'there is no such element in view'],
    ['type [1] [x]', 'nothing can be typed into that element'],
    ['press [F5]', 'that key does nothing'],
    ['tab_focus [3]', 'there is no such tab'],
    ['goto [http://example.com]', 'that address cannot be opened'],
    ['goto [ftp://shop.test/]', 'that address cannot be opened'],
    ['goto [http://me@shop.test/]', 'that address cannot be opened'],
    ['dance', 'Invalid action dance'],
  ])('%s answers why it failed, in a line of its own', async (action, error) => {
    const page = await browse(SHOP);
    expect((await page.act(action)).split('\n').at(-1)).toBe(`ERROR: ${error}`);
    const original = await browse(SHOP, { fidelity: 'original' });
    expect(await original.act(action)).not.toContain('\nERROR');
  });

  it('goes to a site by its public name, and to ours', async () => {
    const page = await browse(SHOP);
    expect(await page.act('goto [http://openstreetmap.org]')).toContain('URL: http://openstreetmap.org/\n');
    expect(await page.act('goto [http://wiki.test/wiki/none#x]')).toContain('URL: http://wikipedia.org/wiki/none\n');
    expect(await page.act('goto [shop.test/cart]')).toContain('URL: http://onestopmarket.com/cart\n');
  });

  it('goes back and on through history', async () => {
    const page = await browse(SHOP);
    await page.act('click [<link My Cart>]', 'click [<link Contact Us>]');
    expect(await page.act('go_back')).toContain('/cart\n');
    expect(await page.act('go_forward')).toContain('/contact\n');
  });

  it('opens, switches and closes tabs, eight at most', async () => {
    const page = await browse(SHOP);
    await page.act('new_tab');
    expect(page.text).toMatch(/^OBSERVATION:\nTab 0: Welcome - Harbour Store \| Tab 1 \(current\): \n/);
    expect(page.text).toContain('URL: about:blank\n');
    await page.act('tab_focus [0]');
    expect(page.text).toContain('Tab 0 (current): Welcome');
    for (let i = 0; i < 6; i++) await page.act('new_tab');
    expect(await page.act('new_tab')).toContain('ERROR: there are 8 tabs already');
    await page.act('close_tab');
    expect(page.text).toContain('Tab 6 (current)');
  });

  it('opens a select in place, chooses, and closes it by a second click', async () => {
    const page = await browse(SHOP);
    await page.act('click [<link Kitchen>]');
    const opened = await page.act('click [<combobox Sort by>]');
    expect(opened).toMatch(/combobox 'Sort by' focused: True hasPopup: menu expanded: True value: 'Position'/);
    expect(opened).toContain("option 'Price ascending' selected: False");
    const closed = await page.act('click [<combobox Sort by>]');
    expect(closed).not.toContain("option 'Name'");
    const chosen = await page.act('click [<combobox Sort by>]', 'click [<option Name>]');
    expect(chosen).toContain("value: 'Name'");
    expect(chosen).not.toMatch(/^\t+\[\d+\] option/m);
  });

  it('in a block between backticks counts, the text around it not', async () => {
    const page = await browse(SHOP);
    expect(await page.act('I think ```goto [http://map.test/]``` is right')).toContain('openstreetmap.org');
  });

  it('after the end repeats the same answer', async () => {
    const { session } = await browse(SHOP);
    const end = await session.step('stop [nothing]');
    expect(end).toMatchObject({ kind: 'terminated', reward: 0, success: false });
    expect(await session.step('go_back')).toBe(end);
    expect(session.actions()).toEqual([]);
  });

  it('on an answer of a script or of many lines shows it as one line', async () => {
    const { session } = await browse(SHOP);
    const end = await session.step("stop [a' <script> \u202e b]");
    expect(end.observation.split('\n').at(-1)).toMatch(/^PREVIOUS ACTION: stop \[.*<script> \\u202e b\]$/);
  });
});

describe('the list of actions', () => {
  it.each([SHOP, OFFICE, MAP, CODE, FORUM])(
    'of task %i is short, without doubles, and every text in it is valid',
    async (index) => {
      const { session } = await browse(index);
      const listed = session.actions();
      expect(listed.length).toBeGreaterThan(3);
      expect(listed.length).toBeLessThanOrEqual(ACTIONS_PER_STAGE);
      expect(new Set(listed).size).toBe(listed.length);
      for (const action of listed) {
        const { session: other } = await browse(index);
        const step = await other.step(action);
        expect([action, /\nERROR: (?!that key)/.test(step.observation)]).toEqual([action, false]);
      }
    },
  );

  it('has what the objective quotes for fields', async () => {
    const page = await browse(SHOP);
    const { instance } = drawTask({ index: SHOP, seed: 0 });
    const quoted = /"([^"]+)"/.exec(instance.intent)![1]!;
    expect(page.session.actions()).toContain(`type [${page.id('searchbox', 'Search')}] [${quoted}] [1]`);
  });

  it('asks for an answer in a stage of its own where the objective asks something', async () => {
    const page = await browse(SHOP);
    const { session } = page;
    await page.act('click [<link Kitchen>]');
    expect(session.actions()).toContain('answer');
    expect(session.actions().some((text) => text.startsWith('stop'))).toBe(false);
    expect(await session.step('answer')).toMatchObject({ kind: 'mid', partial: true, reward: 0 });
    const answers = session.actions();
    expect(answers[0]).toBe('stop [N/A]');
    expect(answers.at(-1)).toBe('cancel');
    expect(await session.step('cancel')).toMatchObject({ partial: true });
    expect(session.actions()).toContain('answer');
  });

  it('lists the rest under "more": back, home, long navigations', async () => {
    const { session } = await browse(SHOP);
    await session.step('more');
    const more = session.actions();
    expect(more).toEqual(expect.arrayContaining(['go_back', 'goto [http://homepage.com]', 'cancel']));
    expect(more.filter((text) => text.startsWith('click')).length).toBeGreaterThan(8);
  });

  it('ends at once where the objective asks nothing', async () => {
    const index = Array.from({ length: 109 }, (_, i) => i).find((i) =>
      /^Add /.test(drawTask({ index: i, seed: 0 }).instance.intent),
    )!;
    const page = await browse(index);
    const { session } = page;
    await page.act('click [<link Kitchen>]');
    expect(session.actions()).toContain('stop []');
    expect(session.actions()).not.toContain('answer');
  });

  it('has an end under "more" on the page where one began', async () => {
    const { session } = await browse(SHOP);
    expect(session.actions()).not.toContain('answer');
    await session.step('more');
    expect(session.actions()).toContain('answer');
  });

  it('of an opened select has its options, and under "more" the select itself to close it', async () => {
    const page = await browse(SHOP);
    await page.act('click [<link Kitchen>]', 'click [<combobox Sort by>]');
    const clicks = () => page.session.actions().filter((text) => text.startsWith('click'));
    expect(clicks()).toHaveLength(5);
    await page.session.step('more');
    expect(clicks()).toEqual([`click [${page.id('combobox', 'Sort by')}]`]);
  });

  it('scrolls only where there is more to see', async () => {
    const page = await browse(OFFICE);
    await page.act('click [<link Orders>]');
    const long = page.session.actions();
    expect(long.includes('scroll [up]')).toBe(false);
    await page.act('goto [http://home.test/]');
    expect(page.session.actions().some((text) => text.startsWith('scroll'))).toBe(false);
  });
});

describe('options', () => {
  it('are these by default', () => {
    expect(webArenaOptions()).toEqual({
      fidelity: 'corrected',
      dialect: '2023',
      driver: 'in-process',
      sites: 'embedded',
      configs: undefined,
      readOnly: false,
      loadMs: 8000,
      screenshots: undefined,
    });
  });

  it.each([
    [
      { colour: 'red' },
      'has no option "colour"; it has: fidelity, dialect, driver, sites, configs, readOnly, loadMs, screenshots',
    ],
    [{ fidelity: 'exact' }, 'fidelity must be "corrected" or "original", got "exact"'],
    [{ dialect: 2023.5 }, 'dialect must be "2023" or "chromium", got 2023.5'],
    [{ driver: 'firefox' }, 'driver must be "in-process" or "chromium"'],
    [{ configs: 7 }, 'configs must be the path of a folder, got 7'],
    [{ readOnly: 'yes' }, 'readOnly must be true or false, got "yes"'],
    [{ loadMs: 5 }, 'loadMs must be milliseconds in [100, 600000], got 5'],
    [{ loadMs: '8s' }, 'loadMs must be milliseconds in [100, 600000], got "8s"'],
    [{ sites: 'live' }, 'sites: live needs configs'],
    [{ driver: 'chromium', screenshots: 7 }, 'screenshots must be the path of a folder, got 7'],
    [{ screenshots: 'shots' }, 'screenshots need a browser'],
  ])('%j is refused in one line', (options, message) => {
    expect(() => webArenaOptions(options)).toThrow(UserError);
    expect(() => webArenaOptions(options)).toThrow(message);
  });

  it('take the year of a dialect as a number too', () => {
    expect(webArenaOptions({ dialect: 2023 }).dialect).toBe('2023');
  });
});
