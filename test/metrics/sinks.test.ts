/** Sinks: TensorBoard events read back by another decoder, Prometheus text by its format's rules. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import { afterAll, describe, expect, it } from 'vitest';
import { checkRunConfig } from '../../src/config/load.ts';
import type { RunConfigInput } from '../../src/config/run-config.ts';
import { type MetricsRow, metricTable } from '../../src/metrics/metric-table.ts';
import { openSinks } from '../../src/metrics/sinks/open.ts';
import { prometheusSink, prometheusText } from '../../src/metrics/sinks/prometheus.ts';
import { crc32c, maskCrc, tensorboardSink } from '../../src/metrics/sinks/tensorboard.ts';
import { readExposition } from '../support/exposition.ts';

const configOf = (metrics: RunConfigInput['metrics']) =>
  checkRunConfig(
    { env: { id: 'babyai' }, horizon: { type: 'fixed', rounds: 4 }, stop: { updates: 1 }, metrics },
    'test',
  );

const dir = mkdtempSync(join(tmpdir(), 'longplay-sinks-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const rows: MetricsRow[] = [
  { update: 1, success: 0.25, successByLabel: { 'depth 1': 0.5 } },
  { update: 300, success: 0.5, loss: Number.NaN },
];

describe('TensorBoard events', () => {
  const folder = join(dir, 'tensorboard');
  const sink = tensorboardSink(folder, () => 1_700_000_000_123);
  for (const row of rows) sink.write(row);
  sink.close();
  sink.close();

  it('have the published CRC-32C', () => {
    expect(crc32c(Buffer.from('123456789'))).toBe(0xe3069283); // RFC 3720's check value
    expect(crc32c(new Uint8Array(32))).toBe(0x8a9136aa);
  });

  it('are records whose events another decoder reads', () => {
    const events = records(readFileSync(join(folder, readdirSync(folder)[0]!))).map(decode);
    expect(events[0]).toMatchObject({ fileVersion: 'brain.Event:2', wallTime: 1_700_000_000.123 });
    expect(events.slice(1).map(({ step, values }) => ({ step, values }))).toEqual([
      { step: 1, values: { update: 1, success: 0.25, 'successByLabel/depth 1': 0.5 } },
      { step: 300, values: { update: 300, success: 0.5 } },
    ]);
  });

  const reader = 'from tensorboard.backend.event_processing.event_accumulator import EventAccumulator as E';
  const has = spawnSync('python3', ['-c', reader]).status === 0;
  if (!has) console.log('skipped: no Python with tensorboard, so its own reader is not compared');
  it.skipIf(!has)('are read by TensorBoard’s own reader', () => {
    const script = `${reader}\nimport sys\ne = E(sys.argv[1])\ne.Reload()\nprint([s.value for s in e.Scalars('success')])`;
    expect(spawnSync('python3', ['-c', script, folder], { encoding: 'utf8' }).stdout.trim()).toBe('[0.25, 0.5]');
  });
});

describe('Prometheus', () => {
  it('text follows the exposition format, totals as counters and times in seconds', () => {
    const row = { ...rows[0]!, elapsed: 1.5, envSteps: 40, actorRestarts: { '/rollout': 2 }, stepsPerSecond: 1e30 };
    const families = readExposition(prometheusText({ ...row, time: { env: 1, 'a"b\\c\nd': 0 } }));
    const metricOf = (name: string) => ({ type: families.get(name)?.type, samples: families.get(name)?.samples });
    const one = (name: string, type: string, value: number, labels = {}) =>
      expect(metricOf(name)).toEqual({ type, samples: [{ name, labels, value }] });
    one('longplay_success', 'gauge', 0.25);
    one('longplay_success_by_label', 'gauge', 0.5, { label: 'depth 1' });
    one('longplay_elapsed_seconds_total', 'counter', 1.5);
    one('longplay_env_steps_total', 'counter', 40);
    one('longplay_actor_restarts_total', 'counter', 2, { actor: '/rollout' });
    one('longplay_steps_per_second', 'gauge', 1e30);
    expect(families.get('longplay_time')!.samples[1]).toMatchObject({ labels: { part: 'a"b\\c\nd' }, value: 0 });
  });

  it('names of all metrics follow it', () => {
    const all = metricTable.map((metric) => [metric.name, 'by' in metric ? { key: 1 } : 1]);
    expect(readExposition(prometheusText(Object.fromEntries(all))).size).toBe(metricTable.length);
  });

  const parser = 'from prometheus_client.parser import text_string_to_metric_families as parse';
  const has = spawnSync('python3', ['-c', parser]).status === 0;
  if (!has) console.log('skipped: no Python with prometheus_client, so its own parser is not compared');
  it.skipIf(!has)('text is read by Prometheus’ own client library', () => {
    const text = prometheusText({ ...rows[0]!, time: { env: 1, 'a"b\\c\nd': 0 } });
    const script = `${parser}\nimport sys, json\nprint(json.dumps([[s.name, s.labels, s.value] for f in parse(sys.stdin.read()) for s in f.samples]))`;
    const { stdout } = spawnSync('python3', ['-c', script], { input: text, encoding: 'utf8' });
    expect(JSON.parse(stdout)).toEqual([
      ['longplay_update', {}, 1],
      ['longplay_success', {}, 0.25],
      ['longplay_success_by_label', { label: 'depth 1' }, 0.5],
      ['longplay_time', { part: 'env' }, 1],
      ['longplay_time', { part: 'a"b\\c\nd' }, 0],
    ]);
  });

  it('is served on loopback until the sink closes', async () => {
    const sink = prometheusSink(0);
    const { port } = await sink.ready;
    sink.write(rows[0]!);
    const response = await fetch(`http://127.0.0.1:${port}/metrics`);
    expect(response.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/);
    expect(readExposition(await response.text()).get('longplay_update')?.samples).toMatchObject([{ value: 1 }]);
    expect((await fetch(`http://127.0.0.1:${port}/`)).status).toBe(404);
    await expect(openSinks(configOf({ tensorboard: false, prometheusPort: port }), dir, () => {})).rejects.toThrow(
      /another port/,
    );
    sink.close();
    await expect(fetch(`http://127.0.0.1:${port}/metrics`)).rejects.toThrow();
  });
});

function records(file: Buffer): Buffer[] {
  const found: Buffer[] = [];
  for (let at = 0; at < file.length; ) {
    const length = Number(file.readBigUInt64LE(at));
    expect(file.readUInt32LE(at + 8)).toBe(maskCrc(file.subarray(at, at + 8)));
    const bytes = file.subarray(at + 12, at + 12 + length);
    expect(file.readUInt32LE(at + 12 + length)).toBe(maskCrc(bytes));
    found.push(bytes);
    at += 16 + length;
  }
  return found;
}

function decode(bytes: Uint8Array) {
  const reader = new BinaryReader(bytes);
  const event = { wallTime: 0, step: 0, fileVersion: '', values: {} as Record<string, number> };
  while (reader.pos < reader.len) {
    const [field, type] = reader.tag();
    if (field === 1) event.wallTime = reader.double();
    else if (field === 2) event.step = Number(reader.int64());
    else if (field === 3) event.fileVersion = reader.string();
    else if (field === 5) {
      const summary = new BinaryReader(reader.bytes());
      while (summary.pos < summary.len) {
        expect(summary.tag()).toEqual([1, WireType.LengthDelimited]);
        const value = new BinaryReader(summary.bytes());
        expect(value.tag()).toEqual([1, WireType.LengthDelimited]);
        const tag = value.string();
        expect(value.tag()).toEqual([2, WireType.Bit32]);
        event.values[tag] = value.float();
      }
    } else reader.skip(type);
  }
  return event;
}
