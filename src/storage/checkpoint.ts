/**
 * Checkpoints that survive anything: `<dir>/<update>/{manifest.json, tensors.safetensors, state.json}`.
 *
 * A checkpoint is written in a hidden folder beside, every file and the folder synced, and then renamed: under its
 * number it is complete or absent. The manifest holds length and SHA-256 of every file and of itself, so one flipped or
 * missing byte anywhere is noticed. The loader names what is damaged and takes the one before. It never starts over by
 * itself: with nothing good to load it throws.
 *
 * One process writes a folder at a time. Hidden names in it: `.tmp-…` unfinished or being deleted, swept by the next
 * save; `.replaced-<update>` the earlier checkpoint of the same number, for the instant of the exchange;
 * `.abandoned-<update>` one of a future that the run went back from (the newest K are kept, none is loaded).
 */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { LongplayError, messageOf, UserError } from '../core/errors.ts';
import { parseJson } from '../core/json-text.ts';
import { type Disk, nodeDisk, quietly } from './atomic-file.ts';
import { decodeSafetensors, encodeSafetensors, type StoredTensors } from './safetensors.ts';

export const CHECKPOINT_FORMAT = 1;

const ABANDONED = '.abandoned-';

/** Plain JSON: finite numbers, strings, booleans, null, arrays, objects. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

export interface CheckpointContent {
  readonly tensors: StoredTensors;
  /**
   * State of the run besides tensors. Checked: a NaN or a typed array, which JSON would quietly distort, is refused.
   */
  readonly state: Json;
}

/** Loaded checkpoint: its update, tensors and state. */
export interface LoadedCheckpoint extends CheckpointContent {
  readonly update: number;
  readonly path: string;
  /** Warnings about newer checkpoints that were passed over, and why. Empty when the newest one was good. */
  readonly warnings: readonly string[];
}

export type SaveResult =
  | { readonly ok: true; readonly path: string; readonly bytes: number }
  | {
      readonly ok: false;
      /** Code of the system: ENOSPC, EACCES, EROFS, …; `UNKNOWN` where it gave none. */
      readonly code: string;
      readonly message: string;
    };

export interface SaveOptions {
  /** Number of newest checkpoints to keep, ≥ 1; default 3. */
  readonly keep?: number | undefined;
  readonly disk?: Disk | undefined;
}

interface Manifest {
  readonly format: number;
  readonly update: number;
  readonly files: readonly { readonly name: string; readonly bytes: number; readonly sha256: string }[];
}

/**
 * Saves the state of a run after `update` updates. An earlier checkpoint of the same number is exchanged; those of
 * higher numbers belong to a future that the run went back from, and are set aside.
 *
 * A refusal of the disk (full, no permission, gone) comes back as a value. Training goes on and the last good
 * checkpoint is untouched; the caller reports it and tries again.
 *
 * @throws {UserError} BAD_ARGUMENT or {ShapeError} for content that cannot be stored: the caller's mistake
 */
export function saveCheckpoint(
  dir: string,
  update: number,
  content: CheckpointContent,
  { keep = 3, disk = nodeDisk }: SaveOptions = {},
): SaveResult {
  if (!Number.isSafeInteger(update) || update < 0) {
    throw new UserError('BAD_ARGUMENT', `checkpoint: update must be a whole number ≥ 0, got ${update}`);
  }
  if (!Number.isSafeInteger(keep) || keep < 1) {
    throw new UserError('BAD_ARGUMENT', `checkpoint: keep must be a whole number ≥ 1, got ${keep}`);
  }
  const files = {
    'tensors.safetensors': encodeSafetensors(content.tensors),
    'state.json': encodeText(strictJson(content.state)),
  };
  const entries = Object.entries(files).map(([name, bytes]) => ({ name, bytes: bytes.length, sha256: sha256(bytes) }));
  const manifest = encodeText(renderManifest({ format: CHECKPOINT_FORMAT, update, files: entries }));

  const path = join(dir, String(update));
  const beside = join(dir, `.tmp-${update}`);
  try {
    disk.makeFolder(dir);
    for (const name of disk.list(dir)) if (name.startsWith('.tmp-')) disk.remove(join(dir, name));
    disk.makeFolder(beside);
    for (const [name, bytes] of Object.entries(files)) disk.write(join(beside, name), bytes);
    disk.write(join(beside, 'manifest.json'), manifest);
    disk.syncFolder(beside);
    exchange(disk, dir, update, beside);
    disk.syncFolder(dir);
  } catch (error) {
    quietly(() => disk.remove(beside));
    const code = (error as NodeJS.ErrnoException).code ?? 'UNKNOWN';
    return { ok: false, code, message: `checkpoint ${path} was not saved: ${messageOf(error)}` };
  }
  quietly(() => tidy(disk, dir, update, keep)); // the checkpoint is safe; what is left over is tidied next time
  return { ok: true, path, bytes: entries.reduce((sum, file) => sum + file.bytes, manifest.length) };
}

