/** Skills for coding agents: what they write and type works, in order, in an empty folder; their pages and keys are there. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { metricTable } from '../../src/metrics/metric-table.ts';
import { packageRoot } from '../../src/runtime/module-url.ts';
import { longplay } from '../support/longplay-command.ts';
import { temporaryFolder } from '../support/small-run.ts';

const root = fileURLToPath(packageRoot);
const skills = readdirSync(join(root, 'skills'));
const folder = temporaryFolder('skills');
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const read = (path: string) => readFileSync(join(root, path), 'utf8');
const pathOf = (skill: string) => `skills/${skill}/SKILL.md`;

/** Step of a skill: a file that it writes, or a command that it types. */
type Step = { readonly file: string; readonly content: string } | { readonly command: string };

/** Steps of a page, in order. A block of code belongs to the file that was named last. */
function stepsOf(page: string): Step[] {
  const blocks = [...page.matchAll(/^( *)```(\w*)\n([\s\S]*?)^ *```$/gm)];
  return blocks.flatMap(({ 1: indent = '', 2: language, 3: text = '', index }): Step[] => {
    const lines = text
      .replace(/\n$/, '')
      .split('\n')
      .map((line) => line.slice(indent.length));
    if (language === '') return lines.map((command) => ({ command }));
    const file = [...page.slice(0, index).matchAll(/`([\w.-]+\.(?:mjs|yaml))`/g)].at(-1)?.[1];
    if (file === undefined) throw new Error(`a block names no file: ${text}`);
    return [{ file, content: `${lines.join('\n')}\n` }];
  });
}

describe('a skill', () => {
  it.each(skills)('%s has a name and says when to use it', (skill) => {
    const [, front = ''] = /^---\n([\s\S]*?)\n---\n/.exec(read(pathOf(skill))) ?? [];
    expect(front).toMatch(new RegExp(`^name: longplay-${skill}\ndescription: \\S.{30,200}$`));
  });

  // The other two have commands of a quarter of a minute; their pages' examples run elsewhere too.
  const run = process.env.LONGPLAY_LONG === '1' ? skills : ['new-world', 'read-a-run'];
  it.each(run)('%s works as it stands', { timeout: 240_000 }, (skill) => {
    const cwd = join(folder, skill);
    mkdirSync(join(cwd, 'node_modules'), { recursive: true });
    symlinkSync(root, join(cwd, 'node_modules/longplay'));
    if (skill === 'read-a-run') {
      const set = ['horizon={type: fixed, rounds: 4}', 'stop.updates=2', 'learner.groupsPerUpdate=2'];
      const config = join(root, 'experiments/serial.yaml');
      const flags = [config, '--name', 'demo', '--runs', join(cwd, 'runs'), ...set.flatMap((one) => ['--set', one])];
      expect(longplay('train', ...flags).status).toBe(0);
    }
    const steps = stepsOf(read(pathOf(skill)));
    expect(steps.filter((step) => 'command' in step).length).toBeGreaterThan(2);
    for (const step of steps) {
      if ('file' in step) {
        writeFileSync(join(cwd, step.file), step.content);
        continue;
      }
      const command = step.command.replace(
        /^npx longplay /,
        `'${process.execPath}' '${join(root, 'bin/longplay.js')}' `,
      );
      const { status, stdout, stderr } = spawnSync('sh', ['-c', command], { cwd, encoding: 'utf8', timeout: 60_000 });
      expect(status, `${step.command}\n${stdout.slice(-500)}\n${stderr.slice(-1000)}`).toBe(0);
      expect(stdout, step.command).not.toBe('');
    }
  });

  it('of reading a run names metrics that there are', () => {
    const rows = [...read(pathOf('read-a-run')).matchAll(/^ *\| ((?:`\w+`(?:,| beside| against)? ?)+)[^|]*\|/gm)];
    const named = rows.flatMap(([, cell]) => [...cell!.matchAll(/`(\w+)`/g)].map(([, name]) => name!));
    expect(named.length).toBeGreaterThan(8);
    expect(named.filter((name) => !metricTable.some((metric) => metric.name === name))).toEqual([]);
  });
});

describe('llms.txt', () => {
  it('links every page of the root, and pages that are there', () => {
    const links = [...read('llms.txt').matchAll(/\]\(([^)]+)\)/g)].map(([, to]) => to!);
    expect(links.filter((to) => !existsSync(join(root, to)))).toEqual([]);
    const pages = readdirSync(root).filter((name) => name.endsWith('.md'));
    expect(pages.filter((name) => !links.includes(name))).toEqual([]);
    for (const skill of skills) expect(links).toContain(pathOf(skill));
  });

  it('has one line for each page, within the form of llmstxt.org', () => {
    const lines = read('llms.txt').split('\n');
    expect(lines[0]).toBe('# longplay');
    expect(lines[2]).toMatch(/^> \S/);
    const rest = lines.slice(3).filter((line) => line !== '');
    for (const line of rest) expect(line).toMatch(/^(## \w|- \[[^\]]+\]\([^)]+\): \S|[A-Z])/);
  });
});

describe('AGENTS.md', () => {
  it('types commands that are there', () => {
    const commands = [...read('AGENTS.md').matchAll(/`npx longplay ([a-z-]+)([^`]*)`/g)];
    expect(commands.length).toBeGreaterThan(6);
    for (const [, name, rest] of commands) {
      const help = longplay(name!, '--help');
      expect(help.status, name).toBe(0);
      for (const [flag] of rest!.matchAll(/--[a-z-]+/g)) expect(help.stdout, `${name} ${flag}`).toContain(flag);
    }
  });

  it('links every skill', () => {
    for (const skill of skills) expect(read('AGENTS.md')).toContain(`](${pathOf(skill)})`);
  });
});
