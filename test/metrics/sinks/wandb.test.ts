/** Weights & Biases sink: its file read back by another reader, and by the client's own where it is installed. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { logBytes, logRecords, wandbSink } from '../../../src/metrics/sinks/wandb.ts';

const root = mkdtempSync(join(tmpdir(), 'longplay-wandb-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
let folders = 0;
const newFolder = () => join(root, `run-${folders++}`);

const config = { seed: 1, learner: { learningRate: 0.002, estimator: { algorithm: 'grpo' } } };
let now = 1_700_000_000_500;
const open = (dir: string, entity?: string) =>
  wandbSink({ dir, project: 'study', entity, config, wallClock: () => (now += 1000) });

function fileOf(dir: string): string {
  const folder = join(dir, 'wandb');
  const [name, ...others] = readdirSync(folder);
  expect(others).toEqual([]);
  expect(name).toMatch(/^offline-run-\d{8}_\d{6}-[a-z\d]{8}$/);
  return join(folder, name!, `run-${name!.slice(-8)}.wandb`);
}

/** Steps of the rows in a file, by a search for their JSON. */
function stepsOf(path: string): number[] {
  return [...logRecords(readFileSync(path))].flatMap(({ content }) => {
    const found = /_step[^_\d]{3}(\d+)/s.exec(content.toString('latin1'));
    return found ? [Number(found[1])] : [];
  });
}

/** Places of the records that mark a run's end: field 18 behind a number of one byte. */
function exitsOf(path: string): number[] {
  const records = [...logRecords(readFileSync(path))];
  return records.flatMap(({ content }, i) => (content[2] === 0x92 && content[3] === 1 ? [i - records.length] : []));
}

describe('the log', () => {
  it('gives back records of any length, over the ends of blocks', () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.nat(40), fc.integer({ min: 32_740, max: 32_780 }), fc.constant(100_000)), {
          maxLength: 8,
        }),
        (lengths) => {
          let file = Buffer.alloc(7);
          for (const [i, length] of lengths.entries()) {
            file = Buffer.concat([file, logBytes(Buffer.alloc(length, i + 1), file.length)]);
          }
          const read = [...logRecords(file)];
          expect(read.map(({ content }) => content.length)).toEqual(lengths);
          expect(read.at(-1)?.behind ?? 7).toBe(file.length);
          const cut = [...logRecords(file.subarray(0, file.length - 1))];
          expect(cut).toHaveLength(Math.max(0, lengths.length - 1));
        },
      ),
    );
  });
});

describe('a run', () => {
  it('is one file, each row once, over a stop, a kill in the middle of a row, and a resume from before', () => {
    const dir = newFolder();
    const first = open(dir);
    first.write({ update: 1, success: 0.25 });
    first.write({ update: 2, success: 0.5 });
    first.close('stopped');
    first.close('stopped');
    expect(exitsOf(fileOf(dir))).toEqual([-1]);
    const second = open(dir);
    expect(exitsOf(fileOf(dir))).toEqual([]);
    second.write({ update: 2, success: 0.75 }); // played again: the file has it
    second.write({ update: 3, success: 0.75 });
    appendFileSync(fileOf(dir), Buffer.from([1, 2, 3, 4, 9, 0, 1, 5])); // killed
    const third = open(dir);
    third.write({ update: 4 });
    third.close();
    expect(exitsOf(fileOf(dir))).toEqual([-1]);
    expect(stepsOf(fileOf(dir))).toEqual([1, 2, 3, 4]);
  });

  it('of a rollout counts its rows', () => {
    const dir = newFolder();
    const sink = open(dir);
    sink.write({ success: 0.1 });
    sink.write({ success: 0.2 });
    sink.close();
    const more = open(dir);
    more.write({ success: 0.3 });
    more.close();
    expect(stepsOf(fileOf(dir))).toEqual([1, 2, 3]);
  });

  it('begins anew where a kill left an empty file, and refuses another one in one line', () => {
    const dir = newFolder();
    open(dir).close();
    writeFileSync(fileOf(dir), '');
    const sink = open(dir);
    sink.write({ update: 1 });
    sink.close();
    expect(stepsOf(fileOf(dir))).toEqual([1]);
    writeFileSync(fileOf(dir), 'something else');
    expect(() => open(dir)).toThrow(/expected an offline run of wandb; remove its folder/);
  });
});

const python = process.env.LONGPLAY_PYTHON ?? 'python3';
const reader = [
  'import sys, json, wandb',
  'wandb._assert_is_internal_process = True',
  'from wandb.sdk.internal.datastore import DataStore',
  'from wandb.proto.wandb_internal_pb2 import Record',
].join('\n');
const has = spawnSync(python, ['-c', reader]).status === 0;
if (!has) console.log(`skipped: ${python} has no wandb with a datastore reader (below 0.20), so it reads nothing`);

