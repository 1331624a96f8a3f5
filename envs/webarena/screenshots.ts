/**
 * Screenshots of the browser, one a turn where the option asks for them: JPEG files in one folder, named by what was
 * seen. An episode's recorded texts name its files, so traces stay as they are and the viewer still finds the pictures.
 */
import { createHash, randomUUID } from 'node:crypto';
import { accessSync, constants, mkdirSync } from 'node:fs';
import { rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describeValue } from '../../src/core/describe-value.ts';
import { messageOf, UserError } from '../../src/core/errors.ts';
import type { Task } from '../../src/core/task.ts';
import type { Driver } from './drivers/driver.ts';
import type { BrowseOptions } from './session.ts';

/** Makes the folder. @throws {UserError} BAD_CONFIG where nothing can be written there */
export function openScreenshots(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true });
    accessSync(folder, constants.W_OK);
  } catch (thrown) {
    throw new UserError(
      'BAD_CONFIG',
      `webarena: screenshots must be a folder that can be written, got ${describeValue(folder)}: ${messageOf(thrown)}`,
    );
  }
}

/** File of the screenshot that goes with an observation of a task. */
export function screenshotFile(folder: string, { index, seed }: Pick<Task, 'index' | 'seed'>, observation: string) {
  const name = createHash('sha256').update(`${index} ${seed} ${observation}`).digest('hex').slice(0, 32);
  return join(folder, `${name}.jpeg`);
}

/** Part of a session's options that keeps a screenshot of each observation; empty where none are configured. */
export function screenshotsOf(
  driver: Driver,
  folder: string | undefined,
  task: Task | undefined,
): Pick<BrowseOptions, 'onObservation'> {
  if (folder === undefined || task === undefined) return {};
  return { onObservation: (text) => keepScreenshot(driver, screenshotFile(folder, task, text)) };
}

let isWarned = false;

/**
 * Keeps a screenshot of the page that the driver shows. One that cannot be had or written is left out, since the
 * episode does not depend on it; the first of a thread becomes a warning of the process.
 */
export async function keepScreenshot(
  driver: Driver,
  file: string,
  warn: (message: string) => void = (message) => process.emitWarning(message),
): Promise<void> {
  const beside = `${file}.${randomUUID()}`; // members of a group see the same page at the same time
  try {
    await writeFile(beside, await driver.screenshot!());
    await rename(beside, file);
  } catch (thrown) {
    await rm(beside, { force: true }).catch(() => {});
    if (!isWarned) warn(`webarena: a screenshot was not kept, and others may follow: ${messageOf(thrown)}`);
    isWarned = true;
  }
}
