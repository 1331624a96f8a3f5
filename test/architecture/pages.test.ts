/** Pages that guide: their length, and the length of their sentences. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';

const root = join(import.meta.dirname, '../..');

/** Pages with the most lines that each may have. */
const PAGES: Readonly<Record<string, number>> = {
  'README.md': 130,
  'ARCHITECTURE.md': 160,
  'SECURITY.md': 80,
  'WORLDS.md': 130,
  'REWARDS.md': 100,
  'AGENTS.md': 60,
  'RERUN.md': 90,
  'src/runtime/README.md': 130,
  'src/cluster/README.md': 100,
  'src/storage/README.md': 90,
  'src/run/import/README.md': 50,
  'src/policy/README.md': 110,
  'src/policy/pretrained/README.md': 110,
  'src/learning/README.md': 130,
  'src/gateway/README.md': 130,
  'src/metrics/README.md': 90,
  'src/serve/README.md': 130,
  'src/world/mcp/README.md': 90,
  'src/serve/MODEL-SERVERS.md': 70,
  'actors/env/README.md': 100,
  'experiments/results/README.md': 90,
};
const MAX_MEDIAN_WORDS = 15;
const MAX_WORDS = 40;

/** Sentences of a page: its prose and list items, without code, tables, headings and the tests that a promise names. */
function sentencesOf(page: string): string[] {
  const prose = page
    .replaceAll(/```[\s\S]*?```/g, '\n\n')
    .split('\n')
    .map((line) => (/^\s*(\||#|<!--)/.test(line) ? '' : line.replace(/^\s*([-*]|\d+\.)\s+/, '\n')))
    .join('\n')
    .replaceAll(/`test\/[^`]+`: \*[^*]+\*/g, '')
    .replaceAll(/`[^`]*`/g, 'code')
    .replaceAll(/\]\([^)]*\)/g, ']');
  return prose
    .split(/\n\s*\n/)
    .flatMap((paragraph) => paragraph.replaceAll(/\s+/g, ' ').split(/(?<=[.!?])\s+(?=\S)/))
    .map((sentence) => sentence.trim())
    .filter((sentence) => wordsOf(sentence) > 1);
}

function wordsOf(sentence: string): number {
  return sentence.split(/\s+/).filter((word) => /[\p{L}\d]/u.test(word)).length;
}

/** Names of all source files below a folder. */
function sourcesBelow(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
}

/** Source files that a page names in backquotes and that are not there: a path from the root, a name below the page's folder. */
function missingFiles(name: string, page: string): string[] {
  const prose = page.replaceAll(/```[\s\S]*?```/g, '');
  const named = [...prose.matchAll(/`((?:[\w.-]+\/)*[\w.-]+\.ts)`/g)].map(([, path]) => path!);
  const folder = dirname(name);
  const parts = folder === '.' ? ['src', 'actors', 'test', 'experiments'] : [folder, join('test', folder)];
  const there = parts.filter((part) => existsSync(join(root, part))).flatMap(sourcesBelow);
  return named.filter(
    (path) => !existsSync(join(root, path)) && !there.some((file) => `/${file}`.endsWith(`/${path}`)),
  );
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}

describe('a page', () => {
  it.each(Object.entries(PAGES))('%s has at most %i lines, and short sentences', (name, maxLines) => {
    const page = readFileSync(join(root, name), 'utf8');
    const sentences = sentencesOf(page);
    expect(sentences.length).toBeGreaterThan(3);
    expect(page.trimEnd().split('\n').length).toBeLessThanOrEqual(maxLines);
    expect(sentences.filter((sentence) => wordsOf(sentence) > MAX_WORDS)).toEqual([]);
    expect(median(sentences.map(wordsOf))).toBeLessThanOrEqual(MAX_MEDIAN_WORDS);
  });

  it.each(Object.keys(PAGES))('%s names files that exist', (name) => {
    expect(missingFiles(name, readFileSync(join(root, name), 'utf8'))).toEqual([]);
  });

  it('would be found to name a file that has moved', () => {
    const page =
      '`src/remote/env.ts`, `policy-kinds.ts`, `pretrained/`, `open-policy.ts`, `<name>.ts`, `src/policy/policy.ts`';
    expect(missingFiles('src/policy/README.md', page)).toEqual(['src/remote/env.ts', 'policy-kinds.ts']);
  });

  it('is counted by its prose alone', () => {
    const page =
      '# Title of many words\n\n```\ncode here\n```\n\n| a | table |\n\nOne two three. Four `five six` seven.\n- Eight\n  nine.';
    expect(sentencesOf(page)).toEqual(['One two three.', 'Four code seven.', 'Eight nine.']);
  });
});