describe.skipIf(!has)('the client’s own reader', () => {
  it('reads the records, with no field that its definitions do not know', () => {
    const dir = newFolder();
    const sink = open(dir, 'team');
    sink.write({ update: 1, success: 0.25, successByLabel: { 'depth 1': 0.5 } });
    sink.write({
      update: 2,
      actorDepth: Object.fromEntries(Array.from({ length: 4000 }, (_, i) => [`/actor ${i}`, i])),
    });
    sink.close('stopped');
    const again = open(dir, 'team');
    again.write({ update: 3, success: 1 });
    again.close('finished');
    const script = `${reader}
store = DataStore(); store.open_for_scan(sys.argv[1]); out = []
while True:
  data = store.scan_data()
  if data is None: break
  r = Record(); r.ParseFromString(data)
  size = r.ByteSize(); r.DiscardUnknownFields(); assert r.ByteSize() == size, r
  kind = r.WhichOneof('record_type')
  one = [r.num, kind]
  if kind == 'run': one += [r.run.project, r.run.entity, r.run.display_name, r.run.start_time.ToJsonString(), {i.key: json.loads(i.value_json) for i in r.run.config.update}]
  if kind == 'history': one += [r.history.step.num, len(r.history.item), {i.key: json.loads(i.value_json) for i in r.history.item if i.key.startswith('suc')}]
  if kind == 'exit': one += [r.exit.exit_code]
  if kind == 'summary': one += [{i.key: json.loads(i.value_json) for i in r.summary.update}]
  out.append(one)
print(json.dumps(out))`;
    const { stdout, stderr } = spawnSync(python, ['-c', script, fileOf(dir)], { encoding: 'utf8' });
    expect(stderr).toBe('');
    expect(JSON.parse(stdout)).toEqual([
      [1, 'header'],
      [
        2,
        'run',
        'study',
        'team',
        dir.slice(root.length + 1),
        expect.stringMatching(/^2023-11-14T/),
        { seed: '1', 'learner.learningRate': '0.002', 'learner.estimator.algorithm': 'grpo' },
      ],
      [3, 'history', 1, 6, { success: 0.25, 'successByLabel/depth 1': 0.5 }],
      [4, 'history', 2, 4004, {}],
      [5, 'summary', expect.anything()],
      [6, 'history', 3, 5, { success: 1 }],
      [7, 'summary', { update: 3, success: 1 }],
      [8, 'exit', 0],
    ]);
  });
});

const newEnough = "import sys, wandb; sys.exit(tuple(map(int, wandb.__version__.split('.')[:2])) < (0, 22))";
const canSync = spawnSync(python, ['-c', newEnough]).status === 0;
if (!canSync) console.log(`skipped: ${python} has no wandb of version 0.22 or later, so it uploads nothing`);

describe.skipIf(!canSync)('the client’s own upload', () => {
  it('sends each row of a resumed run once, its configuration and its end, to a stand-in of the service', async () => {
    const dir = newFolder();
    const first = open(dir, 'team');
    first.write({ update: 1, success: 0.25 });
    first.close('stopped');
    const second = open(dir, 'team');
    second.write({ update: 2, success: 0.5, successByLabel: { 'depth 1': 1 } });
    second.close('finished');
    const bodies: string[] = [];
    const entity = { id: 'e', name: 'team' };
    const bucket = { id: 'b', name: 'r', displayName: 'd', config: '{}', project: { id: 'p', name: 'study', entity } };
    const server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk) => chunks.push(chunk));
      request.on('end', () => {
        const raw = Buffer.concat(chunks);
        const text = (request.headers['content-encoding'] === 'gzip' ? gunzipSync(raw) : raw).toString();
        bodies.push(text);
        const isUpsert = request.url!.endsWith('/graphql') && text.includes('upsertBucket');
        const answer = isUpsert ? { data: { upsertBucket: { bucket, inserted: true } } } : { data: {}, limits: {} };
        response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
      });
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    const env = {
      WANDB_BASE_URL: `http://127.0.0.1:${port}`,
      WANDB_API_KEY: 'a'.repeat(40),
      WANDB_ERROR_REPORTING: 'false',
    };
    const client = spawn(python, ['-m', 'wandb', 'beta', 'sync', join(dir, 'wandb')], {
      env: { ...process.env, ...env, HOME: root },
      stdio: 'ignore',
    });
    const [code] = await once(client, 'exit');
    server.close();
    server.closeAllConnections();
    expect(code).toBe(0);
    const history = bodies
      .flatMap((text) => JSON.parse(text).files?.['wandb-history.jsonl']?.content ?? [])
      .map((line: string) => JSON.parse(line));
    expect(history).toMatchObject([
      { _step: 1, success: 0.25 },
      { _step: 2, success: 0.5, 'successByLabel/depth 1': 1 },
    ]);
    expect(history).toHaveLength(2);
    expect(bodies.some((text) => text.includes('learner.learningRate'))).toBe(true);
    expect(bodies.map((text) => JSON.parse(text)).find(({ complete }) => complete)).toMatchObject({ exitcode: 0 });
  });
});
