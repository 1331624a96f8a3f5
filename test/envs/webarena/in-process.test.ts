/** In-process driver: tabs, history, forms and fields over the sites, and what its snapshots show. */
import { beforeEach, describe, expect, it } from 'vitest';
import { MAX_TABS } from '../../../envs/webarena/drivers/driver.ts';
import { InProcessDriver } from '../../../envs/webarena/drivers/in-process.ts';
import { ROW } from '../../../envs/webarena/page.ts';
import { Episode } from '../../../envs/webarena/sites/episode.ts';
import { WORLD } from '../../support/web-pages.ts';

const SHOP = 'http://shop.test/';
const WIKI = 'http://wiki.test/';
const HOME = 'http://home.test/';

let episode: Episode;
let driver: InProcessDriver;
beforeEach(() => {
  episode = new Episode(WORLD);
  driver = new InProcessDriver(episode, true);
});

const url = () => driver.snapshot().url;
/** Node of a role and name in the whole page. */
const node = (role: string, name: string) =>
  driver.snapshot().nodes.find((one) => one.role === role && one.name === name)!;
/** Clicks into the middle of an element. */
function click(role: string, name: string): void {
  const [x, y, width, height] = node(role, name).rect!;
  driver.click(x + width / 2, y + height / 2 - driver.snapshot().scrolled);
}
const value = (role: string, name: string) => node(role, name).value;

describe('history', () => {
  it('begins with a blank page', () => {
    expect(driver.snapshot()).toMatchObject({ url: 'about:blank', titles: [''], current: 0, scrolled: 0 });
    driver.goto(SHOP);
    driver.goBack();
    expect(url()).toBe('about:blank');
    driver.goBack();
    expect(url()).toBe('about:blank');
    driver.forward();
    expect(url()).toBe(SHOP);
    driver.forward();
    expect(url()).toBe(SHOP);
  });

  it('forgets what lay ahead when another way is taken', () => {
    for (const to of [SHOP, WIKI]) driver.goto(to);
    driver.goBack();
    driver.goto(HOME);
    driver.forward();
    expect(url()).toBe(HOME);
    driver.goBack();
    expect(url()).toBe(SHOP);
  });

  it('has no entry for a page that is loaded again', () => {
    driver.goto(SHOP);
    driver.goto(SHOP);
    driver.goBack();
    expect(url()).toBe('about:blank');
  });

  it('has an entry for every form that is sent, even to the address that is open', () => {
    driver.goto(WIKI);
    for (let n = 0; n < 2; n++) click('button', 'Search');
    const searched = url();
    driver.goBack();
    expect(url()).toBe(searched);
    driver.goBack();
    expect(url()).toBe(WIKI);
  });

  it('brings a page back as the site shows it now, without what was typed', () => {
    driver.goto(WIKI);
    click('searchbox', 'Search articles');
    driver.type('books', false);
    expect(value('searchbox', 'Search articles')).toBe('books');
    driver.goto(SHOP);
    driver.goBack();
    expect(value('searchbox', 'Search articles')).toBe('');
  });
});

describe('tabs', () => {
  it('are opened at the end and become current', () => {
    driver.goto(SHOP);
    driver.newTab();
    expect(driver.snapshot()).toMatchObject({ url: 'about:blank', current: 1 });
    driver.goto(WIKI);
    driver.focusTab(0);
    expect(driver.snapshot()).toMatchObject({ url: SHOP, current: 0 });
    expect(driver.snapshot().titles).toHaveLength(2);
  });

  it('that are closed leave the last one current, the last of all a blank one', () => {
    driver.goto(SHOP);
    for (const to of [WIKI, HOME]) {
      driver.newTab();
      driver.goto(to);
    }
    driver.focusTab(0);
    driver.closeTab();
    expect(driver.snapshot()).toMatchObject({ url: HOME, current: 1 });
    driver.closeTab();
    driver.closeTab();
    expect(driver.snapshot()).toMatchObject({ url: 'about:blank', current: 0, titles: [''] });
  });

  it('have a history each', () => {
    driver.goto(SHOP);
    driver.newTab();
    driver.goto(WIKI);
    driver.goBack();
    expect(url()).toBe('about:blank');
    driver.focusTab(0);
    expect(url()).toBe(SHOP);
  });

  it('are opened by links that ask for it, without a blank page behind', () => {
    driver.goto(HOME);
    click('link', 'Map');
    expect(driver.snapshot()).toMatchObject({ url: 'http://map.test/', current: 1 });
    driver.goBack();
    expect(url()).toBe('http://map.test/');
  });

  it('opened by a link stay behind where the original leaves them', () => {
    driver = new InProcessDriver(episode, false);
    driver.goto(HOME);
    click('link', 'Map');
    expect(driver.snapshot()).toMatchObject({ url: HOME, current: 0 });
    expect(driver.snapshot().titles).toHaveLength(2);
  });

  it('are eight at most, however many links are clicked', () => {
    driver.goto(HOME);
    for (let i = 0; i < MAX_TABS + 3; i++) {
      click('link', 'Map');
      driver.focusTab(0);
    }
    expect(driver.snapshot().titles).toHaveLength(MAX_TABS);
  });
});

