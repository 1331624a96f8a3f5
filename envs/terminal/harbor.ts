/**
 * Tasks in Harbor's form (https://harborframework.com/docs/tasks): a folder with `task.toml`, `instruction.md`, `environment/`,
 * `tests/test.sh` and, for the oracle, `solution/solve.sh`. Those are opened whose environment is files that are copied and whose
 * test is a script that this shell runs; others are refused by a line that names what they need.
 */
import { existsSync, readdirSync, realpathSync, statSync } from 'node:fs';
import { join, posix, sep } from 'node:path';
import { MAX_SETTINGS_BYTES, readBounded } from '../../src/core/bounded-file.ts';
import { messageOf, UserError } from '../../src/core/errors.ts';
import { parseJson } from '../../src/core/json-text.ts';
import { isRecord } from '../../src/core/record.ts';
import { type FileState, type Files, Shell, type Start } from './shell.ts';
import { SHELL_TOOLS, type Verdict, type Work } from './work.ts';

/** Images whose own programs this shell has; their version does not matter. */
const PLAIN_IMAGES = /^(docker\.io\/library\/|docker\.io\/)?(ubuntu|debian|alpine|bash|busybox)(:[\w.-]+)?$/;
/** Instructions that change nothing that a task sees here. */
const IGNORED = new Set(['LABEL', 'CMD', 'ENTRYPOINT', 'EXPOSE', 'ARG', 'SHELL', 'STOPSIGNAL', 'MAINTAINER', 'USER']);
/** Longest instruction that is shown. */
const MAX_REQUEST_CHARS = 65_536;
/** Files and bytes of a task's folder that are read. */
const MAX_FILES = 1000;
const MAX_BYTES = 2 ** 23;

/**
 * Lists the tasks of a folder: itself, or those right below it, by name.
 * @throws {UserError} BAD_CONFIG where there are none
 */
export function listHarborTasks(folder: string): readonly string[] {
  if (!existsSync(folder) || !statSync(folder).isDirectory()) refuse(`terminal: folder: there is no folder ${folder}`);
  if (existsSync(join(folder, 'task.toml'))) return [folder];
  const found = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && existsSync(join(folder, entry.name, 'task.toml')))
    .map((entry) => join(folder, entry.name))
    .sort();
  if (found.length === 0) refuse(`terminal: folder: expected tasks with a task.toml in ${folder}, found none`);
  return found;
}

/**
 * Reads a task.
 * @throws {UserError} BAD_CONFIG naming what is missing, or what the task needs that is not here
 */
export async function readHarborTask(folder: string): Promise<Work> {
  const request = readText(folder, 'instruction.md').trim();
  if (request.length > MAX_REQUEST_CHARS)
    return need(folder, `an instruction of more than ${MAX_REQUEST_CHARS} characters`);
  const start = readEnvironment(folder);
  if (existsSync(join(folder, 'tests'))) requireInside(folder, join(folder, 'tests'));
  const tests = readFiles(join(folder, 'tests'), '/tests');
  const bytes = [...Object.values(start.files), ...Object.values(tests)].reduce(
    (sum, { content }) => sum + content.length,
    0,
  );
  if (bytes > MAX_BYTES) return need(folder, `room for ${bytes} characters of files; a machine has ${MAX_BYTES}`);
  const script = tests['/tests/test.sh'];
  if (!script) return need(folder, 'the file tests/test.sh');
  const missing = await listMissingCommands(folder, script.content);
  if (missing.length > 0) return need(folder, `${missing.join(', ')} in tests/test.sh`);
  return {
    request,
    start,
    tools: SHELL_TOOLS,
    async check(shell) {
      // What the policy has left behind must not be taken for a reward, nor change what the test runs.
      shell.startOver(start.cwd);
      try {
        for (const path of [VERIFIER, '/tests']) await shell.makeEmptyFolder(path);
        await shell.write(tests);
      } catch (thrown) {
        // A disk that is full, or a file in place of a folder: the policy's doing.
        return { reward: 0, success: false, text: `Not solved: the test cannot be written: ${messageOf(thrown)}` };
      }
      const { stdout, stderr } = await shell.run('bash /tests/test.sh');
      const { files } = await shell.read(VERIFIER);
      return judge(files, (stderr || stdout).trim().split('\n').at(-1) ?? '');
    },
  };
}

