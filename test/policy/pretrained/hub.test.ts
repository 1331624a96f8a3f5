import { createHash } from 'node:crypto';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { writeTinyChatModel } from '../../../experiments/tiny-chat-model.ts';
import { absoluteModel } from '../../../src/config/paths.ts';
import { parseHubName } from '../../../src/core/hub-name.ts';
import { openModel } from '../../../src/policy/pretrained/folder.ts';
import { fetchModel } from '../../../src/policy/pretrained/hub.ts';
import { ggufOf, writeGguf } from '../../support/write-gguf.ts';

const COMMIT = '0123456789abcdef0123456789abcdef01234567';

interface HubFile {
  readonly bytes: Buffer;
  /** True for a file of large storage, which is known by its SHA-256. */
  readonly isLarge: boolean;
}

/** Hub on loopback: what the library asks of the real one, and what may go wrong. */
class FakeHub {
  readonly repos = new Map<string, Record<string, HubFile>>();
  readonly requests: string[] = [];
  /** Bytes after which the next download of a large file breaks off. */
  cutAfter: number | undefined;
  /** True to send other bytes than were promised. */
  isLying = false;
  /** Status of every answer; 200: as it should be. */
  status = 200;
  readonly #server: Server;

  constructor() {
    this.#server = createServer((request, response) => this.#answer(request, response));
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #answer(request: IncomingMessage, response: ServerResponse): unknown {
    const url = new URL(request.url!, 'http://hub');
    this.requests.push(`${request.method} ${url.pathname}${request.headers.range ? ` ${request.headers.range}` : ''}`);
    const json = (status: number, value: unknown) => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify(value));
    };
    if (this.status !== 200) return json(this.status, { error: 'no' });
    const [, repo, rest] = /^(?:\/api\/models)?\/([\w.-]+\/[\w.-]+)\/(.*)$/.exec(url.pathname) ?? [];
    const files = this.repos.get(repo ?? '');
    if (!files) return json(404, { error: 'Repository not found' });
    if (rest!.startsWith('revision/')) {
      if (!['main', 'v1', COMMIT].includes(rest!.slice('revision/'.length))) return json(404, { error: 'no revision' });
      return json(200, {
        _id: '1',
        id: repo,
        sha: COMMIT,
        private: false,
        downloads: 1,
        likes: 1,
        lastModified: '2026-01-01T00:00:00Z',
      });
    }
    if (rest!.startsWith('tree/')) {
      const entry = ([path, { bytes, isLarge }]: [string, HubFile]) => ({
        type: 'file',
        path,
        size: bytes.length,
        oid: createHash('sha1').update(`blob ${bytes.length}\0`).update(bytes).digest('hex'),
        ...(isLarge
          ? { lfs: { oid: createHash('sha256').update(bytes).digest('hex'), size: bytes.length, pointerSize: 130 } }
          : {}),
      });
      return json(200, Object.entries(files).map(entry));
    }
    const path = rest!.slice(`resolve/${COMMIT}/`.length);
    const file = files[path];
    if (!file) return json(404, { error: 'Entry not found' });
    return this.#send(file, request.headers.range, response);
  }

  #send({ bytes, isLarge }: HubFile, range: string | undefined, response: ServerResponse): void {
    const [, from = '0', to = ''] = /^bytes=(\d+)-(\d*)$/.exec(range ?? '') ?? [];
    const end = to === '' ? bytes.length - 1 : Math.min(Number(to), bytes.length - 1);
    const part = Buffer.from(bytes.subarray(Number(from), end + 1));
    if (this.isLying && part.length > 1) part[0]! ^= 1;
    response.writeHead(range ? 206 : 200, {
      etag: '"x"',
      'content-length': part.length,
      ...(range ? { 'content-range': `bytes ${from}-${end}/${bytes.length}` } : {}),
    });
    if (this.cutAfter !== undefined && isLarge && part.length > this.cutAfter) {
      response.write(part.subarray(0, this.cutAfter), () => setTimeout(() => response.destroy(), 50));
      this.cutAfter = undefined;
      return;
    }
    response.end(part);
  }
}