describe('forms', () => {
  it('that get send their fields in the address', () => {
    driver.goto('http://shop.test/category/kitchen');
    click('textbox', 'Highest price');
    driver.type('100', false);
    click('checkbox', 'With reviews');
    click('button', 'Apply');
    expect(url()).toBe('http://shop.test/category/kitchen?sort=Position&max=100&reviewed=on');
    expect(value('textbox', 'Highest price')).toBe('100');
  });

  it('send what is hidden, and of radios the chosen one', () => {
    driver.goto(WIKI);
    click('radio', 'Titles only');
    click('searchbox', 'Search articles');
    driver.type('x y', false);
    driver.press('Enter');
    expect(url()).toBe('http://wiki.test/search?q=x+y&in=titles');
    const place = WORLD.map.places[0]!;
    driver.goto('http://map.test/place/0');
    click('button', 'Directions from here');
    expect(new URL(url()).searchParams.get('from')).toBe(place.name);
  });

  it('that post change the site and lead on; posting again is a new entry', () => {
    const [forum] = WORLD.forum.forums;
    driver.goto(`http://forum.test/f/${forum}`);
    click('button', 'Subscribe');
    expect(episode.changes).toEqual({ [`forum/subscribed/${forum}`]: 'yes' });
    expect(url()).toBe(`http://forum.test/f/${forum}`);
    click('button', 'Unsubscribe');
    expect(episode.changes).toEqual({});
    driver.goBack();
    driver.goBack();
    expect(url()).toBe(`http://forum.test/f/${forum}`);
  });

  it('send the button that was pressed, and no other', () => {
    const post = WORLD.forum.posts[0]!;
    driver.goto(`http://forum.test/f/${post.forum}/${post.id}`);
    click('button', 'Downvote');
    expect(episode.changes).toEqual({ [`forum/vote/${post.id}`]: '-1' });
  });
});

describe('fields', () => {
  beforeEach(() => driver.goto('http://shop.test/category/kitchen'));

  it('take text at the caret, or in place of what was there', () => {
    click('textbox', 'Highest price');
    driver.type('12', false);
    driver.type('3', false);
    expect(value('textbox', 'Highest price')).toBe('123');
    driver.type('9', true);
    expect(value('textbox', 'Highest price')).toBe('9');
  });

  it('take nothing where nothing has the focus', () => {
    driver.click(1279, 719);
    driver.type('123', false);
    expect(value('textbox', 'Highest price')).toBe('');
  });

  it('of a select take an option by its node', () => {
    const select = node('combobox', 'Sort by');
    driver.focusNode(select.id);
    driver.choose(node('option', 'Name').id);
    expect(value('combobox', 'Sort by')).toBe('Name');
    expect(node('combobox', 'Sort by').properties[0]).toEqual(['focused', true]);
    driver.choose('nothing');
    expect(value('combobox', 'Sort by')).toBe('Name');
  });

  it('lose the focus to a click beside them', () => {
    click('textbox', 'Highest price');
    expect(node('textbox', 'Highest price').properties).toContainEqual(['focused', true]);
    driver.click(10, 719);
    expect(node('textbox', 'Highest price').properties).not.toContainEqual(['focused', true]);
  });
});

describe('scrolling', () => {
  it('moves what a click meets', () => {
    driver.goto('http://wiki.test/wiki/history-of-books');
    const [x, y] = node('link', 'Almanac').rect!;
    driver.scroll('down');
    expect(driver.snapshot().scrolled).toBeGreaterThan(0);
    driver.click(x + 1, y + 1);
    expect(url()).toBe('http://wiki.test/wiki/history-of-books');
    driver.scroll('up');
    driver.click(x + 1, y + 1);
    expect(url()).toBe(WIKI);
  });

  it('goes by the height of the screen, and is where clicks count from', () => {
    driver.goto('http://admin.test/admin/orders');
    const all = driver.snapshot().nodes.filter(({ rect }) => rect !== null);
    const height = Math.max(...all.map(({ rect }) => rect![1] + rect![3]));
    driver.scroll('down');
    expect(driver.snapshot().scrolled).toBe(Math.max(0, Math.min(720, height - 720)));
    driver.scroll('up');
    expect(driver.snapshot().scrolled).toBe(0);
  });

  it('begins anew with each page', () => {
    driver.goto('http://admin.test/admin/reviews');
    driver.press('End');
    const { scrolled } = driver.snapshot();
    driver.goto('http://admin.test/admin/orders');
    expect(driver.snapshot().scrolled).toBe(0);
    expect(scrolled % ROW).toBe(0);
  });
});