/** Folder in which a test leaves its reward. */
const VERIFIER = '/logs/verifier';

/** Reads the text of `solution/solve.sh`; undefined without one. */
export function readSolution(folder: string): string | undefined {
  return existsSync(join(folder, 'solution', 'solve.sh')) ? readText(folder, 'solution/solve.sh') : undefined;
}

/** Reads the reward that a test has left: `reward.json` first, then `reward.txt`, as Harbor does. */
function judge(files: ReadonlyMap<string, FileState>, lastLine: string): Verdict {
  const reward = readReward(files);
  if (reward === undefined)
    return { reward: 0, success: false, text: `Not solved: no reward was written. ${lastLine}`.trim() };
  const success = reward >= 1;
  return { reward, success, text: success ? 'Solved.' : `Not solved: reward ${reward}.` };
}

function readReward(files: ReadonlyMap<string, FileState>): number | undefined {
  const [json, text] = ['reward.json', 'reward.txt'].map((name) => files.get(name)?.content);
  let value: unknown = text?.trim() === '' ? undefined : Number(text);
  if (json !== undefined) {
    try {
      const parsed = parseJson(json);
      value = isRecord(parsed) ? parsed.reward : parsed;
    } catch {
      return undefined;
    }
  }
  return typeof value === 'number' && Number.isFinite(value) ? Math.min(1, Math.max(0, value)) : undefined;
}

/** Reads the environment of a task: the files that its Dockerfile copies, its folder and its variables. */
function readEnvironment(folder: string): Start & { readonly cwd: string } {
  const root = join(folder, 'environment');
  const settings = readText(folder, 'task.toml');
  const image = /^\s*docker_image\s*=\s*"([^"]*)"/m.exec(settings)?.[1];
  if (image !== undefined) return need(folder, `the image ${image}`);
  const composed = ['docker-compose.yaml', 'docker-compose.yml'].find((name) => existsSync(join(root, name)));
  if (composed) return need(folder, `Docker, for environment/${composed}`);
  const files: Record<string, FileState> = {};
  const env: Record<string, string> = {};
  let cwd = '/';
  const lines = readText(folder, 'environment/Dockerfile')
    .replaceAll(/\\\r?\n/g, ' ')
    .split('\n');
  for (const [i, raw] of lines.entries()) {
    const line = raw.trim();
    if (line === '' || line.startsWith('#')) continue;
    const [word, rest] = [line.split(/\s+/, 1)[0]!.toUpperCase(), line.replace(/^\S+\s*/, '')];
    const isFirst = word === 'FROM' && lines.slice(0, i).every((before) => !/^\s*FROM\s/i.test(before));
    if (isFirst && PLAIN_IMAGES.test(rest.trim())) continue;
    if (word === 'FROM') return need(folder, `the image ${rest}`);
    if (word === 'WORKDIR') cwd = posix.resolve(cwd, rest);
    else if (word === 'ENV') {
      if (rest.includes('$')) return need(folder, `Docker, for ${line.slice(0, 80)}`);
      Object.assign(env, readVariables(rest));
    } else if (word === 'COPY') Object.assign(files, copyFiles(folder, root, rest, cwd));
    else if (!IGNORED.has(word)) return need(folder, `Docker, for ${line.slice(0, 80)}`);
  }
  return { files, cwd, env };
}

/** Variables of `ENV`: `KEY=value KEY2="two words"`, or the old form `KEY value`. */
function readVariables(text: string): Record<string, string> {
  if (!/^\w+=/.test(text)) return Object.fromEntries([[text.split(/\s+/, 1)[0]!, text.replace(/^\S+\s*/, '')]]);
  const pairs = text.matchAll(/(\w+)=(?:"([^"]*)"|'([^']*)'|(\S*))/g);
  return Object.fromEntries(
    [...pairs].map(([, name, double, single, plain]) => [name!, double ?? single ?? plain ?? '']),
  );
}

