/**
 * Question    What do the viewer's pages look like, wide and narrow, light and dark?
 * Command     npm run experiment -- gallery            (then paths, for recorded runs of yours; needs Chromium)
 * Does        Records short runs where none are given (TextCraft under a stretched horizon and under a fixed one, BabyAI, a
 *             rollout of a scripted stand-in for a language model), serves them with the viewer, and photographs every page at
 *             1280 and 375 px in both themes.
 * Expected    Pictures and an index page in experiments/results/gallery, at most 2 MB together.
 * Wall-clock  About five minutes on two cores, nearly all of it recording; half a minute for runs that are there.
 */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import type { RunConfigInput } from '../src/config/run-config.ts';
import { UserError } from '../src/core/errors.ts';
import { type RolloutOptions, rollout } from '../src/run/rollout.ts';
import { train } from '../src/run/train.ts';
import { runSources } from '../src/run/view-runs.ts';
import { packageRoot } from '../src/runtime/thread.ts';
import type { RunSource } from '../src/viewer/run-source.ts';
import { serveViewer } from '../src/viewer/server.ts';
import { SCRIPTED_MODEL, serveScriptedModel } from './scripted-model.ts';

/** Most bytes of all pictures together. */
const MAX_BYTES = 2_000_000;

/** CSS pixels: width of the window, and how far down a picture goes at most. */
const SIZES = [
  { width: 1280, height: 1150 },
  { width: 375, height: 1250 },
] as const;

const THEMES = ['light', 'dark'] as const;

/** A page of the gallery. */
interface Shot {
  readonly name: string;
  readonly title: string;
  readonly hash: string;
  /** Element that the picture begins with, far down the page; the page's top where absent. */
  readonly from?: string | undefined;
  /** Brings the page into the state that is photographed. */
  readonly prepare?: ((page: Page) => Promise<void>) | undefined;
}

