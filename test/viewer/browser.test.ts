/** The viewer in real Chromium: curves, filters, keys, an episode of each world, hostile traces, phone, report. */
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Browser, chromium, type Locator, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { registry } from '../../envs/registry.ts';
import { printAgentCall, printAgentReply } from '../../src/core/agent-call.ts';
import type { EnvOptions, TimeStep } from '../../src/core/env.ts';
import type { Trajectory, Turn } from '../../src/core/trajectory.ts';
import { findWorld } from '../../src/run/find-world.ts';
import { worldTools } from '../../src/run/view-runs.ts';
import { localUrl } from '../../src/runtime/module-url.ts';
import { TraceFiles } from '../../src/storage/trace-files.ts';
import { reportHtml } from '../../src/viewer/report.ts';
import { RunSource } from '../../src/viewer/run-source.ts';
import { serveViewer, type ViewerServer } from '../../src/viewer/server.ts';
import { loadWorld, openWorld } from '../../src/world/open-world.ts';
import { scene } from '../support/console-scene.ts';
import { trajectoryOf } from '../support/traces.ts';

const executablePath = process.env.LONGPLAY_CHROMIUM ?? '/usr/bin/chromium';
const missing = !existsSync(executablePath);
/** Worlds with rules and a drawing. */
const playable: string[] = [];
for (const [id, url] of Object.entries(registry)) {
  const { createEnv, draw } = await loadWorld(localUrl(url), id);
  if (createEnv && draw) playable.push(id);
}
if (missing) console.log(`skipped: no Chromium at ${executablePath} (Debian: apt-get install chromium)`);
/** Folder to keep screenshots in; none are kept otherwise. */
const shots = process.env.LONGPLAY_SCREENSHOTS;

const evil = `<script>window.pwned=1</script><img src=x onerror="window.pwned=1">\u001b[2J\u0007\u202e"'&</pre></script>`;

