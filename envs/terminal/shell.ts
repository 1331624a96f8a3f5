/** Terminal of one episode: a shell over files of its own, with a clock that moves by its commands alone. */
import { posix } from 'node:path';
import type { Bash } from 'just-bash';
import { messageOf } from '../../src/core/errors.ts';
import { Rng } from '../../src/core/rng.ts';
import { mendDisk } from './disk.ts';
import { type JustBash, loadJustBash, type Machine } from './just-bash.ts';

/** Folder that a task begins in. */
export const HOME = '/home/user';

/** File of a virtual machine. */
export interface FileState {
  readonly content: string;
  /** Permission bits, e.g. 0o644. */
  readonly mode: number;
}

/** Files by path, relative to `HOME` or absolute. */
export type Files = Readonly<Record<string, FileState>>;

/** Beginning of a machine. */
export interface Start {
  readonly files: Files;
  /** Absolute; the folder that commands begin in. Default `HOME`. */
  readonly cwd?: string | undefined;
  /** Variables beside those of every machine. */
  readonly env?: Readonly<Record<string, string>> | undefined;
}

/** Result of a command. */
export interface ShellResult {
  readonly stdout: string;
  readonly stderr: string;
  /** 0 to 255; 0 is success. */
  readonly exitCode: number;
}

/** State of the files at the end. */
export interface Tree {
  /** Files below a folder, by path relative to it. Links are followed; one that leads nowhere is left out. */
  readonly files: ReadonlyMap<string, FileState>;
  readonly folders: ReadonlySet<string>;
}

/** Commands that are there. Left out: those that reach a network, run a worker, or measure real time. */
const COMMANDS = (
  'echo cat printf ls mkdir rmdir touch rm cp mv ln chmod pwd readlink head tail wc stat grep fgrep egrep rg sed awk sort uniq ' +
  'comm cut paste tr rev nl fold expand unexpand strings split column join tee find basename dirname tree du env printenv ' +
  'alias unalias xargs true false clear bash sh jq base64 diff date sleep seq expr md5sum sha1sum sha256sum file help which ' +
  'tac hostname whoami od gzip gunzip zcat tar yq xan'
).split(' ') as NonNullable<NonNullable<ConstructorParameters<typeof Bash>[0]>['commands']>;

/** Bounds of one command. They count work, never time, so a command ends at the same point everywhere. */
const LIMITS = {
  maxCommandCount: 2000,
  maxSourceBytes: 2 ** 17,
  maxOutputSize: 2 ** 20,
  maxStringLength: 2 ** 20,
  maxLiveBytes: 2 ** 25,
  maxInputBytes: 2 ** 25,
  maxFileSystemBytes: 2 ** 24,
  maxExecutionTimeMs: 3_600_000, // of the virtual clock: a longer `sleep` ends the command
};

/** Time of the first start, 2024-03-01 09:00 UTC, and the range of days that a seed moves it by. */
const EPOCH = Date.UTC(2024, 2, 1, 9);
const DAYS = 300;
const MS_PER_DAY = 86_400_000;
/** Virtual time that a command takes, in ms. */
const COMMAND_MS = 1000;

/** Variables that a shell sets itself; the others stay from command to command. */
const OWN_VARIABLES = new Set(['SHELLOPTS', 'BASHOPTS', 'OSTYPE', 'MACHTYPE', 'HOSTTYPE', 'OPTIND', 'PWD', 'IFS', '_']);
/** Bytes of variables that stay. */
const MAX_VARIABLES = 2 ** 16;

/** Shell of an episode. Commands of one shell are sent one after another. */
export class Shell {
  readonly #package: JustBash;
  readonly #machine: Machine;
  readonly #bash: Bash;
  #cwd: string;
  #env: Record<string, string> = {};

  private constructor(loaded: JustBash, machine: Machine, bash: Bash, cwd: string) {
    this.#package = loaded;
    this.#machine = machine;
    this.#bash = bash;
    this.#cwd = cwd;
  }