const hub = new FakeHub();
let endpoint: string;
let dir: string;
beforeAll(async () => {
  endpoint = await hub.listen();
  const folder = mkdtempSync(join(tmpdir(), 'longplay-hub-model-'));
  writeTinyChatModel(folder, { config: { model_type: 'llama' } });
  const files = Object.fromEntries(
    readdirSync(folder).map((name) => [
      name,
      { bytes: readFileSync(join(folder, name)), isLarge: name.endsWith('.safetensors') },
    ]),
  );
  const readme = { bytes: Buffer.from('# A model\n'), isLarge: false };
  hub.repos.set('tiny/whole', { ...files, 'README.md': readme, 'onnx/model.safetensors': files['model.safetensors']! });
  const gguf = join(folder, 'tiny.gguf');
  writeGguf(gguf, ggufOf(folder, 'llama'));
  const quantised = { bytes: readFileSync(gguf), isLarge: true };
  hub.repos.set('tiny/one-gguf', { 'tiny.gguf': quantised });
  hub.repos.set('tiny/ggufs', { 'a.gguf': quantised, 'q/b.gguf': quantised });
  hub.repos.set('tiny/none', { 'README.md': readme });
  hub.repos.set('tiny/climbing', { '../../../escaped.gguf': quantised, 'config.json': files['config.json']! });
  rmSync(folder, { recursive: true });
});
afterAll(() => hub.close());
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'longplay-hub-'));
  vi.stubEnv('HF_ENDPOINT', endpoint);
  vi.stubEnv('HF_HOME', join(dir, 'hf'));
  for (const name of ['HF_HUB_CACHE', 'HUGGINGFACE_HUB_CACHE', 'HF_HUB_OFFLINE', 'HF_TOKEN']) vi.stubEnv(name, '');
  vi.stubEnv('LONGPLAY_CACHE', join(dir, 'cache'));
  hub.requests.length = 0;
  Object.assign(hub, { cutAfter: undefined, isLying: false, status: 200 });
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(dir, { recursive: true, force: true });
});

const repo = (name: string) => join(dir, 'hf', 'hub', `models--${name.replace('/', '--')}`);
const downloads = () => hub.requests.filter((line) => line.includes('/resolve/') && !line.includes('bytes=0-0'));

