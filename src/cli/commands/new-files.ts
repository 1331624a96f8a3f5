/** Commands `longplay new-env`, `new-agent` and `new-study`: each writes a working folder with its tests, to be changed into one's own. */
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { out } from '../../console/terminal.ts';
import { messageOf, UserError } from '../../core/errors.ts';
import { makeFolder } from '../../storage/atomic-file.ts';
import { runCommand } from '../fail.ts';
import { readTemplate, type TemplateKind } from '../templates.ts';

/** Adds `new-env`. */
export function newEnv(program: Command): void {
  const next = (folder: string) => `npx longplay check-env ${join(folder, 'env.mjs')}`;
  addCommand(
    program,
    'new-env',
    'write a working environment with its tests, to be changed into your own',
    'world',
    next,
  );
}

/** Adds `new-agent`. */
export function newAgent(program: Command): void {
  const next = (folder: string) => `npx longplay train ${join(folder, 'train.yaml')}`;
  const description = 'write a working program that calls a model, with its tests and a configuration that trains it';
  addCommand(program, 'new-agent', description, 'agent', next);
}

/** Adds `new-study`. */
export function newStudy(program: Command): void {
  const next = (folder: string) => `node ${join(folder, 'study.mjs')}`;
  const description = 'write a working study of two horizons under several seeds, with its test';
  addCommand(program, 'new-study', description, 'study', next);
}

function addCommand(
  program: Command,
  command: string,
  description: string,
  kind: TemplateKind,
  next: (folder: string) => string,
): void {
  program
    .command(command)
    .description(description)
    .argument('<name>', 'its id: lower-case letters, digits and dashes')
    .option('--dir <folder>', 'where its folder is made', '.')
    .action((name: string, { dir }: { dir: string }) =>
      runCommand(async () => {
        const folder = writeFiles(command, name, dir, kind);
        out.line(`written: ${folder}\nnext:    ${next(folder)}`);
      }),
    );
}

/** Writes the files into a new folder. @returns its path */
function writeFiles(command: string, name: string, dir: string, kind: TemplateKind): string {
  if (!/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/.test(name)) {
    throw new UserError(
      'BAD_ARGUMENT',
      `${command}: '${name}' is no id; use lower-case letters, digits and single dashes, a letter first`,
    );
  }
  const folder = join(dir, name);
  if (existsSync(folder)) {
    throw new UserError('BAD_ARGUMENT', `${command}: ${folder} exists already; it is left as it is`);
  }
  try {
    makeFolder(folder);
    for (const [file, text] of Object.entries(readTemplate(kind, name))) writeFileSync(join(folder, file), text);
  } catch (thrown) {
    throw new UserError('NO_PERMISSION', `${command}: cannot write ${folder}: ${messageOf(thrown)}`);
  }
  return folder;
}