describe.skipIf(missing)('the viewer in Chromium', { timeout: 60_000 }, () => {
  const root = mkdtempSync(join(tmpdir(), 'longplay-browser-'));
  let browser: Browser;
  let server: ViewerServer;
  let sources: RunSource[];
  const complaints: string[] = [];

  beforeAll(async () => {
    sources = [run('one', 1), run('two', 2), await worldsRun(), hostileRun(), bigRun(), otherSchedule()].map(
      (dir, id) => new RunSource(dir, id, worldTools()),
    );
    server = await serveViewer(sources, 0);
    browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
  }, 120_000);

  afterAll(async () => {
    await browser?.close();
    await server?.close();
    rmSync(root, { recursive: true, force: true });
  });

  async function open(
    hash: string,
    options: Parameters<Browser['newContext']>[0] = {},
    base = server.url,
  ): Promise<Page> {
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
    const page = await context.newPage();
    await page.addInitScript(watchCanvases);
    page.on('pageerror', (error) => complaints.push(String(error)));
    page.on('console', (message) => {
      if (message.type() === 'error') complaints.push(message.text());
    });
    await page.goto(base + hash);
    await page.locator('main > *').first().waitFor();
    return page;
  }

  /** Another view of the same page. */
  async function visit(page: Page, hash: string): Promise<void> {
    await page.evaluate((to) => {
      location.hash = to;
    }, hash);
    await page.waitForTimeout(150);
  }

  async function shot(page: Page, name: string): Promise<void> {
    if (shots) await page.screenshot({ path: join(shots, `${name}.png`) });
  }

  it('draws curves with phases, and seeds as one band', async () => {
    const page = await open('#/curves');
    await page.getByRole('img', { name: /^Success over updates/ }).waitFor();
    expect(await page.locator('.uplot canvas').count()).toBeGreaterThan(6);
    const band = page.getByRole('img', { name: /^Success over updates; last: one and 1 more seeds/ });
    expect(await band.count()).toBe(1);
    expect(await inked(page, '.uplot canvas')).toBeGreaterThan(0.001);
    await page.getByLabel('seeds', { exact: true }).selectOption('lines');
    await page.getByRole('img', { name: /^Success over updates; last: one 0\.\d+, two 0\.\d+/ }).waitFor();
    await page.getByLabel('over', { exact: true }).selectOption('elapsed');
    await page.getByRole('img', { name: /^Success over seconds/ }).waitFor();
    await shot(page, 'curves');
    await page.context().close();
  });

  it('draws a run of several worlds by world, and no outcome over all of them', async () => {
    const dir = folder('several', 'worlds: [{ name: far, env: { id: toy } }, { name: near, env: { id: toy } }]\n');
    const each = (far: number, near: number) => ({ far, near });
    const row = (update: number) => ({
      ...{ update, success: 0.5, return: 0.5, turns: 3, truncated: 0.5, horizon: 8, loss: 1 },
      ...{ successByWorld: each(0.25, 0.75), returnByWorld: each(1, 2), horizonByWorld: each(4, 8) },
      ...{ shareByWorld: each(0.5, 0.5), successByLabel: { 'far: easy': 0.25 } },
    });
    writeFileSync(join(dir, 'metrics.jsonl'), [1, 2, 3].map((n) => `${JSON.stringify(row(n))}\n`).join(''));
    const own = await serveViewer([new RunSource(dir, 0, worldTools())], 0);
    try {
      const page = await open('#/curves', {}, own.url);
      const image = (name: RegExp) => page.getByRole('img', { name });
      await image(/^Success by world, several over updates; last: far 0\.25, near 0\.75/).waitFor();
      await image(/^Return by world, several/).waitFor();
      await image(/^Horizon by world, several/).waitFor();
      await image(/^Success by sub-task, several/).waitFor();
      await image(/^Loss over updates/).waitFor();
      for (const title of ['Success', 'Return', 'Turns an episode', 'Truncated']) {
        expect(await image(new RegExp(`^${title} over`)).count(), title).toBe(0);
      }
      await page.context().close();
    } finally {
      await own.close();
    }
  });

  it('puts evaluations beside the curves: a table with intervals, and marks where training stood', async () => {
    const page = await open('#/curves');
    const table = page.getByRole('table', { name: 'evaluations' });
    const rows = await table.locator('tbody tr').allTextContents();
    expect(rows.map((row) => row.replace(/\s+/g, ' '))).toEqual([
      expect.stringMatching(/^h8 sampled62\.5 % \(50\.0–75\.0\)one/),
      expect.stringMatching(/^h8 random12\.5 % \(0\.0–25\.0\)one/),
    ]);
    const success = page.getByRole('img', { name: /^Success over updates; .*evaluated: one, h8 sampled 0\.625/ });
    expect(await success.count()).toBe(1);
    expect(await page.getByRole('img', { name: /^Loss over updates; .*evaluated/ }).count()).toBe(0);
    // Dots of the sampled evaluation (rings are filled with the card's colour), and an interval through each of three marks.
    const blue = (await drawnBy(page, 'Success')).filter(({ color }) => color === '#3b82d8');
    expect(blue.filter(({ op }) => op === 'fill').length).toBe(1);
    const intervals = blue.filter(
      ({ op, left, right, top, bottom, height }) =>
        op === 'line' && left === right && bottom - top > 10 && bottom - top < height / 2,
    );
    expect(intervals.length).toBe(3);
    await page.context().close();
  });

  it('draws what was measured thin behind the smoothed line', async () => {
    const page = await open('#/curves');
    const thin = async () => {
      await page.waitForTimeout(300);
      return (await drawnBy(page, 'Success')).filter(({ op, color }) => op === 'stroke' && color.endsWith('0.4)'))
        .length;
    };
    await page.getByLabel('seeds', { exact: true }).selectOption('lines');
    await page.getByLabel('smooth', { exact: true }).selectOption('50');
    await expect.poll(thin).toBe(4); // runs
    await page.getByLabel('smooth', { exact: true }).selectOption('1');
    await expect.poll(thin).toBe(0);
    await page.context().close();
  });

  it('cuts no label of an axis, and keeps the labels of phases off the grid, for each schedule', async () => {
    for (const viewport of [
      { width: 1280, height: 900 },
      { width: 375, height: 800 },
    ]) {
      const page = await open('#/curves', { viewport });
      await page.waitForTimeout(500);
      let labels = 0;
      for (const title of ['Success', 'Env steps per second', 'Loss', 'Tokens per second']) {
        const drawn = await drawnBy(page, title);
        const texts = drawn.filter(({ op }) => op === 'text');
        for (const { text, left, right, top, bottom, width, height } of texts) {
          const where = `${title}: '${text}' at ${left}…${right} of ${width}, ${top}…${bottom} of ${height}`;
          expect(left >= 0 && right <= width && top >= 0 && bottom <= height, where).toBe(true);
          labels++;
        }
        const phases = texts.filter(({ text }) => /^h \d+$/.test(text));
        const lines = drawn.filter(({ op }) => op === 'line');
        expect(lines.length).toBeGreaterThan(3);
        for (const phase of phases) {
          const crossed = lines.filter(
            (line) =>
              line.left < phase.right && line.right > phase.left && line.top < phase.bottom && line.bottom > phase.top,
          );
          expect(crossed, `${title}: ${phase.text}`).toEqual([]);
        }
        // Each of the three runs changes its horizon elsewhere, and has a row.
        if (title === 'Success') expect(new Set(phases.map(({ top }) => Math.round(top))).size).toBe(3);
      }
      expect(labels).toBeGreaterThan(30);
      await page.context().close();
    }
  });

  it('searches observations, answers and actions as one types, and marks what it found', async () => {
    const page = await open('#/episodes/0');
    await page.getByText('60 of 60 episodes').waitFor();
    await page.getByRole('searchbox').pressSequentially('observation 1 of 4', { delay: 10 });
    await page.getByText('11 found in 60 of 60 episodes').waitFor(); // of 4, and of 40 to 49
    expect(await focused(page)).toBe('observation 1 of 4'); // still in the box
    const cell = page.locator('td.found').last();
    expect(await cell.textContent()).toMatch(/^turn 2, observation: observation 1 of 4/);
    await page.getByLabel('outcome').selectOption('solved');
    await page.getByText('6 found in 30 of 30 episodes').waitFor();
    await page.locator('tbody tr').last().locator('a').click();
    await page.getByText('Turn 2 of 2: observation').waitFor();
    expect(await page.locator('pre mark').first().textContent()).toBe('observation 1 of 4');
    expect(await page.locator('.turns .found').allTextContents()).toEqual(['2']);
    await visit(page, '#/episodes/3');
    await page.getByRole('searchbox').fill('NOT UNDERSTOOD');
    await page.getByText('0 found in 0 of 0 episodes').waitFor();
    await page.getByLabel('outcome').selectOption('');
    await page.getByRole('searchbox').fill('<script>WINDOW');
    await page.getByText('1 found in 1 of 1 episodes').waitFor();
    expect(await page.evaluate(() => (window as { pwned?: number }).pwned)).toBeUndefined();
    await page.context().close();
  });

  it('goes through a big run piece by piece, and shows what it has found so far', async () => {
    const page = await open('#/episodes/4');
    await page.getByRole('searchbox').fill('needle in the oldest');
    await page.getByText(/^1 found in/).waitFor();
    await page.getByRole('searchbox').fill('action 7');
    await page.getByText(/^2\d\d found in .*, paused$/).waitFor();
    await page.getByRole('button', { name: 'search further' }).click();
    await page.getByText(/^4\d\d found in .*, paused$/).waitFor();
    await page.context().close();
  });

  it('shows on a turn what came of its action, what the policy gave each action, and where its time went', async () => {
    const page = await open('#/episodes/0/0/0');
    await page.getByText('Turn 1 of 2: observation').waitFor();
    expect(await page.locator('pre.result').textContent()).toBe('observation 1 of 0');
    const bars = page.getByRole('list', { name: 'probability of each action' }).locator('li');
    expect(await bars.allTextContents()).toEqual(['look (taken)70 %', 'go25 %']);
    const widths = await bars.locator('.track span').evaluateAll((all) => all.map((one) => one.style.width));
    expect(widths).toEqual(['70%', '25%']);
    const seen = await bars.locator('.track').evaluateAll((all) =>
      all.map((track) => {
        const bar = track.firstElementChild!;
        const [whole, part] = [track.getBoundingClientRect(), bar.getBoundingClientRect()];
        const isVisible =
          part.height > 3 && getComputedStyle(bar).backgroundColor !== getComputedStyle(track).backgroundColor;
        return isVisible ? Math.round((100 * part.width) / whole.width) : 0;
      }),
    );
    expect(seen).toEqual([70, 25]);
    const time = page.locator('.time .legend li');
    expect((await time.allTextContents()).map((text) => text.trim())).toEqual([
      'waiting for a batch 2 ms',
      'prefill 3 ms',
      'decode 4 ms',
      'messages 1 ms',
      'environment 1 ms',
    ]);
    const timeBox = page.locator('.time');
    expect(await coloursOf(timeBox, '.swatch')).toEqual(await coloursOf(timeBox, '.bar span'));
    await visit(page, '#/episodes/0/0/1');
    await page.getByText('Turn 2 of 2: observation').waitFor();
    expect(await page.locator('pre.result').textContent()).toBe('the end');
    await page.getByText('Result reward 1').waitFor();
    await visit(page, '#/episodes/2/0/0'); // an oracle played it
    await page.getByText('The trace has no probabilities of this turn').waitFor();
    await page.context().close();
  });

  it('shows all members of a group at 1280 pixels', async () => {
    const page = await open('#/group/5/0');
    const boxes = await page
      .locator('.members section')
      .evaluateAll((all) => all.map((one) => one.getBoundingClientRect().toJSON() as DOMRect));
    expect(boxes.length).toBe(8);
    for (const { left, right } of boxes) expect(left >= 0 && right <= 1280).toBe(true);
    expect(new Set(boxes.map(({ top }) => top)).size).toBe(1);
    // No action sticks out of its member.
    const wide = page
      .locator('.members li')
      .evaluateAll((all) => all.filter((one) => one.scrollWidth > one.clientWidth + 1).length);
    expect(await wide).toBe(0);
    await page.context().close();
  });

  it('puts the outcome first, on a phone too', async () => {
    const page = await open('#/episodes/0', { viewport: { width: 375, height: 800 } });
    const cells = page.locator('tbody tr').first().locator('td');
    expect(await cells.first().textContent()).toBe('truncated');
    expect((await cells.first().boundingBox())!.x).toBeLessThan(20);
    /** Tops of what is seen, all at one moment: a page that comes in between would mix two. */
    const tops = () =>
      page.evaluate(() => {
        const of = (selector: string) =>
          [...document.querySelectorAll(selector)]
            .filter((one) => one.checkVisibility())
            .map((one) => one.getBoundingClientRect().top);
        return { outcomes: of('main .outcome'), others: of('main h2, main .muted, main pre, main .turns') };
      });
    for (const hash of ['#/episodes/0/0/0', '#/group/0/0']) {
      await visit(page, hash);
      await expect.poll(async () => (await tops()).outcomes.length).toBeGreaterThan(0);
      const { outcomes, others } = await tops();
      expect(others.length).toBeGreaterThan(2);
      expect(Math.min(...others)).toBeGreaterThanOrEqual(outcomes[0]! - 8); // the same line, whose boxes differ in height
      expect(
        await page
          .locator('main .outcome')
          .first()
          .evaluate((one) => one.getBoundingClientRect().left),
      ).toBeLessThan(20);
    }
    await page.context().close();
  });

  it('draws the things of a grid in their colours, and walls without gaps', async () => {
    const at = sources[2]!.rows.findIndex(({ label }) => label === 'babyai');
    for (const colorScheme of ['light', 'dark'] as const) {
      const page = await open(`#/episodes/2/${at}/0`, { colorScheme });
      const cells = await page.locator('.grid span').evaluateAll((all) =>
        all.map((one) => {
          const { color, backgroundColor } = getComputedStyle(one);
          return { name: one.getAttribute('title') ?? '', glyph: one.textContent, color, backgroundColor };
        }),
      );
      const hues = ['red', 'green', 'blue', 'purple', 'yellow'].filter((hue) =>
        cells.some(({ name }) => name.startsWith(hue)),
      );
      expect(hues.length).toBeGreaterThan(1);
      const looks = hues.map((hue) => cells.find(({ name }) => name.startsWith(hue))!);
      expect(new Set(looks.map(({ color }) => color)).size).toBe(hues.length);
      expect(new Set(looks.map(({ backgroundColor }) => backgroundColor)).size).toBe(hues.length);
      // Hues that this level lacks, too: no two of the six are one.
      const colours = await page
        .locator('.grid')
        .first()
        .evaluate((grid) =>
          ['red', 'green', 'blue', 'purple', 'yellow', 'grey'].map((hue) => {
            const cell = grid.appendChild(document.createElement('span'));
            cell.className = `c-${hue}`;
            return getComputedStyle(cell).color;
          }),
        );
      expect(new Set(colours).size).toBe(6);
      const walls = cells.filter(({ name }) => name === 'wall');
      expect(walls.length).toBeGreaterThan(10);
      for (const wall of walls) expect([wall.glyph, wall.backgroundColor]).toEqual(['', wall.color]);
      await page.context().close();
    }
  });

  it('shows where the time went', async () => {
    const page = await open('#/time');
    await page
      .getByRole('img', { name: /decode 40 %/ })
      .first()
      .waitFor();
    const card = page.locator('.card').first();
    expect((await card.locator('.legend li').allTextContents()).map((text) => text.trim())).toEqual([
      'environments 2 %',
      'waiting for a batch 10 %',
      'prefill 8 %',
      'decode 40 %',
      'empty, waiting for the learner 25 %',
      'waiting for its group 5 %',
      'messages 10 %',
    ]);
    expect(await coloursOf(card, '.legend .swatch')).toEqual(await coloursOf(card, '.bar span'));
    await shot(page, 'time');
    await page.context().close();
  });

  it('filters, sorts and pages episodes, and moves by keys', async () => {
    const page = await open('#/episodes/0');
    await page.getByText('60 of 60 episodes').waitFor();
    await page.getByLabel('outcome').selectOption('solved');
    await page.getByText('30 of 60 episodes').waitFor();
    await page.getByLabel('sub-task').selectOption('hard');
    await page.getByText('15 of 60 episodes').waitFor();
    await page.getByRole('button', { name: /^episode/ }).click();
    await page.locator('th[aria-sort=ascending]').waitFor();
    expect(await page.locator('tbody tr').first().locator('td').nth(1).textContent()).toBe('2');
    expect(await page.locator('th[aria-sort=ascending]').count()).toBe(1);
    await page.getByRole('searchbox').fill('11');
    await page.getByText('1 of 60 episodes').waitFor();
    await page.getByRole('searchbox').fill('');
    await page.getByText('15 of 60 episodes').waitFor();
    await page.locator('main').focus();
    await page.keyboard.press('j');
    await page.locator('tbody tr').nth(1).and(page.locator('[aria-selected=true]')).waitFor();
    expect(await focused(page)).toBe('6');
    await page.keyboard.press('j');
    await page.keyboard.press('k');
    expect(await focused(page)).toBe('6');
    await shot(page, 'list');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Episode 6', exact: true }).waitFor();
    await page.keyboard.press('ArrowRight');
    await page.getByText('Turn 2 of 2: observation').waitFor();
    expect(await focused(page)).toBe('2'); // the turn's button
    await page.keyboard.press('j');
    await page.getByRole('heading', { name: 'Episode 7', exact: true }).waitFor();
    expect(await focused(page)).toBe('Episode 7');
    await page.keyboard.press('k');
    await page.getByRole('heading', { name: 'Episode 6', exact: true }).waitFor();
    expect(await focused(page)).toBe('Episode 6');
    await page.keyboard.press('Escape');
    await page.getByText('15 of 60 episodes').waitFor();
    expect(await focused(page)).toBe('6'); // its row
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Episode 6', exact: true }).waitFor();
    await page.keyboard.press('g');
    await page.getByRole('heading', { name: 'Group 3' }).waitFor();
    expect(await page.locator('.members section').count()).toBe(2);
    await shot(page, 'group');
    await page.keyboard.press('Escape');
    await page.getByText('15 of 60 episodes').waitFor();
    expect(await focused(page)).toBe('6');
    await page.context().close();
  });

  it('colours tokens by log-probability and advantage', async () => {
    const page = await open('#/episodes/0/1/1');
    const token = page.locator('.action .token').nth(1);
    expect(await token.getAttribute('title')).toBe('token 71, log-probability -3');
    const color = () => token.evaluate((element) => getComputedStyle(element).backgroundColor);
    const advantage = await color();
    await page.getByLabel('colour').selectOption('logprob');
    await expect.poll(color).not.toBe(advantage);
    const logprob = await color();
    expect([advantage, logprob]).not.toContain('rgba(0, 0, 0, 0)');
    await page.getByLabel('colour').selectOption('none');
    await expect.poll(color).toBe('rgba(0, 0, 0, 0)');
    await page.context().close();
  });

  it.each(playable)('shows an episode of %s with its drawing', async (world) => {
    const at = sources[2]!.rows.findIndex(({ label }) => label === world);
    const page = await open(`#/episodes/2/${at}/0`);
    await page.getByText(/^Turn 1 of/).waitFor();
    const { world: module } = await findWorld(world);
    if (module.draw) expect(await page.locator('.episode > div .card').count()).toBeGreaterThan(0);
    await shot(page, `world-${world}`);
    await page.context().close();
  });

  it('shows the screenshots that a world kept, turn by turn', async () => {
    const source = new RunSource(await screenshotRun(), 0, worldTools());
    const own = await serveViewer([source], 0);
    try {
      const { episode, screenshots } = await source.episode(0);
      expect(screenshots).toHaveLength(episode.turns.length + 1);
      expect(screenshots).not.toContain(null);
      const pixels = new Set<string>();
      for (const state of screenshots.keys()) {
        const page = await open(`#/episodes/0/0/${state}`, {}, own.url);
        const picture = page.locator('img.screenshot');
        await expect.poll(() => picture.evaluate((img) => (img as HTMLImageElement).naturalWidth)).toBe(1280);
        await shot(page, `screenshot-${state}`);
        pixels.add(Buffer.from(await (await fetch(own.url + screenshots[state])).arrayBuffer()).toString('base64'));
        await page.context().close();
      }
      expect(pixels.size).toBeGreaterThan(2);
      const none = await fetch(`${own.url}api/runs/0/episodes/0/screenshots/${screenshots.length}`);
      expect([none.status, await none.text()]).toEqual([404, expect.stringContaining('no screenshot of state')]);
      const report = await reportHtml([source], { episodes: 9 });
      expect(report).toContain('"screenshots":[]');
    } finally {
      await own.close();
    }
  });

  it('shows a turn of tools as calls beside their results, and the conversation around it', async () => {
    const own = await serveViewer([new RunSource(toolsRun(), 0, worldTools())], 0);
    try {
      const page = await open('#/episodes/0/0/0', {}, own.url);
      await page.getByText('Turn 1 of 2: call 0, begins a conversation').waitFor();
      await page.getByText('tools: add, stop').waitFor();
      const table = page.getByRole('table', { name: 'calls and results' });
      const rows = table.locator('tbody tr');
      expect(
        await rows.evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.textContent))),
      ).toEqual([
        ['add{"n":2}', '2'],
        ['sub{"n":3}', `error${evil.replace('\u001b', '␛').replace('\u0007', '␇').replace('\u202e', '\ufffd')}`],
      ]);
      const [call, result] = await rows
        .first()
        .locator('td')
        .evaluateAll((all) => all.map((cell) => cell.getBoundingClientRect().toJSON() as DOMRect));
      expect(result!.left).toBeGreaterThanOrEqual(call!.right);
      expect(result!.top).toBe(call!.top);
      expect(await page.locator('main').textContent()).not.toContain('"promptTokens"'); // no reply as it was written
      await page.getByText(/^whole conversation, /).click();
      expect(await page.locator('details .conversation > li > div').allTextContents()).toEqual([
        'user',
        'assistant, turn 1',
        'tool',
        'tool',
        'user',
        'assistant, turn 2 +1',
        'user',
      ]);
      await shot(page, 'tools');
      await page.getByRole('button', { name: 'assistant, turn 2' }).click();
      await page.getByText('Turn 2 of 2: call 1, continues call 0').waitFor();
      expect(await page.locator('pre.words').textContent()).toBe('Done.');
      await page.getByText('Then reward 1').waitFor();
      await visit(page, '#/episodes/0/0/2');
      await page.getByText('Final observation').waitFor();
      expect(await page.locator('main .card .conversation').first().textContent()).toBe('userBye.');
      await visit(page, '#/group/0/0');
      expect(await page.locator('.members li a').allTextContents()).toEqual(['add {"n":2}\nsub {"n":3}', 'Done.']);
      expect(await page.evaluate(() => (window as { pwned?: number }).pwned)).toBeUndefined();
      await page.context().close();
    } finally {
      await own.close();
    }
  });

  it('runs no code from a trace', async () => {
    const live = await open('#/episodes/3');
    for (const hash of [
      '#/episodes/3',
      '#/episodes/3/0/0',
      '#/episodes/3/0/2',
      '#/group/3/0',
      '#/curves',
      '#/config/3',
    ]) {
      await visit(live, hash);
      expect(await live.evaluate(() => (window as { pwned?: number }).pwned)).toBeUndefined();
      expect(await live.locator('main img, main script, main iframe').count()).toBe(0);
      if (hash === '#/episodes/3/0/0') {
        expect(await live.locator('pre').first().textContent()).toContain('<script>window.pwned=1</script>');
        expect(await live.locator('pre').first().textContent()).toContain('␛[2J');
        const head = await live.locator('.row .muted').first().textContent();
        expect(head).toMatch(/reward by <script>window.*, recorded 0\.25 · episode 12 up to turn 1$/);
        await live.getByText(/^whole conversation, /).click();
        const messages = live.locator('.conversation li');
        expect(await messages.count()).toBe(3 + 2 * 2);
        expect(await messages.nth(4).textContent()).toContain('not understood: <script>window.pwned=1</script>');
        expect(await messages.nth(6).textContent()).toMatch(/^assistant, turn 2 \+0\.5/);
        await shot(live, 'hostile');
      }
    }
    await live.context().close();
    const report = join(root, 'hostile.html');
    writeFileSync(report, await reportHtml([sources[3]!], { episodes: 10 }));
    const page = await open('#/episodes/0/0/0', {}, pathToFileURL(report).href);
    expect(await page.locator('pre').first().textContent()).toContain('<script>window.pwned=1</script>');
    expect(await page.evaluate(() => (window as { pwned?: number }).pwned)).toBeUndefined();
    await page.context().close();
  });

  it('is one file as a report, and works without a network', async () => {
    const report = join(root, 'report.html');
    writeFileSync(report, await reportHtml(sources.slice(0, 2), { episodes: 8 }));
    const page = await open('#/curves', { offline: true }, pathToFileURL(report).href);
    await page.getByRole('img', { name: /^Success over updates/ }).waitFor();
    await page.getByRole('link', { name: 'Episodes' }).click();
    await page.getByText('60 of 60 episodes').waitFor();
    await page.locator('tbody tr').first().click();
    await page.getByText(/^Turn 1 of/).waitFor();
    await page.context().close();
  });

  it('fits a phone, light and dark', async () => {
    for (const colorScheme of ['light', 'dark'] as const) {
      const page = await open('#/config/0', { viewport: { width: 390, height: 800 }, colorScheme });
      for (const [hash, name] of [
        ['#/curves', 'curves'],
        ['#/episodes/0', 'list'],
        [`#/episodes/2/0/1`, 'episode'],
      ] as const) {
        await visit(page, hash);
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        const widest = await page.evaluate(() =>
          [...document.querySelectorAll('body *')]
            .filter((one) => one.getBoundingClientRect().right > innerWidth && !one.closest('.scroll'))
            .map((one) => one.outerHTML.slice(0, 80))
            .slice(0, 5),
        );
        expect(overflow, `${name} in ${colorScheme}: ${widest.join(' ')}`).toBeLessThanOrEqual(0);
        await shot(page, `phone-${name}-${colorScheme}`);
      }
      await page.context().close();
    }
  });

  it('names every control, and keeps text readable in both themes', async () => {
    for (const colorScheme of ['light', 'dark'] as const) {
      const page = await open('#/config/0', { colorScheme });
      for (const hash of ['#/curves', '#/episodes/0', '#/episodes/0/0/0', '#/group/0/0', '#/time']) {
        await visit(page, hash);
        const nameless = await page.evaluate(
          () =>
            [...document.querySelectorAll('button, select, input, a, [role=img]')].filter(
              (element) => !(element.getAttribute('aria-label') ?? element.textContent ?? '').trim(),
            ).length,
        );
        expect(nameless, hash).toBe(0);
        expect(await page.evaluate(worstContrast), `${hash} ${colorScheme}`).toBeGreaterThanOrEqual(4.5);
      }
      await page.context().close();
    }
  });

  it('opens a big run and shows it while it grows', async () => {
    const page = await open('#/episodes/4');
    await page.getByText(/of [\d,]+ episodes/).waitFor();
    const before = sources[4]!.rows.length;
    const traces = new TraceFiles({ dir: join(root, 'big', 'traces'), config: {}, rotateBytes: 1e9, keepBytes: 1e12 });
    traces.episodes([trajectoryOf({ episode: 999_999, group: 999_999 })], 'train', 'new');
    traces.close();
    await page
      .getByText(`${(before + 1).toLocaleString('en')} of ${(before + 1).toLocaleString('en')} episodes`)
      .waitFor();
    await page.context().close();
  });

  it('made no page complain', () => expect(complaints).toEqual([]));

  // --- runs to look at --------------------------------------------------------------------------------------------

  function folder(name: string, config: string): string {
    const dir = join(root, name);
    mkdirSync(dir, { recursive: true });
    writeFileSync(join(dir, 'config.yaml'), config);
    return dir;
  }

  function tracesOf(dir: string): TraceFiles {
    return new TraceFiles({ dir: join(dir, 'traces'), config: {}, rotateBytes: 64e6, keepBytes: 1e12 });
  }

  /** Thirty groups of two, and the metrics of the console's scene. */
  function run(name: string, seed: number): string {
    const dir = folder(name, `seed: ${seed}\nenv: { id: toy }\n`);
    const traces = tracesOf(dir);
    for (let g = 0; g < 30; g++) {
      const label = g % 2 === 0 ? 'easy' : 'hard';
      traces.episodes(
        [
          trajectoryOf({ episode: 2 * g, group: g, success: true }),
          trajectoryOf({ episode: 2 * g + 1, group: g, kind: 'tokens' }),
        ],
        'train',
        label,
      );
      traces.credit(g, [{ group: g, advantages: [Float32Array.of(1, 1), Float32Array.of(-1, -1)] }]);
    }
    traces.close();
    const time = { env: 0.02, batchWait: 0.1, prefill: 0.08, decode: 0.4, learner: 0.25, group: 0.05, messages: 0.1 };
    const rows = [...scene(220 - 20 * seed)].flatMap((event) => (event.type === 'row' ? [{ ...event.row, time }] : []));
    writeFileSync(join(dir, 'metrics.jsonl'), rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
    if (name === 'one') writeEvaluations(dir);
    return dir;
  }

  /** An evaluation in the middle of training, and those at its end. */
  function writeEvaluations(dir: string): void {
    const of = (name: string, value: number) => {
      const success = { value, low: value - 0.125, high: value + 0.125, n: 8 };
      const all = { label: 'all', tasks: 8, episodes: 64, success, score: value, turns: 5, passAtK: { 1: value } };
      return { name, horizon: 8, temperature: 1, labels: [], all, failed: 0 };
    };
    const during = { format: 1, update: 40, evaluation: of('h8 sampled @40', 0.5) };
    writeFileSync(join(dir, 'evaluations.jsonl'), `${JSON.stringify(during)}\n{"damaged\n`);
    const ended = { why: 'updates', status: { version: 180 } };
    const evaluations = [of('h8 sampled', 0.625), of('h8 random', 0.125)];
    writeFileSync(join(dir, 'results.json'), JSON.stringify({ format: 1, ended, evaluations }));
  }

  /** A run with a schedule of its own, large numbers, and a group of eight. */
  function otherSchedule(): string {
    const dir = folder('other', 'seed: 1\nenv: { id: toy }\nhorizon: { type: fixed }\n');
    const traces = tracesOf(dir);
    const actions = Array.from({ length: 12 }, (_, i) => `craft ${i + 1} oak planks using 1 oak log`);
    const member = (episode: number) => trajectoryOf({ episode, actions, success: episode % 2 === 0 });
    traces.episodes(
      Array.from({ length: 8 }, (_, i) => member(i)),
      'train',
      'easy',
    );
    traces.close();
    const rows = Array.from({ length: 200 }, (_, i) => ({
      update: i + 1,
      elapsed: 2 * i,
      horizon: i < 90 ? 12 : 20,
      success: (i % 7) / 7,
      loss: 1e-5 * ((i % 5) - 2),
      entropy: 1 + (i % 3) / 3,
      stepsPerSecond: 1_234_567 + 1000 * (i % 9),
      tokensPerSecond: 98_765_432 + i,
    }));
    writeFileSync(join(dir, 'metrics.jsonl'), rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
    return dir;
  }

  /** One episode of every world, by its oracle where there is one. */
  async function worldsRun(): Promise<string> {
    const dir = folder('worlds', 'env: { id: all }\n');
    const traces = tracesOf(dir);
    for (const [episode, id] of playable.entries()) {
      traces.episodes([await played(id, episode)], 'train', id);
    }
    traces.close();
    return dir;
  }

  /** A run whose world keeps a screenshot a turn. */
  async function screenshotRun(): Promise<string> {
    const options = { driver: 'chromium', screenshots: join(root, 'screenshots') };
    const dir = folder('screenshots-run', `env: { id: webarena, options: ${JSON.stringify(options)} }\n`);
    const traces = tracesOf(dir);
    traces.episodes([await played('webarena', 0, options)], 'train', 'shown');
    traces.close();
    return dir;
  }

  async function played(id: string, episode: number, options: EnvOptions = {}): Promise<Trajectory> {
    const { world: module } = await findWorld(id);
    const { env, dispose } = await openWorld(module, id, options, '/viewer-test');
    const train = env.tasks.split('train');
    const task = { env: id, index: train[train.length >> 1]!, seed: 3 };
    const session = await env.open(task);
    const solver = module.createOracle?.()(task);
    const turns: Turn[] = [];
    let step: TimeStep = session.first;
    while (step.kind !== 'terminated' && turns.length < 20) {
      const action = solver?.(step) ?? session.actions()[0] ?? 'look';
      const { observation } = step;
      const next = await session.step(action);
      turns.push({ observation, actions: new Int32Array(0), action, reward: next.reward, actMs: 0, envMs: 0 });
      step = next;
    }
    await session.close();
    await dispose();
    return {
      episode,
      group: episode,
      task,
      horizon: 20,
      attempt: 1,
      actionTable: [],
      turns,
      finalObservation: step.observation,
      end: step.kind === 'terminated' ? 'terminated' : 'truncated',
      success: true,
    };
  }

  /** A run of one episode of tools: two calls in one turn, then words. */
  function toolsRun(): string {
    const dir = folder('tools', 'env: { id: toy }\n');
    const traces = tracesOf(dir);
    const tools = ['add', 'stop'].map((name) => ({ name, parameters: {} }));
    const usage = { promptTokens: 0, completionTokens: 0 };
    const reply = (content: string, ...names: string[]) => {
      const calls = names.map((name, i) => ({ name, arguments: `{"n":${i + 2}}` }));
      return printAgentReply({ content, calls, finish: 'stop', usage });
    };
    const seen = [
      printAgentCall({ call: 0, parent: null, messages: [{ role: 'user', content: 'Add.' }], tools }),
      printAgentCall({
        call: 1,
        parent: 0,
        messages: [
          { role: 'tool', callId: 'call_0_0', content: '2' },
          { role: 'tool', callId: 'call_0_1', content: evil, isError: true },
          { role: 'user', content: 'And?' },
        ],
      }),
    ];
    const actions = [reply('', 'add', 'sub'), reply('Done.')];
    const plain = trajectoryOf({ actions });
    const actionless = { actions: new Int32Array(0) };
    const turns = plain.turns.map(({ decision: _, ...turn }, t) => {
      return { ...turn, ...actionless, observation: seen[t]!, reward: t };
    });
    const finalObservation = printAgentCall({ call: 2, parent: 1, messages: [{ role: 'user', content: 'Bye.' }] });
    traces.episodes([{ ...plain, turns, finalObservation }], 'train', 'easy');
    traces.close();
    return dir;
  }

  function hostileRun(): string {
    const dir = folder(`hostile`, `env: { id: "${'<script>window.pwned=1</script>'}" }\n# ${JSON.stringify(evil)}\n`);
    const traces = tracesOf(dir);
    const actions = [evil, `${evil}2`];
    const plain = trajectoryOf({ env: evil, actions, observation: evil, kind: 'tokens' });
    const opening = { system: evil, instructions: evil, listed: true };
    const response = { text: evil, formatError: evil, promptTokens: 1, completionTokens: 1, opening };
    const turns = plain.turns.map((turn, t) => ({ ...turn, response, reward: t === 1 ? 0.5 : 0 }));
    const rescored = { verify: evil, sha256: '', metrics: {}, old: { success: false, rewards: [0.25, 0] } };
    const marked = { ...plain, turns, rescored, parent: { episode: 12, turn: 1 } };
    traces.episodes([marked], evil, evil);
    traces.close();
    const row = { update: 1, success: 0.5, successByLabel: { [evil]: 0.5 } };
    writeFileSync(join(dir, 'metrics.jsonl'), `${JSON.stringify(row)}\n`);
    return dir;
  }

  /** 100 MB of traces, a tenth in the normal run. */
  function bigRun(): string {
    const dir = folder('big', 'env: { id: toy }\n');
    const traces = tracesOf(dir);
    const bytes = process.env.LONGPLAY_LONG === '1' ? 100e6 : 10e6;
    const long = trajectoryOf({
      actions: Array.from({ length: 20 }, (_, i) => `action ${i}`),
      observation: 'x'.repeat(200),
    });
    const oldest = { ...long, finalObservation: 'a Needle in the oldest' };
    for (let g = 0; g * 7500 < bytes; g++) {
      traces.episodes([{ ...(g === 0 ? oldest : long), episode: g, group: g }], 'train', 'easy');
    }
    traces.close();
    return dir;
  }
});