/**
 * Loads the newest good checkpoint of a folder; damaged ones are passed over with a warning.
 *
 * @param check throws where whole content makes no sense: such a checkpoint is passed over like a damaged one
 * @throws {UserError} BAD_CHECKPOINT when there is none: the message lists every one that was tried and why it is no
 *   good. Whether to start over is for a person to decide.
 */
export function loadNewest(
  dir: string,
  disk: Disk = nodeDisk,
  check: (content: CheckpointContent, update: number) => void = () => {},
): LoadedCheckpoint {
  const warnings: string[] = [];
  for (const { update, name } of candidates(listFolders(dir, disk))) {
    const path = join(dir, name);
    try {
      const content = verify(disk, path, update);
      check(content, update);
      return { update, path, ...content, warnings };
    } catch (error) {
      warnings.push(`checkpoint ${path} cannot be used and was passed over: ${messageOf(error)}`);
    }
  }
  const tried = warnings.length === 0 ? 'there is no checkpoint' : `no checkpoint is good\n${warnings.join('\n')}`;
  throw new UserError('BAD_CHECKPOINT', `${dir}: ${tried}; nothing was started over`);
}

/**
 * Loads the checkpoint of one update.
 * @param check as for `loadNewest`
 * @throws {UserError} BAD_CHECKPOINT when it is not there, or damaged
 */
export function loadCheckpoint(
  dir: string,
  update: number,
  disk: Disk = nodeDisk,
  check: (content: CheckpointContent, update: number) => void = () => {},
): LoadedCheckpoint {
  const path = join(dir, String(update));
  try {
    const content = verify(disk, path, update);
    check(content, update);
    return { update, path, ...content, warnings: [] };
  } catch (thrown) {
    throw new UserError('BAD_CHECKPOINT', `${path}: ${messageOf(thrown)}`);
  }
}

/** Updates that have a checkpoint, newest first; not verified. @throws {UserError} BAD_CHECKPOINT for what is no folder */
export function listCheckpoints(dir: string, disk: Disk = nodeDisk): number[] {
  return candidates(listFolders(dir, disk)).map(({ update }) => update);
}

function listFolders(dir: string, disk: Disk): readonly string[] {
  try {
    return disk.list(dir);
  } catch (thrown) {
    throw new UserError('BAD_CHECKPOINT', `${dir}: expected a folder of checkpoints: ${messageOf(thrown)}`);
  }
}

/** Checkpoints that may be loaded, newest first. An exchange cut short leaves the earlier one under its hidden name. */
function candidates(names: readonly string[]): { readonly update: number; readonly name: string }[] {
  const found: { update: number; name: string }[] = [];
  for (const name of names) {
    const number = /^(?:\.replaced-)?(\d+)$/.exec(name)?.[1];
    if (number !== undefined) found.push({ update: Number(number), name });
  }
  return found.sort((a, b) => b.update - a.update || Number(a.name.startsWith('.')) - Number(b.name.startsWith('.')));
}

function exchange(disk: Disk, dir: string, update: number, beside: string): void {
  const path = join(dir, String(update));
  const names = disk.list(dir);
  if (!names.includes(String(update))) {
    disk.rename(beside, path);
    return;
  }
  const replaced = join(dir, `.replaced-${update}`);
  disk.remove(replaced); // left by an exchange cut short after the new one was in place
  disk.rename(path, replaced); // from here until the next rename the earlier one loads under this name
  disk.rename(beside, path);
}

