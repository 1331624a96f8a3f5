/** The adapter, end to end: our own sites served over HTTP as foreign sites, with configurations in WebArena's form. */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { EmbeddedBrowser } from '../../../envs/webarena/drivers/embedded-browser.ts';
import { findChromium } from '../../../envs/webarena/drivers/launch.ts';
import { EmbeddedWebArena } from '../../../envs/webarena/env.ts';
import { htmlOf } from '../../../envs/webarena/html.ts';
import { createEnv, start } from '../../../envs/webarena/index.ts';
import { readTasks } from '../../../envs/webarena/live/configs.ts';
import { LiveBrowser } from '../../../envs/webarena/live/live-env.ts';
import { Turns } from '../../../envs/webarena/live/turns.ts';
import { Episode } from '../../../envs/webarena/sites/episode.ts';
import { BASES } from '../../../envs/webarena/sites/site.ts';
import { worldOf } from '../../../envs/webarena/worlds/embedded.ts';
import type { Env, EnvStep, Session } from '../../../src/core/env.ts';
import type { Resources } from '../../../src/core/world.ts';

const missing = findChromium() === undefined;
if (missing) console.log('skipped: no Chromium (apt-get install chromium, or set CHROMIUM)');

const world = worldOf(9001);
const product = world.shop.products[3]!;
const TASKS = [
  { eval_types: ['string_match'], reference_answers: { must_include: [(product.price / 100).toFixed(2)] } },
  { eval_types: ['url_match'], reference_url: `__SHOPPING__/product/${product.slug}`, url_note: 'GOLD in PRED' },
  {
    eval_types: ['program_html'],
    program_html: [
      {
        url: '__SHOPPING__/account/wishlist',
        locator: "document.querySelector('[role=list]').outerText",
        required_contents: { must_include: [product.name] },
      },
    ],
  },
  {
    eval_types: ['program_html'],
    program_html: [
      { url: 'func:shopping_get_latest_order_url()', locator: '', required_contents: { must_include: ['x'] } },
    ],
  },
  { eval_types: ['string_match'], reference_answers: { fuzzy_match: ['needs a judge'] } },
  { eval_types: ['string_match'], reference_answers: { fuzzy_match: 'N/A' }, string_note: 'there is none' },
];

function config(evaluation: object, task_id: number, more: object = {}) {
  return {
    task_id,
    sites: ['shopping'],
    storage_state: null,
    start_url: '__SHOPPING__',
    intent: `Task ${task_id}`,
    eval: evaluation,
    ...more,
  };
}

/** One site of ours at an address of its own, its state shared by all sessions, as foreign sites have it. */
function serve(episode: Episode, base: string): Promise<Server> {
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk) => (body += chunk));
    request.on('end', () => {
      const url = new URL(base).origin + request.url;
      if (request.method === 'POST') {
        const to = new URL(episode.post(url, new URLSearchParams(body)));
        response.writeHead(303, { location: to.pathname + to.search }).end();
      } else response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(htmlOf(episode.get(url)));
    });
  });
  return new Promise((done) => server.listen(0, '127.0.0.1', () => done(server)));
}

/** A site in trouble: pages that never load, are too large, or open windows without end. */
function trouble(): Promise<Server> {
  const html = { 'content-type': 'text/html; charset=utf-8' };
  const server = createServer((request, response) => {
    if (request.url === '/never') return; // no answer, ever
    response.writeHead(200, html);
    if (request.url === '/huge') {
      response.write('<!doctype html><title>Huge</title><p>');
      let left = 100;
      const more = () => {
        while (left-- > 0) if (!response.write('x'.repeat(2 ** 20))) return void response.once('drain', more);
        response.end();
      };
      more();
      return;
    }
    response.end(
      `<!doctype html><title>Storm</title><button onclick="for (let i = 0; i < 40; i++) window.open('/page' + i)">Open</button>`,
    );
  });
  return new Promise((done) => server.listen(0, '127.0.0.1', () => done(server)));
}

/** Chromium's processes below this one, by /proc; undefined where there is none. */
function chromiumProcesses(): number | undefined {
  if (!existsSync('/proc/self/stat')) return undefined;
  const parents = new Map<number, number>();
  const names = new Map<number, string>();
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const [, name, state, parent] = /\((.*)\) (\S) (\d+)/s.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))!;
      if (state === 'Z') continue; // ended, and not yet reaped
      parents.set(Number(pid), Number(parent));
      names.set(Number(pid), name!);
    } catch {
      // It has ended meanwhile.
    }
  }
  const isBelow = (pid: number): boolean => pid === process.pid || (parents.has(pid) && isBelow(parents.get(pid)!));
  return [...names].filter(([pid, name]) => /chrom/.test(name) && isBelow(pid)).length;
}

