/** Command `longplay new-env`: writes a working world with its tests, to be changed into one's own. */
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { out } from '../../console/terminal.ts';
import { messageOf, UserError } from '../../core/errors.ts';
import { makeFolder } from '../../storage/atomic-file.ts';
import { runCommand } from '../fail.ts';
import { skeleton } from '../skeleton.ts';

/** Adds the command. */
export function newEnv(program: Command): void {
  program
    .command('new-env')
    .description('write a working environment with its tests, to be changed into your own')
    .argument('<name>', 'its id: lower-case letters, digits and dashes')
    .option('--dir <folder>', 'where its folder is made', '.')
    .action((name: string, { dir }: { dir: string }) => runCommand(async () => write(name, dir)));
}

function write(name: string, dir: string): void {
  if (!/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/.test(name)) {
    throw new UserError(
      'BAD_ARGUMENT',
      `new-env: '${name}' is no id; use lower-case letters, digits and single dashes, a letter first`,
    );
  }
  const folder = join(dir, name);
  if (existsSync(folder)) throw new UserError('BAD_ARGUMENT', `new-env: ${folder} exists already; it is left as it is`);
  try {
    makeFolder(folder);
    for (const [file, text] of Object.entries(skeleton(name))) writeFileSync(join(folder, file), text);
  } catch (thrown) {
    throw new UserError('NO_PERMISSION', `new-env: cannot write ${folder}: ${messageOf(thrown)}`);
  }
  out.line(`written: ${folder}\nnext:    npx longplay check-env ${join(folder, 'env.mjs')}`);
}