/** Files of one `COPY`, by their paths in the machine. */
function copyFiles(folder: string, root: string, text: string, cwd: string): Files {
  const words = text.trim().startsWith('[') ? readWords(text) : text.trim().split(/\s+/);
  const flags = words.filter((word) => word.startsWith('--'));
  const paths = words.filter((word) => !word.startsWith('--'));
  const odd = flags.find((flag) => !/^--(chown|chmod)=/.test(flag)) ?? paths.find((path) => /[*?[$]/.test(path));
  if (odd !== undefined || paths.length < 2) return need(folder, `Docker, for COPY ${text.slice(0, 80)}`);
  const mode = flags.map((flag) => /^--chmod=0?([0-7]{3})$/.exec(flag)?.[1]).find((found) => found !== undefined);
  const [to, ...sources] = [paths.at(-1)!, ...paths.slice(0, -1)];
  const target = posix.resolve(cwd, to);
  const copied: Record<string, FileState> = {};
  for (const source of sources) {
    const from = join(root, posix.join('/', source));
    if (!existsSync(from)) return need(folder, `the file environment/${source}`);
    requireInside(folder, from);
    const isFolder = statSync(from).isDirectory();
    const into = isFolder || sources.length > 1 || /(^|\/)\.?$/.test(to) || to.endsWith('/');
    if (isFolder) Object.assign(copied, readFiles(from, target));
    else copied[into ? posix.join(target, posix.basename(source)) : target] = readFileState(from);
  }
  if (mode === undefined) return copied;
  const bits = Number.parseInt(mode, 8);
  return Object.fromEntries(Object.entries(copied).map(([path, { content }]) => [path, { content, mode: bits }]));
}

function readWords(text: string): string[] {
  let list: unknown;
  try {
    list = parseJson(text);
  } catch {} // no list: refused as too few paths
  return Array.isArray(list) ? list.filter((word) => typeof word === 'string') : [];
}

/** Reads the files below a folder, by their paths below `target`. Links and devices are left out. */
function readFiles(root: string, target: string): Record<string, FileState> {
  if (!existsSync(root)) return {};
  const entries = readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  if (entries.length > MAX_FILES)
    refuse(`terminal: ${root}: expected at most ${MAX_FILES} files, found ${entries.length}`);
  return Object.fromEntries(
    entries.map((entry) => {
      const path = join(entry.parentPath, entry.name);
      return [posix.join(target, path.slice(root.length).replaceAll('\\', '/')), readFileState(path)];
    }),
  );
}

function readFileState(path: string): FileState {
  return { content: readBounded(path, MAX_BYTES).toString('utf8'), mode: statSync(path).mode & 0o777 };
}

/** @throws {UserError} BAD_CONFIG for a link that leads out of the task: the policy would read this machine's files */
function requireInside(folder: string, path: string): void {
  const [root, real] = [realpathSync(folder), realpathSync(path)];
  if (real !== root && !real.startsWith(`${root}${sep}`)) need(folder, `${path}, a link that leads out of it`);
}

function readText(folder: string, name: string): string {
  if (!existsSync(join(folder, name))) return need(folder, `the file ${name}`);
  requireInside(folder, join(folder, name));
  return readBounded(join(folder, name), MAX_SETTINGS_BYTES).toString('utf8');
}

/** Programs that a test calls and that this shell lacks, in the order of their first calls. */
async function listMissingCommands(folder: string, script: string): Promise<readonly string[]> {
  const shell = await Shell.open({ files: {} }, 0);
  try {
    return await shell.listMissing(script);
  } catch (thrown) {
    return need(folder, `another bash, for tests/test.sh: ${messageOf(thrown)}`);
  }
}

function need(folder: string, what: string): never {
  return refuse(`terminal: the task ${folder} needs ${what}`);
}

function refuse(message: string): never {
  throw new UserError('BAD_CONFIG', message);
}