const idOf = (text: string, role: string, name: string) =>
  new RegExp(`\\[(\\d+)\\] ${role} '${name}'`).exec(text)?.[1] ?? '0';

describe('turns on sites', () => {
  it('let one session after the other have a site, and never lock each other', async () => {
    const turns = new Turns();
    const log: string[] = [];
    const visit = async (name: string, sites: string[]) => {
      const release = await turns.take(sites);
      log.push(`${name} in`);
      await new Promise((done) => setTimeout(done, 1));
      log.push(`${name} out`);
      release();
    };
    await Promise.all([visit('a', ['x', 'y']), visit('b', ['y', 'x']), visit('c', ['x'])]);
    expect(log).toEqual(['a in', 'a out', 'b in', 'b out', 'c in', 'c out']);
  });
});

describe.skipIf(missing)('the adapter', () => {
  const folder = mkdtempSync(join(tmpdir(), 'webarena-live-'));
  const configs = join(folder, 'config_files');
  const before = process.env.SHOPPING;
  const episode = new Episode(world);
  let server: Server;
  let resources: Resources;
  let env: Env;
  const options = { sites: 'live', configs };

  beforeAll(async () => {
    server = await serve(episode, BASES.shopping);
    process.env.SHOPPING = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    mkdirSync(configs);
    for (const [i, evaluation] of TASKS.entries())
      writeFileSync(join(configs, `${i}.json`), JSON.stringify(config(evaluation, i)));
    writeFileSync(join(configs, '99.json'), JSON.stringify(config(TASKS[0]!, 99, { sites: ['gitlab'] })));
    resources = await start(options);
    env = createEnv(options, resources);
  }, 120_000);
  afterAll(async () => {
    await resources?.dispose();
    server?.close();
    server?.closeAllConnections();
    if (before === undefined) delete process.env.SHOPPING;
    else process.env.SHOPPING = before;
    rmSync(folder, { recursive: true });
  });

  async function toProduct(session: Session): Promise<EnvStep> {
    const box = idOf(session.first.observation, 'searchbox', 'Search');
    const found = await session.step(`type [${box}] [${product.name}] [1]`);
    return session.step(`click [${idOf(found.observation, 'link', product.name)}]`);
  }

  it('lists the tasks it can play and reports what is left out', () => {
    expect(env.tasks.count).toBe(5);
    expect(env.description).toMatch(/: 5; left out 1 without a site's address and 1 that need a judge/);
    expect(env.replay).toBe('never');
  });

  it('plays string_match, url_match and program_html to their reward', { timeout: 120_000 }, async () => {
    const answers = [`It is $${(product.price / 100).toFixed(2)}`, '', ''];
    for (const [index, answer] of answers.entries()) {
      for (const right of [false, true]) {
        const session = await env.open({ env: 'webarena', index, seed: 0 });
        if (right) {
          const at = await toProduct(session);
          expect(at.observation).toContain('\nURL: http://onestopmarket.com/product/');
          if (index === 2) await session.step(`click [${idOf(at.observation, 'button', 'Add to Wish List')}]`);
        }
        const end = await session.step(`stop [${right ? answer : 'no idea'}]`);
        expect(end).toMatchObject({ kind: 'terminated', reward: Number(right), success: right });
        await session.close();
      }
    }
  });

  it('fails an episode whose evaluator fails, and never rewards it', { timeout: 60_000 }, async () => {
    const session = await env.open({ env: 'webarena', index: 3, seed: 0 });
    await expect(Promise.resolve(session.step('stop [x]'))).rejects.toThrow(/Unknown helper/);
    await session.close();
  });

  it('goes to no other address', { timeout: 60_000 }, async () => {
    const session = await env.open({ env: 'webarena', index: 4, seed: 0 });
    for (const address of ['http://127.0.0.1:1/', 'file:///etc/passwd', 'http://example.com']) {
      expect((await session.step(`goto [${address}]`)).observation).toMatch(/ERROR: that address cannot be opened$/);
    }
    expect(await session.step('stop [N/A]')).toMatchObject({ success: true });
    await session.close();
  });

  it('fails one episode where a site is down, a page never loads or is too large, and goes on', {
    timeout: 240_000,
  }, async () => {
    const broken = await trouble();
    const base = `http://127.0.0.1:${(broken.address() as AddressInfo).port}`;
    const sites = process.env.SHOPPING;
    const file = join(folder, 'trouble.json');
    const starts = [`${base}/never`, `${base}/huge`, `${base}/`];
    writeFileSync(file, JSON.stringify(starts.map((start_url, i) => config(TASKS[5]!, i, { start_url }))));
    process.env.SHOPPING = base;
    const own = await LiveBrowser.start();
    try {
      const troubled = createEnv({ sites: 'live', configs: file, loadMs: 4000 }, own);
      const open = (index: number) => troubled.open({ env: 'webarena', index, seed: 0 });
      await expect(open(0)).rejects.toThrow(/^webarena: http:.*\/never cannot be loaded: .*Timeout 4000ms/);
      await expect(open(1)).rejects.toThrow(/too large to read|\/huge cannot be loaded/);
      const session = await open(2);
      const stormed = await session.step(`click [${idOf(session.first.observation, 'button', 'Open')}]`);
      expect(stormed.observation.match(/Tab \d+/g)!.length).toBeLessThanOrEqual(8);
      expect(await session.step('stop [N/A]')).toMatchObject({ kind: 'terminated' });
      await session.close();
      broken.closeAllConnections();
      await new Promise((done) => broken.close(done));
      await expect(open(2)).rejects.toThrow(/cannot be loaded: .*ERR_CONNECTION_REFUSED/);
      expect(own.browser.contexts()).toHaveLength(0);
    } finally {
      if (sites !== undefined) process.env.SHOPPING = sites;
      await own.dispose();
      broken.closeAllConnections();
      broken.close();
    }
  });

  it('loses neither contexts nor processes when episodes are killed', { timeout: 24 * 3600_000 }, async () => {
    const own = await EmbeddedBrowser.start();
    const sites = new EmbeddedWebArena({ fidelity: 'corrected', dialect: '2023' }, own.openDriver);
    const episodes = process.env.LONGPLAY_LONG === '1' ? 500 : 6;
    const killed = (n: number) => (episodes > 100 ? n % 20 === 7 : n % 4 === 3);
    await (await sites.open({ env: 'webarena', index: 0, seed: 0 })).close(); // its services start with the first page
    const before = chromiumProcesses();
    let lost = 0;
    for (let n = 0; n < episodes; n++) {
      const session = await sites.open({ env: 'webarena', index: n % 372, seed: 0 });
      await session.step('scroll [down]');
      if (killed(n)) {
        const step = Promise.resolve(session.step('go_back')).catch(() => {
          lost++;
        });
        await session.close();
        await step;
      } else await session.step('stop [x]');
      await session.close();
    }
    console.log(`${episodes} episodes, ${lost} of them lost in the middle of a step`);
    expect([own.contexts, own.episodes]).toEqual([0, 0]);
    if (before === undefined) return own.dispose();
    // Processes end a little after their contexts; a spare renderer or two are Chromium's own.
    await vi.waitFor(() => expect(chromiumProcesses()).toBeLessThanOrEqual(before + 2), 30_000);
    const withBrowser = chromiumProcesses()!;
    await own.dispose();
    await vi.waitFor(() => expect(chromiumProcesses()).toBeLessThan(withBrowser), 30_000);
  });

  it.each([
    [
      'an evaluator it does not know',
      { eval_types: ['smell'] },
      {},
      /expected an evaluator among string_match, url_match, program_html, got "smell"/,
    ],
    [
      'a login that is not there',
      TASKS[0]!,
      { storage_state: './.auth/none.json' },
      /needs the login .*none\.json, which is not there/,
    ],
    ['no intent', TASKS[0]!, { intent: 7 }, /expected intent and start_url/],
    ['a site it does not know', TASKS[0]!, { sites: ['bank'] }, /expected a site among reddit, .*got "bank"/],
    ['a login without cookies', TASKS[0]!, { storage_state: './empty.json' }, /empty\.json, which holds no cookies/],
    ['a login that has expired', TASKS[0]!, { storage_state: './old.json' }, /old\.json, which expired on 2001-09-09/],
  ])('names %s', (_what, evaluation, more, message) => {
    const inside = join(folder, 'tasks');
    mkdirSync(inside, { recursive: true });
    const file = join(inside, 'one.json');
    writeFileSync(file, JSON.stringify([config(evaluation, 1, more)]));
    writeFileSync(join(inside, 'empty.json'), '{}');
    writeFileSync(join(inside, 'old.json'), '{"cookies":[{"expires":1000000000},{"expires":-1}]}');
    expect(() => readTasks(file, { shopping: 'http://127.0.0.1:1' })).toThrow(message);
  });

  it('names the variables to set where no site is known', () => {
    expect(() => readTasks(configs, {})).toThrow(/none of the 7 tasks .* set SHOPPING, GITLAB to/);
  });
});