/** Background colours of the elements that a selector finds. */
function coloursOf(within: Locator, selector: string): Promise<string[]> {
  return within.locator(selector).evaluateAll((all) => all.map((one) => getComputedStyle(one).backgroundColor));
}

/** Text of what has the focus. */
function focused(page: Page): Promise<string> {
  return page.evaluate(() => {
    const { activeElement } = document;
    return activeElement instanceof HTMLInputElement ? activeElement.value : (activeElement?.textContent ?? '');
  });
}

/** Something that was drawn on a canvas: its box and the canvas' size, in device pixels. */
interface DrawnThing {
  readonly op: 'text' | 'line' | 'stroke' | 'fill';
  readonly text: string;
  readonly color: string;
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
  readonly width: number;
  readonly height: number;
}

/** Things drawn on the canvas of the chart with a title, since it was last cleared. */
function drawnBy(page: Page, title: string): Promise<DrawnThing[]> {
  return page
    .locator('.card', { has: page.getByRole('heading', { name: new RegExp(`^${title} over`) }) })
    .locator('canvas')
    .evaluate((canvas) => (canvas as HTMLCanvasElement & { drawn?: DrawnThing[] }).drawn ?? []);
}

/** Notes what is drawn on canvases: texts, straight lines, strokes and fillings of paths. Runs in the page, before its own script. */
function watchCanvases(): void {
  const prototype = CanvasRenderingContext2D.prototype;
  type Context = CanvasRenderingContext2D & { from?: [number, number]; pending?: number[][] };
  type Canvas = HTMLCanvasElement & { drawn?: object[] };
  const note = (context: Context, thing: object) => {
    const canvas = context.canvas as Canvas;
    canvas.drawn ??= [];
    canvas.drawn.push({ text: '', color: '', width: canvas.width, height: canvas.height, ...thing });
  };
  const { fill, fillText, moveTo, lineTo, stroke, beginPath, clearRect } = prototype;
  prototype.clearRect = function (this: Context, ...box) {
    (this.canvas as Canvas).drawn = [];
    return clearRect.apply(this, box);
  };
  prototype.beginPath = function (this: Context) {
    this.pending = [];
    return beginPath.call(this);
  };
  prototype.moveTo = function (this: Context, x, y) {
    this.from = [x, y];
    return moveTo.call(this, x, y);
  };
  prototype.lineTo = function (this: Context, x, y) {
    if (this.from) this.pending?.push([...this.from, x, y]);
    return lineTo.call(this, x, y);
  };
  prototype.stroke = function (this: Context, ...path: []) {
    const color = String(this.strokeStyle);
    if (path.length > 0) note(this, { op: 'stroke', color, left: 0, right: 0, top: 0, bottom: 0 });
    const matrix = this.getTransform();
    for (const [x0 = 0, y0 = 0, x1 = 0, y1 = 0] of path.length > 0 ? [] : (this.pending ?? [])) {
      const [from, to] = [matrix.transformPoint({ x: x0, y: y0 }), matrix.transformPoint({ x: x1, y: y1 })];
      note(this, {
        op: 'line',
        color,
        left: Math.min(from.x, to.x),
        right: Math.max(from.x, to.x),
        top: Math.min(from.y, to.y),
        bottom: Math.max(from.y, to.y),
      });
    }
    return stroke.apply(this, path as never);
  };
  prototype.fill = function (this: Context, ...path: []) {
    note(this, { op: 'fill', color: String(this.fillStyle), left: 0, right: 0, top: 0, bottom: 0 });
    return fill.apply(this, path as never);
  };
  prototype.fillText = function (this: Context, text, x, y, ...rest) {
    const size = this.measureText(text);
    const matrix = this.getTransform();
    const at = matrix.transformPoint({ x: x - size.actualBoundingBoxLeft, y: y - size.actualBoundingBoxAscent });
    const to = matrix.transformPoint({ x: x + size.actualBoundingBoxRight, y: y + size.actualBoundingBoxDescent });
    note(this, { op: 'text', text, left: at.x, right: to.x, top: at.y, bottom: to.y });
    return fillText.call(this, text, x, y, ...rest);
  };
}

