/** The viewer in real Chromium: curves, filters, keys, an episode of each world, hostile traces, phone, report. */
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { registry } from '../../envs/registry.ts';
import type { TimeStep } from '../../src/core/env.ts';
import type { Trajectory, Turn } from '../../src/core/trajectory.ts';
import { TraceFiles } from '../../src/record/trace-files.ts';
import { findWorld } from '../../src/run/find-world.ts';
import { worldTools } from '../../src/run/view-runs.ts';
import { localUrl } from '../../src/runtime/thread.ts';
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
    sources = [run('one', 1), run('two', 2), await worldsRun(), hostileRun(), bigRun()].map(
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
    await page.getByRole('img', { name: /^Success over update/ }).waitFor();
    expect(await page.locator('.uplot canvas').count()).toBeGreaterThan(6);
    const band = page.getByRole('img', { name: /^Success over update; last: one and 1 more seeds/ });
    expect(await band.count()).toBe(1);
    expect(await inked(page, '.uplot canvas')).toBeGreaterThan(0.001);
    await page.getByLabel('seeds', { exact: true }).selectOption('lines');
    await page.getByRole('img', { name: /^Success over update; last: one 0\.\d+, two 0\.\d+/ }).waitFor();
    await page.getByLabel('over', { exact: true }).selectOption('elapsed');
    await page.getByRole('img', { name: /^Success over seconds/ }).waitFor();
    await shot(page, 'curves');
    await page.context().close();
  });

  it('shows where the time went', async () => {
    const page = await open('#/time');
    await page
      .getByRole('img', { name: /decode 40 %/ })
      .first()
      .waitFor();
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
    expect(await page.locator('tbody tr').first().locator('td').first().textContent()).toBe('2');
    expect(await page.locator('th[aria-sort=ascending]').count()).toBe(1);
    await page.getByRole('searchbox').fill('11');
    await page.keyboard.press('Enter');
    await page.getByText('1 of 60 episodes').waitFor();
    await page.getByRole('searchbox').fill('');
    await page.keyboard.press('Enter');
    await page.getByText('15 of 60 episodes').waitFor();
    await page.locator('main').focus();
    await page.keyboard.press('j');
    await page.locator('tbody tr').nth(1).and(page.locator('[aria-selected=true]')).waitFor();
    await shot(page, 'list');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Episode 6', exact: true }).waitFor();
    await page.keyboard.press('ArrowRight');
    await page.getByText('Turn 2 of 2: observation').waitFor();
    await page.keyboard.press('g');
    await page.getByRole('heading', { name: 'Group 3' }).waitFor();
    expect(await page.locator('.members section').count()).toBe(2);
    await shot(page, 'group');
    await page.keyboard.press('Escape');
    await page.getByText('15 of 60 episodes').waitFor();
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

  it('runs nothing that a trace says', async () => {
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
        await live.getByText(/^whole conversation, /).click();
        const messages = live.locator('.conversation li');
        expect(await messages.count()).toBe(3 + 2 * 2);
        expect(await messages.nth(4).textContent()).toContain('not understood: <script>window.pwned=1</script>');
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
    await page.getByRole('img', { name: /^Success over update/ }).waitFor();
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
    const traces = new TraceFiles({ dir: join(root, 'big', 'traces'), config: {}, rotateBytes: 1e9, keepFiles: 99 });
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
    return new TraceFiles({ dir: join(dir, 'traces'), config: {}, rotateBytes: 64e6, keepFiles: 99 });
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
    return dir;
  }

  /** One episode of every world, by its oracle where there is one. */
  async function worldsRun(): Promise<string> {
    const dir = folder('worlds', 'env: { id: all }\n');
    const traces = tracesOf(dir);
    let episode = 0;
    for (const id of playable) {
      const { world: module } = await findWorld(id);
      const { env, dispose } = await openWorld(module, id, {}, '/viewer-test');
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
      const end = step.kind === 'terminated' ? 'terminated' : 'truncated';
      const trajectory: Trajectory = {
        episode,
        group: episode,
        task,
        horizon: 20,
        attempt: 1,
        actionTable: [],
        turns,
        finalObservation: step.observation,
        end,
        success: true,
      };
      traces.episodes([trajectory], 'train', id);
      episode++;
    }
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
    traces.episodes([{ ...plain, turns: plain.turns.map((turn) => ({ ...turn, response })) }], evil, evil);
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
    for (let g = 0; g * 7500 < bytes; g++) traces.episodes([{ ...long, episode: g, group: g }], 'train', 'easy');
    traces.close();
    return dir;
  }
});

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
