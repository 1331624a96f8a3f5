/** The adapter, end to end: our own sites served over HTTP as if somebody else ran them, with configurations in WebArena's form. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findChromium } from '../../envs/webarena/drivers/launch.ts';
import { htmlOf } from '../../envs/webarena/html.ts';
import { createEnv, start } from '../../envs/webarena/index.ts';
import { readTasks } from '../../envs/webarena/live/configs.ts';
import { Turns } from '../../envs/webarena/live/turns.ts';
import { Episode } from '../../envs/webarena/sites/episode.ts';
import { BASES } from '../../envs/webarena/sites/site.ts';
import { worldOf } from '../../envs/webarena/worlds/embedded.ts';
import type { Env, EnvStep, Session } from '../../src/core/env.ts';
import type { Resources } from '../../src/core/world.ts';

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

/** One site of ours at an address of its own, its state shared by everybody, as foreign sites have it. */
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

  it('lists the tasks it can play and says what is left out', () => {
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
  ])('names %s', (_what, evaluation, more, message) => {
    const file = join(folder, 'one.json');
    writeFileSync(file, JSON.stringify([config(evaluation, 1, more)]));
    expect(() => readTasks(file, { shopping: 'http://127.0.0.1:1' })).toThrow(message);
  });

  it('names the variables to set where no site is known', () => {
    expect(() => readTasks(configs, {})).toThrow(/none of the 7 tasks .* set SHOPPING, GITLAB to/);
  });
});