function tidy(disk: Disk, dir: string, update: number, keep: number): void {
  const discard = (name: string): void => {
    // Renamed first: deleting takes a while, and half of a checkpoint under its own name would look like damage.
    const doomed = join(dir, `.tmp-${name}`);
    disk.rename(join(dir, name), doomed);
    disk.remove(doomed);
  };
  const names = disk.list(dir);
  const past: string[] = [];
  for (const at of candidates(names)) {
    if (at.name.startsWith('.') && names.includes(String(at.update))) discard(at.name);
    else if (at.update <= update) past.push(at.name);
    else {
      disk.remove(join(dir, `${ABANDONED}${at.update}`));
      disk.rename(join(dir, at.name), join(dir, `${ABANDONED}${at.update}`));
    }
  }
  for (const name of past.slice(keep)) discard(name);
  const abandoned = disk.list(dir).filter((name) => name.startsWith(ABANDONED));
  const number = (name: string): number => Number(name.slice(ABANDONED.length));
  for (const name of abandoned.sort((a, b) => number(b) - number(a)).slice(keep)) discard(name);
  disk.syncFolder(dir);
}

function verify(disk: Disk, path: string, update: number): CheckpointContent {
  const bad = (what: string): never => {
    throw new LongplayError('BAD_CHECKPOINT', what);
  };
  const manifest = parseManifest(decodeText(disk.read(join(path, 'manifest.json'))), bad);
  if (manifest.format !== CHECKPOINT_FORMAT) {
    bad(`manifest.json: format ${manifest.format}, this version reads ${CHECKPOINT_FORMAT}`);
  }
  if (manifest.update !== update) bad(`manifest.json: belongs to update ${manifest.update}`);
  const read = (name: string): Uint8Array => {
    const entry = manifest.files.find((file) => file.name === name) ?? bad(`manifest.json: does not list ${name}`);
    const bytes = disk.read(join(path, name));
    if (bytes.length !== entry.bytes) bad(`${name}: ${bytes.length} bytes, expected ${entry.bytes}`);
    if (sha256(bytes) !== entry.sha256) bad(`${name}: its content does not match its SHA-256`);
    return bytes;
  };
  const tensors = decodeSafetensors(read('tensors.safetensors'), 'tensors.safetensors');
  const text = read('state.json');
  try {
    return { tensors, state: parseJson(decodeText(text)) as Json };
  } catch {
    return bad('state.json: not JSON');
  }
}

/** Manifest as text, its own hash last. Reading accepts exactly this text, so no byte of it goes unchecked. */
function renderManifest(manifest: Manifest): string {
  return `${JSON.stringify({ ...manifest, sha256: sha256(encodeText(JSON.stringify(manifest))) }, null, 2)}\n`;
}

function parseManifest(text: string, bad: (what: string) => never): Manifest {
  let parsed: Manifest & { readonly sha256: string };
  try {
    parsed = parseJson(text) as Manifest & { readonly sha256: string };
    const { sha256: _, ...manifest } = parsed;
    if (renderManifest(manifest) === text) return manifest;
  } catch {
    return bad('manifest.json: not JSON');
  }
  return bad('manifest.json: its content does not match its SHA-256');
}

/**
 * Strict JSON, of a value that is read back exactly. @throws {UserError} BAD_ARGUMENT naming the key that would not be
 */
function strictJson(state: Json): string {
  return JSON.stringify(state, function check(this: unknown, key: string, value: unknown) {
    const raw = (this as Record<string, unknown>)[key]; // before a toJSON of its own
    const plain =
      raw === null ||
      typeof raw === 'string' ||
      typeof raw === 'boolean' ||
      (typeof raw === 'number' && Number.isFinite(raw)) ||
      (typeof raw === 'object' && (Array.isArray(raw) || isPlainObject(raw)));
    if (plain) return value;
    const what = typeof raw === 'object' ? raw?.constructor.name : String(raw);
    throw new UserError(
      'BAD_ARGUMENT',
      `checkpoint: state.${key} is ${what}, which JSON cannot hold; store plain values`,
    );
  });
}

function isPlainObject(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

function encodeText(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

function decodeText(bytes: Uint8Array): string {
  return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
}