export async function gallery(runs: readonly string[]): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), 'longplay-gallery-'));
  try {
    const recorded = runs.length > 0 ? runs : await recordRuns(root);
    await photograph(recorded, fileURLToPath(new URL('experiments/results/gallery/', packageRoot)));
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

/** Configurations of the runs that are recorded, small ones: a minute each. */
const small: RunConfigInput['policy'] = { model: { hiddenSize: 32, layers: 2, heads: 2 } };

const textcraft: RunConfigInput = {
  env: { id: 'textcraft', options: { names: 'permuted', recipes: 'recombined', listInventory: false } },
  tasks: { labels: ['depth 1', 'depth 2'] },
  policy: small,
  learner: { estimator: { algorithm: 'grpo', gamma: 0.95 }, groupsPerUpdate: 4 },
  horizon: { type: 'scaling_inter_stepwise', rounds: [4, 8, 12], steps_scaling_inter: 30 },
  rollout: { concurrentGroups: 8 },
  stop: { updates: 90 },
  evaluation: { horizons: [12], episodesPerTask: 1, everyUpdates: 30, greedy: false },
};

const recordings: readonly { readonly name: string; readonly config: RunConfigInput }[] = [
  { name: 'textcraft-stretched', config: { ...textcraft, seed: 1 } },
  {
    name: 'babyai',
    config: {
      env: { id: 'babyai' },
      policy: small,
      horizon: { type: 'fixed', rounds: 10 },
      rollout: { groupSize: 4, concurrentGroups: 8 },
      learner: { estimator: { algorithm: 'grpo', gamma: 0.9 }, groupsPerUpdate: 4 },
      stop: { updates: 15 },
      evaluation: { horizons: [10], episodesPerTask: 1, greedy: false },
    },
  },
  { name: 'textcraft-fixed', config: { ...textcraft, seed: 1, horizon: { type: 'fixed', rounds: 12 } } },
];

export async function recordRuns(root: string): Promise<string[]> {
  const dirs: string[] = [];
  for (const { name, config } of recordings) {
    const dir = join(root, name);
    process.stdout.write(`recording ${name}\n`);
    await train({ config, dir, onNotice: (line) => process.stdout.write(`  ${line}\n`) }).done;
    dirs.push(dir);
  }
  return [...dirs, await recordConversations(join(root, 'scripted-model'))];
}

/** Plays a few episodes with a model behind a server: the scripted one. */
async function recordConversations(dir: string): Promise<string> {
  process.stdout.write('recording conversations\n');
  const model = await serveScriptedModel();
  try {
    const policy = {
      kind: 'openai',
      openai: { baseUrl: model.url, model: SCRIPTED_MODEL },
      chat: { format: 'react' },
    } as const;
    const config: RolloutOptions['config'] = { env: { id: 'textcraft' }, policy };
    await rollout({ config, episodes: 12, horizon: 12, dir }).done;
  } finally {
    await model.close();
  }
  return dir;
}

/** Photographs every page of the runs. @param folder emptied first */
export async function photograph(runs: readonly string[], folder: string): Promise<void> {
  const executablePath = process.env.LONGPLAY_CHROMIUM ?? '/usr/bin/chromium';
  if (!existsSync(executablePath)) {
    throw new UserError('BAD_ARGUMENT', `gallery: no Chromium at ${executablePath}; LONGPLAY_CHROMIUM names another`);
  }
  const shows = await showsOf(runs);
  const { chromium } = await import('playwright-core');
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
  try {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    for (const show of shows) await photographShow(browser, show, folder);
  } finally {
    await browser.close();
  }
  const files = readdirSync(folder);
  const bytes = files.reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
  writeFileSync(
    join(folder, 'README.md'),
    indexPage(
      shows.flatMap(({ shots }) => shots),
      bytes,
    ),
  );
  process.stdout.write(`${files.length} pictures, ${(bytes / 1e6).toFixed(2)} MB, in ${folder}\n`);
  if (bytes > MAX_BYTES) throw new UserError('BAD_ARGUMENT', `gallery: more than ${MAX_BYTES} bytes; lower QUALITY`);
}

/** Runs that one viewer shows, and the pages of it that are photographed. */
interface Show {
  readonly runs: readonly string[];
  readonly shots: readonly Shot[];
}

async function photographShow(browser: Browser, { runs, shots }: Show, folder: string): Promise<void> {
  const server = await serveViewer(runSources(runs), 0);
  try {
    for (const theme of THEMES)
      for (const size of SIZES) await series(browser, server.url, shots, { theme, ...size, folder });
  } finally {
    await server.close();
  }
}

/** The first run alone, with every page; runs of one world compared; an episode and a group of each other world. */
async function showsOf(runs: readonly string[]): Promise<Show[]> {
  const sources = runSources(runs);
  const told = sources.filter(({ rows }) => rows.every(({ purpose }) => purpose === 'rollout'));
  const trained = sources.filter((source) => !told.includes(source));
  const worlds = [...new Set(trained.map(({ info }) => info.env))];
  const shows: Show[] =
    trained.length === 0 ? [] : [{ runs: [runs[trained[0]!.info.id]!], shots: await runShots(trained[0]!) }];
  for (const source of told) shows.push({ runs: [runs[source.info.id]!], shots: await conversationShots(source) });
  for (const world of worlds) {
    const own = trained.filter(({ info }) => info.env === world);
    const paths = own.map(({ info }) => runs[info.id]!);
    const shots: Shot[] = world === worlds[0] ? [] : await playShots(own[0]!);
    if (own.length > 1) shots.unshift({ name: 'compare', title: 'Runs compared', hash: '#/curves' });
    if (shots.length > 0) shows.push({ runs: paths, shots });
  }
  return shows;
}

async function runShots(source: RunSource): Promise<Shot[]> {
  const at = await findTelling(source);
  const { episode } = await source.episode(at);
  const text = episode.turns.at(-1)!.action;
  const prepare = async (page: Page) => {
    await page.getByRole('searchbox').fill(text);
    await page.locator('td.found').first().waitFor();
    await page.getByText(/^[\d,]+ found in [\d,]+ of [\d,]+ episodes(, paused)?$/).waitFor();
  };
  return [
    { name: 'curves', title: 'Curves of a run, with its evaluations', hash: '#/curves' },
    { name: 'episodes', title: 'Episodes', hash: '#/episodes/0' },
    { name: 'search', title: 'Search in observations, answers and actions', hash: '#/episodes/0', prepare },
    ...(await playShots(source)),
    { name: 'time', title: 'Time', hash: '#/time' },
    { name: 'config', title: 'Configuration', hash: '#/config/0' },
  ];
}

/** The conversation of an episode from its first observation on, one with an answer that was not understood where there is one. */
async function conversationShots(source: RunSource): Promise<Shot[]> {
  const telling: { readonly at: number; readonly worth: number }[] = [];
  for (const { at, turns } of source.rows) {
    const { conversation } = await source.episode(at);
    if (conversation.length === 0) continue;
    const misread = conversation.some(({ formatError }) => formatError !== undefined);
    telling.push({ at, worth: (misread ? 100 : 0) - Math.abs(turns - 4) });
  }
  const best = telling.sort((a, b) => b.worth - a.worth)[0];
  if (best === undefined) return [];
  const prepare = async (page: Page) => page.getByText(/^whole conversation, /).click();
  const title = 'Conversation of a language model (a scripted stand-in)';
  return [
    { name: 'conversation', title, hash: `#/episodes/0/${best.at}/1`, from: '.conversation li:nth-child(3)', prepare },
  ];
}

/** An episode in its middle, and its group. */
async function playShots(source: RunSource): Promise<Shot[]> {
  const { env } = source.info;
  const at = await findTelling(source);
  const turn = source.rows[at]!.turns >> 1;
  return [
    { name: `episode-${env}`, title: `Episode of ${env}`, hash: `#/episodes/0/${at}/${turn}` },
    { name: `group-${env}`, title: `Group of ${env}`, hash: `#/group/0/${at}` },
  ];
}

/**
 * Episode with most to see: solved, with advantages, the longest among those of the newest groups with both outcomes.
 * @throws {UserError} BAD_ARGUMENT for a run without episodes
 */
async function findTelling(source: RunSource): Promise<number> {
  const newest = source.rows.filter(({ purpose }) => purpose === 'train').slice(-800);
  const failed = new Set(newest.filter(({ success }) => !success).map(({ group }) => group));
  const mixed = newest.filter(({ success, group }) => success && failed.has(group));
  for (const { at } of mixed.sort((a, b) => b.turns - a.turns)) {
    const { episode } = await source.episode(at);
    if (episode.turns[0]?.advantage !== undefined) return at;
  }
  const last = newest.at(-1) ?? source.rows.at(-1);
  if (!last) throw new UserError('BAD_ARGUMENT', `gallery: ${source.info.name} has no episodes; give a recorded run`);
  return last.at;
}

interface Series {
  readonly theme: (typeof THEMES)[number];
  readonly width: number;
  readonly height: number;
  readonly folder: string;
}

/** Quality of the pictures, in [0, 100]. */
const QUALITY = 46;

async function series(browser: Browser, url: string, shots: readonly Shot[], series: Series): Promise<void> {
  const { theme, width, height, folder } = series;
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme: theme });
  const page = await context.newPage();
  const devtools = await context.newCDPSession(page);
  for (const { name, hash, from, prepare } of shots) {
    await page.goto('about:blank'); // so that every picture begins with a fresh page
    await page.goto(url + hash);
    await page.locator('main > *').first().waitFor();
    await prepare?.(page);
    await page.waitForTimeout(400); // curves are drawn in the next frames
    const whole = await page.evaluate(() => document.documentElement.scrollHeight);
    const top = from === undefined ? 0 : await page.locator(from).first().evaluate(above);
    const clip = { x: 0, y: top, width, height: Math.min(height, whole - top), scale: 1 };
    // Through the protocol: playwright's own pictures are PNG or JPEG, twice as large.
    const { data } = await devtools.send('Page.captureScreenshot', {
      format: 'webp',
      quality: QUALITY,
      clip,
      captureBeyondViewport: true,
    });
    writeFileSync(join(folder, `${name}-${width}-${theme}.webp`), Buffer.from(data, 'base64'));
  }
  await context.close();
}

/** Pixels of the page above an element. Runs in the page. */
function above(element: Element): number {
  return Math.max(0, Math.round(element.getBoundingClientRect().top + scrollY - 12));
}

/** Page that shows the pictures, a section for each page of the viewer. */
function indexPage(shots: readonly Shot[], bytes: number): string {
  const cell = (name: string, title: string, width: number, theme: string) =>
    `<img src="${name}-${width}-${theme}.webp" width="${width === 1280 ? 560 : 190}" alt="${title}, ${width} pixels wide, ${theme}">`;
  const sections = shots.map(({ name, title }) =>
    [
      `## ${title}`,
      '',
      ...THEMES.map((theme) => SIZES.map(({ width }) => cell(name, title, width, theme)).join(' ')),
      '',
    ].join('\n'),
  );
  return [
    '# Pages of the viewer',
    '',
    'Made by `npm run experiment -- gallery` from short recorded runs: every page of `longplay view` at 1280 and 375 pixels,',
    `light and dark, cut after ${SIZES[0].height} pixels; ${(bytes / 1e6).toFixed(2)} MB together. The runs are far too short to say`,
    'anything about learning.',
    '',
    ...sections,
  ].join('\n');
}
