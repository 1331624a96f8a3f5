/** Screenshots a turn: named by what was seen, complete or not there, and never a reason for an episode to fail. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { Driver } from '../../../envs/webarena/drivers/driver.ts';
import { findChromium } from '../../../envs/webarena/drivers/launch.ts';
import * as webarena from '../../../envs/webarena/index.ts';
import { keepScreenshot, openScreenshots, screenshotFile } from '../../../envs/webarena/screenshots.ts';
import { openWorld } from '../../../src/world/open-world.ts';

const root = mkdtempSync(join(tmpdir(), 'longplay-screenshots-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const missing = findChromium() === undefined;
if (missing) console.log('skipped: no Chromium (apt-get install chromium, or set CHROMIUM)');

const painter = (screenshot: () => Promise<Uint8Array>) => ({ screenshot }) as Partial<Driver> as Driver;

describe('screenshots', () => {
  it('are named by task and observation, and found again by the options of the run', () => {
    const task = { env: 'webarena', index: 3, seed: 7 };
    const file = screenshotFile('shots', task, 'a page');
    expect(webarena.screenshot(task, 'a page', { driver: 'chromium', screenshots: 'shots' })).toBe(file);
    expect(webarena.screenshot(task, 'a page', {})).toBeUndefined();
    const others = [
      screenshotFile('shots', task, 'another page'),
      screenshotFile('shots', { ...task, seed: 8 }, 'a page'),
      screenshotFile('shots', { ...task, index: 4 }, 'a page'),
    ];
    expect(new Set([file, ...others]).size).toBe(4);
  });

  it('refuses a folder that cannot be one, in one line', () => {
    const path = join(root, 'file');
    writeFileSync(path, '');
    expect(() => openScreenshots(path)).toThrow(
      /^webarena: screenshots must be a folder that can be written, got ".*file": [^\n]+$/,
    );
  });

  it('leaves out what cannot be had or written, and warns once', async () => {
    const warnings: string[] = [];
    const warn = (message: string) => warnings.push(message);
    const gone = painter(() => Promise.reject(new Error('Target closed')));
    const file = join(root, 'one.jpeg');
    await keepScreenshot(gone, file, warn);
    await keepScreenshot(
      painter(async () => Buffer.from('jpeg')),
      join(root, 'absent', 'two.jpeg'),
      warn,
    );
    expect(warnings).toEqual(['webarena: a screenshot was not kept, and others may follow: Target closed']);
    await Promise.all(
      ['old', 'new'].map((text) =>
        keepScreenshot(
          painter(async () => Buffer.from(text)),
          file,
          warn,
        ),
      ),
    );
    expect(['old', 'new']).toContain(readFileSync(file, 'utf8'));
    expect(readdirSync(root).filter((name) => name.startsWith('one.jpeg'))).toEqual(['one.jpeg']);
  });

  it.skipIf(missing)('change nothing of the episode that they show', { timeout: 120_000 }, async () => {
    const task = { env: 'webarena', index: 5, seed: 0 };
    const play = async (options: object) => {
      const { env, dispose } = await openWorld(webarena, 'webarena', { driver: 'chromium', ...options }, '/test');
      const session = await env.open(task);
      const seen = [session.first.observation];
      for (let turn = 0; turn < 12; turn++) {
        const actions = session.actions();
        const step = await session.step(actions[(turn * 5) % actions.length] ?? 'scroll [down]');
        if (!('partial' in step)) seen.push(step.observation);
      }
      await session.close();
      await dispose();
      return seen;
    };
    const folder = join(root, 'kept');
    const seen = await play({ screenshots: folder });
    expect(seen.length).toBeGreaterThan(4);
    expect(seen).toEqual(await play({}));
    const files = new Set(seen.map((text) => screenshotFile(folder, task, text)));
    expect(
      readdirSync(folder)
        .map((name) => join(folder, name))
        .sort(),
    ).toEqual([...files].sort());
    for (const file of files) expect(readFileSync(file).subarray(0, 3)).toEqual(Buffer.from([0xff, 0xd8, 0xff]));
  });
});