/** Share of a canvas that is drawn on. */
async function inked(page: Page, selector: string): Promise<number> {
  await page.waitForTimeout(300);
  return page
    .locator(selector)
    .first()
    .evaluate((canvas) => {
      const { width, height } = canvas as HTMLCanvasElement;
      const { data } = (canvas as HTMLCanvasElement).getContext('2d')!.getImageData(0, 0, width, height);
      let count = 0;
      for (let i = 3; i < data.length; i += 4) if (data[i]! > 0) count++;
      return count / (width * height);
    });
}

/** The least contrast between text and what is behind it, WCAG 2's ratio. Runs in the page. */
function worstContrast(): number {
  const rgba = (color: string) => (color.match(/[\d.]+/g) ?? []).map(Number);
  const luminance = ([r = 0, g = 0, b = 0]: number[]) => {
    const linear = [r, g, b].map((c) => (c / 255 <= 0.03928 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * linear[0]! + 0.7152 * linear[1]! + 0.0722 * linear[2]!;
  };
  const behind = (element: Element): number[] => {
    const layers: number[][] = [];
    for (let at: Element | null = element; at; at = at.parentElement)
      layers.push(rgba(getComputedStyle(at).backgroundColor));
    return layers.reverse().reduce(
      (under, [r = 0, g = 0, b = 0, a = 1]) => {
        return [r, g, b].map((c, i) => c * a + under[i]! * (1 - a));
      },
      [255, 255, 255],
    );
  };
  let worst = 21;
  for (const element of document.querySelectorAll('body *')) {
    const text = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent?.trim());
    if (!text || element.closest('.sr, :disabled, noscript, script, option, .uplot, .grid')) continue;
    const [a, b] = [luminance(rgba(getComputedStyle(element).color)), luminance(behind(element))];
    worst = Math.min(worst, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
  }
  return worst;
}
