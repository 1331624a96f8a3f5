#!/usr/bin/env node
/**
 * `npm create longplay <folder>`: a project with longplay and a working world, agent or study. What is written comes from the installed
 * longplay (`new-env`, `new-agent`, `new-study`), so it always fits the version.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { parseArgs } from 'node:util';

/** Kinds by their name, which their folder gets too: the command that writes one, and what is typed first. */
const PARTS = {
  world: { command: 'new-env', first: 'npx longplay check-env world/env.mjs' },
  agent: { command: 'new-agent', first: 'npx longplay train agent/train.yaml' },
  study: { command: 'new-study', first: 'node study/study.mjs' },
};
const KINDS = Object.keys(PARTS);

/** Ends with one line and code 2: a mistake of the user. @param {string} message @returns {never} */
function refuse(message) {
  console.error(`create-longplay: ${message}`);
  process.exit(2);
}

/** Flags and the folder. */
function readArguments() {
  try {
    const options = { kind: { type: 'string' }, package: { type: 'string' } };
    const { values, positionals } = parseArgs({ options, allowPositionals: true });
    return { ...values, positionals };
  } catch (thrown) {
    return refuse(`${thrown.message.split('\n')[0]} Usage: npm create longplay <folder> -- --kind ${KINDS.join('|')}`);
  }
}

/** Asks for the kind on a terminal. */
async function askKind() {
  if (!process.stdin.isTTY || !process.stdout.isTTY) return 'world';
  const lines = createInterface({ input: process.stdin, output: process.stdout });
  const answer = await lines.question(`What will it be: ${KINDS.join(', ')}? [world] `);
  lines.close();
  return answer.trim() || 'world';
}

/** Runs a program in the project. Its output goes to the terminal. */
function run(folder, command, ...args) {
  const { status } = spawnSync(command, args, { cwd: folder, stdio: 'inherit', shell: process.platform === 'win32' });
  if (status !== 0) {
    console.error(`create-longplay: '${command} ${args.join(' ')}' ended with ${status}; ${folder} is left as it is`);
    process.exit(1);
  }
}

const { positionals, kind: asked, package: spec } = readArguments();
const [target, ...others] = positionals;
if (target === undefined || others.length > 0) {
  refuse(
    `expected one folder, got ${positionals.length}. Usage: npm create longplay <folder> -- --kind ${KINDS.join('|')}`,
  );
}
const folder = resolve(target);
const name = basename(folder);
if (!/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/.test(name)) {
  refuse(`'${name}' is no name of a project; use lower-case letters, digits and single dashes, a letter first`);
}
if (existsSync(folder)) refuse(`${folder} exists already; it is left as it is`);
if (asked !== undefined && !KINDS.includes(asked)) refuse(`--kind: expected ${KINDS.join(', ')}, got '${asked}'`);
const kind = asked ?? (await askKind());
if (!KINDS.includes(kind)) refuse(`expected ${KINDS.join(', ')}, got '${kind}'`);

const { version } = JSON.parse(readFileSync(new URL('package.json', import.meta.url), 'utf8'));
mkdirSync(folder, { recursive: true });
const manifest = { name, private: true, type: 'module', scripts: { test: 'node --test' } };
writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, undefined, 2)}\n`);
// onnxruntime-node's install script downloads CUDA files; nothing here relies on install scripts.
writeFileSync(join(folder, '.npmrc'), 'ignore-scripts=true\nfund=false\naudit=false\n');
writeFileSync(join(folder, '.gitignore'), 'node_modules/\nruns/\n');
const source = spec ?? `longplay@^${version}`;
run(folder, 'npm', 'install', existsSync(source) ? resolve(source) : source);
run(folder, 'npx', 'longplay', 'prune-engines'); // 497 MB become 133
const { command, first } = PARTS[kind];
run(folder, 'npx', 'longplay', command, kind);
console.log(`\ncd ${target}\nnpm test          # its tests\n${first}`);
