/** Every command line of the READMEs: the command, its flags, the files it names and the keys it sets are there. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { commandLine } from '../../src/cli/program.ts';
import { loadRunConfig } from '../../src/config/load.ts';
import { packageRoot } from '../../src/runtime/module-url.ts';

const root = fileURLToPath(packageRoot);
const pages = ['README.md', 'COMMANDS.md', 'RERUN.md', 'src/cluster/README.md'];
const readme = pages.map((page) => readFileSync(join(root, page), 'utf8')).join('\n');
const lines = [...readme.matchAll(/^npx longplay (.*?)(?: {2,}#.*)?$/gm)].map(([, line]) => line!.replace(/ #.*$/, ''));

/** Words of a command line, quotes taken off. */
function words(line: string): string[] {
  return [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain!);
}

/** Reads a command line as the program does. @throws what the program would exit with */
async function read(
  line: string,
): Promise<{ readonly name: string; readonly operands: string[]; readonly command: Command }> {
  const [name = '', ...args] = words(line);
  const { commands } = await commandLine(name);
  const command = commands.find((one) => one.name() === name);
  if (!command) throw new Error(`no command ${name}`);
  const { operands, unknown } = command.exitOverride().parseOptions(args);
  if (unknown.length > 0) throw new Error(`${name} has no ${unknown.join(' ')}`);
  return { name, operands, command };
}

describe('a command line', () => {
  it('has the commands that its table names, and loads only the one that is typed', async () => {
    const { commands } = await commandLine();
    expect(commands.length).toBeGreaterThan(15);
    for (const one of commands) {
      const alone = await commandLine(one.name());
      expect(alone.commands.map((other) => other.name())).toEqual([one.name()]);
    }
    expect((await commandLine('trian')).commands).toHaveLength(commands.length);
  });
});

describe('the README', () => {
  it('types commands and flags that are there', async () => {
    expect(lines.length).toBeGreaterThan(20);
    for (const line of lines) await expect(read(line), line).resolves.toBeDefined();
    await expect(read('train a.yaml --horizn 3')).rejects.toThrow('train has no --horizn 3');
    await expect(read('trian a.yaml')).rejects.toThrow('no command trian');
  });

  it('names every command at least once', async () => {
    const named = new Set((await Promise.all(lines.map(read))).map(({ name }) => name));
    const { commands } = await commandLine();
    const missing = commands
      .map((one) => one.name())
      .filter((name) => !named.has(name) && !readme.includes(`npx longplay ${name} `));
    expect(missing).toEqual([]);
  });

  it('trains from configurations that are there, by keys that are there', async () => {
    let checked = 0;
    for (const line of lines) {
      const { operands, command } = await read(line);
      const [config = ''] = operands;
      if (!config.endsWith('.yaml')) continue;
      expect(existsSync(join(root, config)), line).toBe(true);
      const { set = [] } = command.opts<{ set?: readonly string[] }>();
      expect(() => loadRunConfig(readFileSync(join(root, config), 'utf8'), config, set), line).not.toThrow();
      checked++;
    }
    expect(checked).toBeGreaterThan(7);
  });
});
