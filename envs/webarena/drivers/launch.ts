/** Finding and starting Chromium, which is the user's own: nothing is downloaded. */
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import type { Browser } from 'playwright-core';
import { messageOf, UserError } from '../../../src/core/errors.ts';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable', 'chrome'];
const PLACES = ['/usr/bin', '/usr/local/bin', '/snap/bin', '/Applications/Google Chrome.app/Contents/MacOS'];

/** Path of a Chromium: the variable CHROMIUM, else the usual names on the path; undefined where there is none. */
export function findChromium(env: NodeJS.ProcessEnv = process.env): string | undefined {
  if (env.CHROMIUM !== undefined && env.CHROMIUM !== '') return isExecutable(env.CHROMIUM) ? env.CHROMIUM : undefined;
  const folders = [...(env.PATH ?? '').split(delimiter).filter((folder) => folder !== ''), ...PLACES];
  return folders.flatMap((folder) => NAMES.map((name) => join(folder, name))).find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Longest wait for a browser to start, and then for any one call of it. */
const LAUNCH_MS = 60_000;

/**
 * Starts Chromium, headless.
 * @param hosts rule of `--host-resolver-rules`: the only names it can reach
 * @throws {UserError} MISSING_ENGINE without playwright-core or a Chromium
 */
export async function launchChromium(hosts: string): Promise<Browser> {
  const executablePath = findChromium();
  if (executablePath === undefined) {
    const named = process.env.CHROMIUM
      ? `CHROMIUM names ${JSON.stringify(process.env.CHROMIUM)}, which cannot be run`
      : `none of ${NAMES.join(', ')} is on the path`;
    throw new UserError(
      'MISSING_ENGINE',
      `webarena: no Chromium: ${named}. Install one (apt-get install chromium) or set CHROMIUM to its path, or use driver: in-process.`,
    );
  }
  const { chromium } = await import('playwright-core').catch(() => {
    throw new UserError(
      'MISSING_ENGINE',
      'webarena: driving Chromium needs the package playwright-core: npm install playwright-core',
    );
  });
  const isRoot = process.getuid?.() === 0;
  if (isRoot && !isNoticePrinted) {
    isNoticePrinted = true;
    console.warn('webarena: running as root, so Chromium runs without its sandbox (--no-sandbox)');
  }
  const args = [
    ...[
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
    ],
    ...[
      '--disable-sync',
      '--mute-audio',
      '--hide-scrollbars',
      '--disable-dev-shm-usage',
      `--host-resolver-rules=${hosts}`,
    ],
  ];
  try {
    return await chromium.launch({ executablePath, args, chromiumSandbox: !isRoot, timeout: LAUNCH_MS });
  } catch (thrown) {
    throw new UserError(
      'MISSING_ENGINE',
      `webarena: ${executablePath} did not start: ${messageOf(thrown).split('\n')[0]}`,
    );
  }
}

let isNoticePrinted = false;
