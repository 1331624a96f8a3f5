/**
 * Fetches models from Hugging Face's hub into the cache that Python uses (hub-cache.ts). A file is kept under its digest,
 * appears once it is whole and its digest is right, and an interrupted fetch goes on where it ended.
 */
import { createHash } from 'node:crypto';
import {
  closeSync,
  copyFileSync,
  existsSync,
  fsyncSync,
  lstatSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { streamFile } from '../../core/bounded-file.ts';
import { messageOf, UserError } from '../../core/errors.ts';
import { firstLineOf } from '../../core/first-line.ts';
import { type HubName, isHubName } from '../../core/hub-name.ts';
import { redact } from '../../core/secrets.ts';
import { makeFolder, quietly, writeFileAtomic } from '../../storage/atomic-file.ts';
import { cachedCommit, isHubOffline, locateInHubCache, readHubName, repoFolder } from './hub-cache.ts';
import { acquireLock, keepLock, releaseLock } from './model-cache.ts';

/** Files of a model besides its weights; those that a repository has are fetched. */
const SETTINGS = [
  'config.json',
  'generation_config.json',
  'tokenizer.json',
  'tokenizer_config.json',
  'chat_template.jinja',
] as const;

/** File of a repository. */
interface HubFile {
  readonly path: string;
  readonly size: number;
  /** Digest that names its blob: SHA-256 of a large file, git's SHA-1 of a small one. */
  readonly digest: string;
}

/**
 * Fetches a model that is named on the hub; any other is left as it is. Nothing is asked for what is in the cache whole
 * under a commit, nor with `HF_HUB_OFFLINE`.
 * @param onNotice called with what is fetched, one line each
 * @throws {UserError} BAD_CHECKPOINT where it cannot be had
 */
export async function fetchModel(
  model: string | undefined,
  onNotice: (notice: string) => void = () => {},
): Promise<void> {
  if (model === undefined || !isHubName(model)) return;
  const name = readHubName(model);
  if (isHubOffline()) {
    locateInHubCache(model);
    return;
  }
  try {
    await fetchFiles(model, name, onNotice);
  } catch (thrown) {
    const why = describeFailure(thrown);
    // Without the network, what was fetched before is what there is.
    if (!(thrown instanceof UserError) && isUnreachable(thrown) && isWhole(name)) {
      onNotice(`${model}: ${why}; the cache's copy is used`);
      return;
    }
    if (thrown instanceof UserError) throw thrown;
    throw new UserError('BAD_CHECKPOINT', `${model}: ${why}`, { cause: thrown });
  }
}

/** Loaded for the first fetch alone. */
async function openHub() {
  const { downloadFile, listFiles, modelInfo } = await import('@huggingface/hub');
  const { HF_ENDPOINT, HF_TOKEN } = process.env;
  const access = {
    ...(HF_ENDPOINT ? { hubUrl: HF_ENDPOINT.replace(/\/+$/, '') } : {}),
    ...(HF_TOKEN ? { accessToken: HF_TOKEN } : {}),
  };
  return { downloadFile, listFiles, modelInfo, access };
}

async function fetchFiles(model: string, name: HubName, onNotice: (notice: string) => void): Promise<void> {
  const { downloadFile, listFiles, modelInfo, access } = await openHub();
  const { repo, revision } = name;
  const { sha: commit } = await modelInfo({ name: repo, revision, additionalFields: ['sha'], ...access });
  if (!/^[0-9a-f]{40}$/.test(commit)) throw new Error(`the hub names ${JSON.stringify(commit)} for a commit`);
  const found: HubFile[] = [];
  for await (const entry of listFiles({ repo, revision: commit, recursive: true, ...access })) {
    const { type, path, size, oid, lfs } = entry;
    const digest = lfs?.oid ?? oid ?? '';
    if (type === 'file' && isPlain(path) && /^[0-9a-f]{40,64}$/.test(digest)) found.push({ path, size, digest });
  }
  const folder = repoFolder(name);
  for (const file of chooseFiles(model, name, found)) {
    const link = join(folder, 'snapshots', commit, file.path);
    if (existsSync(link)) continue;
    const blob = join(folder, 'blobs', file.digest);
    if (!existsSync(blob)) {
      onNotice(`${model}: fetching ${file.path}, ${describeSize(file.size)}`);
      await fetchBlob(blob, file, async (from) => {
        const found = await downloadFile({ repo, path: file.path, revision: commit, ...access });
        if (!found) throw new Error(`the hub does not have ${file.path}`);
        return found.slice(from).stream() as AsyncIterable<Uint8Array> & ReadableStream<Uint8Array>;
      });
    }
    linkTo(blob, link);
  }
  if (revision !== commit) {
    const ref = join(folder, 'refs', revision);
    makeFolder(dirname(ref));
    writeFileAtomic(ref, commit);
  }
}

/** Files of a model among those of its repository. @throws {UserError} BAD_CHECKPOINT where they make none */
function chooseFiles(model: string, { file }: HubName, found: readonly HubFile[]): readonly HubFile[] {
  const refuse = (what: string): never => {
    throw new UserError('BAD_CHECKPOINT', `${model}: ${what}`);
  };
  const ggufs = found.filter(({ path }) => /\.gguf$/i.test(path));
  const list = ggufs.map(({ path }) => path).join(', ');
  if (file !== undefined) {
    const one = found.find(({ path }) => path === file);
    return one ? [one] : refuse(`the repository has no ${file}; its GGUF files: ${list || 'none'}`);
  }
  if (found.some(({ path }) => path === 'config.json')) {
    const settings = found.filter(({ path }) => (SETTINGS as readonly string[]).includes(path));
    const sharded = found.filter(({ path }) =>
      /^model-\d+-of-\d+\.safetensors$|^model\.safetensors\.index\.json$/.test(path),
    );
    const single = found.filter(({ path }) => path === 'model.safetensors');
    const weights = sharded.some(({ path }) => path.endsWith('.index.json')) ? sharded : single;
    if (weights.length > 0) return [...settings, ...weights];
  }
  if (ggufs.length === 1) return ggufs;
  if (ggufs.length > 1) refuse(`the repository has several GGUF files: name one of ${list} behind the name`);
  return refuse('the repository has neither config.json with safetensors nor a GGUF file');
}

/** Milliseconds between two signs that a fetch goes on. */
const KEEP_MS = 30_000;

/**
 * Fetches one file under its digest. Beside it lies `<digest>.incomplete` until it is whole, from which a later fetch goes
 * on.
 * @param open gives the bytes from a place on
 */
async function fetchBlob(
  blob: string,
  { path, size, digest }: HubFile,
  open: (from: number) => Promise<AsyncIterable<Uint8Array>>,
): Promise<void> {
  makeFolder(dirname(blob));
  const lock = `${blob}.longplay.lock`;
  while (!acquireLock(lock)) {
    await new Promise((resolve) => setTimeout(resolve, 200));
    if (existsSync(blob)) return;
  }
  const keeping = setInterval(() => keepLock(lock), KEEP_MS);
  try {
    if (existsSync(blob)) return;
    const unfinished = `${blob}.incomplete`;
    const hash = digest.length === 64 ? createHash('sha256') : createHash('sha1').update(`blob ${size}\0`);
    let got = existsSync(unfinished) ? statSync(unfinished).size : 0;
    if (got > size) {
      rmSync(unfinished);
      got = 0;
    }
    if (got > 0) for await (const chunk of streamFile(unfinished, 2 ** 20)) hash.update(chunk as Uint8Array);
    const file = openSync(unfinished, 'a');
    try {
      if (got < size) {
        for await (const chunk of await open(got)) {
          got += chunk.length;
          if (got > size) break;
          hash.update(chunk);
          for (let at = 0; at < chunk.length; ) at += writeSync(file, chunk, at, chunk.length - at);
        }
      }
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    if (got < size) throw new Error(`${path} ended at byte ${got} of ${size}; run it again, and it goes on from there`);
    if (got > size || hash.digest('hex') !== digest) {
      rmSync(unfinished, { force: true });
      throw new Error(`${path} is not what the hub says it is (digest ${digest}); it was removed`);
    }
    renameSync(unfinished, blob);
  } finally {
    clearInterval(keeping);
    releaseLock(lock);
  }
}

/** Links a blob into a snapshot, relatively, as Python does; a copy where the system has no links. */
function linkTo(blob: string, link: string): void {
  makeFolder(dirname(link));
  if (lstatSync(link, { throwIfNoEntry: false })) quietly(() => rmSync(link));
  try {
    symlinkSync(relative(dirname(link), blob), link);
  } catch {
    if (!existsSync(link)) copyFileSync(blob, link);
  }
}

/** True for a path that stays in its folder, on every system. */
function isPlain(path: string): boolean {
  return /^[^\\:\0]+$/.test(path) && path.split('/').every((part) => part !== '' && part !== '.' && part !== '..');
}

/** True where the cache has a model of this name, as far as can be seen. */
function isWhole(name: HubName): boolean {
  const commit = cachedCommit(name);
  if (commit === undefined) return false;
  const folder = join(repoFolder(name), 'snapshots', commit);
  return existsSync(name.file === undefined ? folder : join(folder, name.file));
}

function isUnreachable(thrown: unknown): boolean {
  const { statusCode } = thrown as { readonly statusCode?: number };
  return statusCode === undefined ? thrown instanceof TypeError : statusCode >= 500;
}

/** One line for what the hub answered, or why it did not. */
function describeFailure(thrown: unknown): string {
  const { statusCode, cause } = thrown as { readonly statusCode?: number; readonly cause?: unknown };
  const { HF_ENDPOINT = 'https://huggingface.co', HF_TOKEN } = process.env;
  const hub = redact(HF_ENDPOINT);
  if (statusCode === 401 || statusCode === 403) {
    const token = HF_TOKEN ? 'the token in HF_TOKEN may not read it' : 'set HF_TOKEN to a token that may read it';
    return `${hub} does not give it away (status ${statusCode}): there is no such model, or ${token}`;
  }
  if (statusCode === 404) return `${hub} has no such model or revision`;
  if (statusCode !== undefined) return `${hub} answered with status ${statusCode}`;
  const inner = cause instanceof Error ? `: ${firstLineOf(messageOf(cause))}` : '';
  if (thrown instanceof TypeError) return `${hub} cannot be reached (${firstLineOf(messageOf(thrown))}${inner})`;
  return firstLineOf(messageOf(thrown));
}

function describeSize(bytes: number): string {
  return bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(0)} MB`;
}