describe('a name on the hub', () => {
  it.each([
    ['hf:a/b', { repo: 'a/b', revision: 'main', file: undefined }],
    ['hf:a/b.c@v1', { repo: 'a/b.c', revision: 'v1', file: undefined }],
    ['hf:a/b/c.gguf', { repo: 'a/b', revision: 'main', file: 'c.gguf' }],
    ['hf:a/b@v1/q/c.Q4_K_M.gguf', { repo: 'a/b', revision: 'v1', file: 'q/c.Q4_K_M.gguf' }],
    ['hf:a', undefined],
    ['hf:../b', undefined],
    ['hf:a/b@..', undefined],
    ['hf:a/b/../../c.gguf', undefined],
    ['hf:a/b/c.bin', undefined],
    ['a/b', undefined],
  ])('%s is read', (text, expected) => {
    expect(parseHubName(text)).toEqual(expected);
  });

  it('is no path', () => {
    expect(absoluteModel('hf:a/b', '/here')).toBe('hf:a/b');
    expect(absoluteModel('a/b', '/here')).toBe('/here/a/b');
  });

  it('is fetched into the layout of Python’s cache, what a model needs and no more', async () => {
    const notices: string[] = [];
    await fetchModel('hf:tiny/whole', (notice) => notices.push(notice));
    const folder = repo('tiny/whole');
    expect(readFileSync(join(folder, 'refs', 'main'), 'utf8')).toBe(COMMIT);
    const snapshot = join(folder, 'snapshots', COMMIT);
    expect(readdirSync(snapshot).sort()).toEqual([
      'chat_template.jinja',
      'config.json',
      'generation_config.json',
      'model.safetensors',
      'tokenizer.json',
      'tokenizer_config.json',
    ]);
    expect(notices.length).toBe(6);
    const link = join(snapshot, 'model.safetensors');
    expect(lstatSync(link).isSymbolicLink()).toBe(true);
    expect(readlinkSync(link)).toMatch(/^\.\.\/\.\.\/blobs\/[0-9a-f]{64}$/);
    expect(readdirSync(join(folder, 'blobs')).every((name) => /^([0-9a-f]{40}|[0-9a-f]{64})$/.test(name))).toBe(true);
    expect(openModel('hf:tiny/whole').config.layers).toBe(2);
    // Again: nothing is fetched twice.
    const before = downloads().length;
    await fetchModel('hf:tiny/whole');
    await fetchModel(`hf:tiny/whole@${COMMIT}`);
    expect(downloads().length).toBe(before);
  });

  it('of a GGUF file is that file, or the only one', async () => {
    await fetchModel('hf:tiny/one-gguf@v1');
    expect(openModel('hf:tiny/one-gguf@v1').config.layers).toBe(2);
    await fetchModel('hf:tiny/ggufs/q/b.gguf');
    expect(openModel('hf:tiny/ggufs/q/b.gguf').config.layers).toBe(2);
    expect(readlinkSync(join(repo('tiny/ggufs'), 'snapshots', COMMIT, 'q', 'b.gguf'))).toMatch(
      /^\.\.\/\.\.\/\.\.\/blobs\//,
    );
    expect(existsSync(join(repo('tiny/ggufs'), 'snapshots', COMMIT, 'a.gguf'))).toBe(false);
  });

  it('whose fetch broke off goes on where it ended', async () => {
    hub.cutAfter = 5000;
    await expect(fetchModel('hf:tiny/one-gguf')).rejects.toThrow(/^hf:tiny\/one-gguf: [^\n]+$/);
    const blobs = join(repo('tiny/one-gguf'), 'blobs');
    const [unfinished, ...more] = readdirSync(blobs);
    expect(more).toEqual([]);
    expect(unfinished).toMatch(/^[0-9a-f]{64}\.incomplete$/);
    expect(readFileSync(join(blobs, unfinished!)).length).toBe(5000);
    expect(() => openModel('hf:tiny/one-gguf')).toThrow('it is not in the cache');
    await fetchModel('hf:tiny/one-gguf');
    expect(downloads().at(-1)).toContain('bytes=5000-');
    expect(openModel('hf:tiny/one-gguf').config.layers).toBe(2);
  });

  it('whose bytes are not what was promised is removed', async () => {
    hub.isLying = true;
    await expect(fetchModel('hf:tiny/one-gguf')).rejects.toThrow(/tiny\.gguf is not what the hub says it is/);
    expect(readdirSync(join(repo('tiny/one-gguf'), 'blobs'))).toEqual([]);
  });

  it('is taken from the cache where the hub may not be asked, or does not answer', async () => {
    vi.stubEnv('HF_HUB_OFFLINE', '1');
    await expect(fetchModel('hf:tiny/whole')).rejects.toThrow(/it is not in the cache .*HF_HUB_OFFLINE is set/);
    expect(hub.requests).toEqual([]);
    vi.stubEnv('HF_HUB_OFFLINE', '');
    await fetchModel('hf:tiny/whole');
    hub.requests.length = 0;
    vi.stubEnv('HF_HUB_OFFLINE', 'yes');
    await fetchModel('hf:tiny/whole');
    expect(hub.requests).toEqual([]);
    vi.stubEnv('HF_HUB_OFFLINE', '');
    vi.stubEnv('HF_ENDPOINT', 'http://127.0.0.1:9');
    const notices: string[] = [];
    await fetchModel('hf:tiny/whole', (notice) => notices.push(notice));
    expect(notices).toEqual([expect.stringMatching(/cannot be reached .*the cache's copy is used$/)]);
    expect(openModel('hf:tiny/whole').config.layers).toBe(2);
  });

  it('is fetched once by two that want it at the same time', async () => {
    await Promise.all([fetchModel('hf:tiny/one-gguf'), fetchModel('hf:tiny/one-gguf')]);
    expect(downloads().length).toBe(1);
  });

  it.each([
    ['hf:tiny', 200, /expected hf:owner\/name/],
    ['hf:tiny/absent', 200, /has no such model or revision/],
    ['hf:tiny/whole@v9', 200, /has no such model or revision/],
    ['hf:tiny/whole', 401, /set HF_TOKEN to a token that may read it/],
    ['hf:tiny/whole', 500, /answered with status 500/],
    ['hf:tiny/none', 200, /neither config\.json with safetensors nor a GGUF file/],
    ['hf:tiny/ggufs', 200, /several GGUF files: name one of a\.gguf, q\/b\.gguf/],
    ['hf:tiny/ggufs/c.gguf', 200, /the repository has no c\.gguf; its GGUF files: a\.gguf, q\/b\.gguf/],
    ['hf:tiny/climbing', 200, /neither config\.json with safetensors nor a GGUF file/],
  ] as const)('%s (status %i) is refused in one line', async (model, status, message) => {
    hub.status = status;
    await expect(fetchModel(model)).rejects.toThrow(message);
    await expect(fetchModel(model)).rejects.toThrow(
      expect.objectContaining({ code: 'BAD_CHECKPOINT', message: expect.not.stringContaining('\n') }),
    );
  });

  it('that cannot be kept is refused', async () => {
    mkdirSync(join(dir, 'hf'));
    writeFileSync(join(dir, 'hf', 'hub'), 'a file where a folder should be');
    await expect(fetchModel('hf:tiny/one-gguf')).rejects.toThrow(/^[^\n]+$/);
  });
});