  /**
   * Opens a shell.
   * @param seed of its clock and its random numbers
   * @throws {UserError} MISSING_ENGINE without just-bash
   */
  static open({ files, cwd = HOME, env = {} }: Start, seed: number): Promise<Shell> {
    const loaded = loadJustBash();
    const rng = Rng.fromSeed(seed).split('machine');
    const machine: Machine = { now: EPOCH + rng.int(DAYS) * MS_PER_DAY, rng };
    return loaded.runAlone(machine, () => {
      const bash = new loaded.Bash({
        files: Object.fromEntries(Object.entries(files).map(([path, file]) => [absolute(path), { ...file }])),
        env: { HOME, USER: 'user', LC_ALL: 'C', TZ: 'UTC', ...env },
        cwd,
        commands: COMMANDS,
        executionLimitProfile: 'hardened',
        executionLimits: LIMITS,
        // It would replace globals of this process while a command runs.
        defenseInDepth: false,
        sleep: async (ms) => void (machine.now += ms),
      });
      mendDisk(bash.fs, () => new loaded.Date());
      machine.now += COMMAND_MS;
      return new Shell(loaded, machine, bash, cwd);
    });
  }

  /** Begins a new terminal over the same files: in a folder, without variables of earlier commands. @param folder absolute */
  startOver(folder: string): void {
    this.#cwd = folder;
    this.#env = {};
  }

  /** Makes a folder that is empty, whatever was there and whatever programs the machine still has. @param path absolute */
  makeEmptyFolder(path: string): Promise<void> {
    const { fs } = this.#bash;
    return this.#package.runAlone(this.#machine, async () => {
      await fs.rm(path, { recursive: true, force: true });
      await fs.mkdir(path, { recursive: true });
    });
  }

  /** Writes files, with the folders that they need. */
  write(files: Files): Promise<void> {
    const { fs } = this.#bash;
    return this.#package.runAlone(this.#machine, async () => {
      for (const [path, { content, mode }] of Object.entries(files)) {
        await fs.mkdir(posix.dirname(absolute(path)), { recursive: true });
        await fs.writeFile(absolute(path), content);
        await fs.chmod(absolute(path), mode);
      }
    });
  }

  /** Lists the programs that a script calls and that are not here, in the order of their first calls. */
  async listMissing(script: string): Promise<readonly string[]> {
    const names = this.#package.listCommands(script);
    const missing: string[] = [];
    for (const name of names) {
      const { exitCode } = await this.run(`type ${quote(name)}`);
      if (exitCode !== 0) missing.push(name);
    }
    return missing;
  }

  /** Runs a command line. Folder and variables stay as in a terminal; functions, aliases and options do not. */
  run(command: string): Promise<ShellResult> {
    return this.#package.runAlone(this.#machine, async () => {
      try {
        const options = { cwd: this.#cwd, env: this.#env, rawScript: true };
        const { stdout, stderr, exitCode, env } = await this.#bash.exec(command, options);
        this.#keep(env);
        return { stdout: nameMissing(stdout), stderr: nameMissing(stderr), exitCode };
      } catch (thrown) {
        return { stdout: '', stderr: `bash: ${messageOf(thrown)}\n`, exitCode: 2 };
      } finally {
        this.#machine.now += COMMAND_MS;
      }
    });
  }

  /** Reads the files below a folder. @param root absolute */
  read(root = HOME): Promise<Tree> {
    const { fs } = this.#bash;
    const files = new Map<string, FileState>();
    const folders = new Set<string>();
    const readText = async (path: string) => Buffer.from(await fs.readFileBuffer(path)).toString('utf8');
    return this.#package.runAlone(this.#machine, async () => {
      for (const path of fs.getAllPaths()) {
        if (!path.startsWith(`${root}/`)) continue;
        const name = path.slice(root.length + 1);
        const stat = await fs.stat(path).catch(() => undefined); // a link that leads nowhere
        if (stat?.isDirectory) folders.add(name);
        else if (stat?.isFile) files.set(name, { content: await readText(path), mode: stat.mode & 0o777 });
      }
      return { files, folders };
    });
  }

  #keep(env: Readonly<Record<string, string>>): void {
    this.#cwd = env.PWD?.startsWith('/') ? env.PWD : this.#cwd;
    const own = Object.entries(env).filter(([name]) => /^[A-Za-z_]\w*$/.test(name) && !OWN_VARIABLES.has(name));
    const size = own.reduce((sum, [name, value]) => sum + name.length + value.length, 0);
    if (size <= MAX_VARIABLES) this.#env = Object.fromEntries(own);
  }
}

function absolute(path: string): string {
  return path.startsWith('/') ? path : `${HOME}/${path}`;
}

/** Output with bash's own words for programs that this form of just-bash lacks. */
function nameMissing(text: string): string {
  return text.replaceAll(/: command not available in browser environments[^\n]*/g, ': command not found');
}

/** Quotes a word for a command line. */
export function quote(word: string): string {
  return /^[\w./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
