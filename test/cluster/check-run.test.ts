/** Runs that workers cannot play for: refused before anything starts. */
import { expect, it } from 'vitest';
import { MAX_WEIGHTS_BYTES } from '../../src/cluster/broker.ts';
import { checkClusterRun } from '../../src/cluster/check-run.ts';
import { weightSpecs } from '../../src/compute/model/parameters.ts';
import { setUpLocalPolicy } from '../../src/policy/setup.ts';
import { worldUrl } from '../../src/run/find-world.ts';
import { localConfigOf } from '../../src/run/worker.ts';
import { localUrl } from '../../src/runtime/module-url.ts';
import { loadWorld } from '../../src/world/open-world.ts';
import { smallConfig } from '../support/small-run.ts';

const config = smallConfig();
const world = await loadWorld(localUrl(worldUrl(config.env.id)), config.env.id);
const { model } = setUpLocalPolicy<never, never>(config, world.view, undefined);

it('refuses an MCP server that the configuration describes, since workers would start it', () => {
  const check = (id: string, options = {}) =>
    checkClusterRun({ config: { ...config, env: { id, options } }, mode: 'async' }, {}, model);
  expect(() => check('mcp', { command: ['node', 'x.mjs'] })).toThrow('write env.options into one');
  expect(() => check('mcp:/a.yaml', { command: ['node', 'x.mjs'] })).toThrow('write env.options into one');
  expect(() => check('mcp:/a.yaml')).not.toThrow();
});

it('refuses a run of several worlds, on both sides', () => {
  const horizon = { type: 'fixed', rounds: 3 } as const;
  const worlds = ['a', 'b'].map((id) => ({ name: id, env: { id, options: {} }, horizon, tasks: config.tasks }));
  const several = { ...config, env: { id: 'worlds', options: {} }, worlds };
  const message = /it takes a run of one world, and this one has several \(a, b\)/;
  expect(() => checkClusterRun({ config: several, mode: 'async' }, {}, model)).toThrow(message);
  const announcement = { config: several, identity: { protocol: 1, longplay: '1' } };
  const announced = announcement as unknown as Parameters<typeof localConfigOf>[0];
  expect(() => localConfigOf(announced, { run: 'a', url: 'nats://a' })).toThrow(message);
});

it('starts nothing here that an announcement alone names', () => {
  const localConfig = (env: object, world: string | undefined, own?: string) => {
    const identity = { protocol: 1, longplay: '1', world };
    const announcement = { config: { ...config, env }, identity } as unknown as Parameters<typeof localConfigOf>[0];
    return localConfigOf(announcement, { run: 'a', url: 'nats://a', ...(own === undefined ? {} : { env: own }) });
  };
  const command = { command: ['node', 'x.mjs'] };
  for (const world of [undefined, 'abc']) {
    expect(() => localConfig({ id: 'mcp', options: command }, world, '/mine.yaml')).toThrow('names code to start here');
    expect(() => localConfig({ id: 'mcp:/a.yaml', options: command }, world, 'mcp:/b.yaml')).toThrow(
      'names code to start',
    );
  }
  for (const env of [
    { id: 'agent', options: { command: ['sh', '-c', 'x'] } },
    { id: 'agent', options: { module: '/theirs.mjs' } },
    { id: 'agentgym', options: { world: '/theirs.mjs' } },
  ]) {
    expect(() => localConfig(env, undefined)).toThrow('names code to start here');
    const named = { ...config, env: { ...config.env, ...env } };
    expect(() => checkClusterRun({ config: named, mode: 'async' }, {}, undefined)).toThrow('workers start no agent');
  }
  expect(() => localConfig({ id: 'mcp:/a.yaml' }, undefined)).toThrow('names code to start here');
  expect(() => localConfig({ id: '/theirs.mjs' }, undefined)).toThrow('names code to start here');
  expect(localConfig({ id: 'mcp:/a.yaml' }, 'abc', 'mcp:/b.yaml').env.id).toBe('mcp:/b.yaml');
  expect(localConfig({ id: '/theirs.mjs' }, 'abc', '/mine.mjs').env.id).toBe('/mine.mjs');
});

it('refuses weights that are larger than the broker carries, and names both sizes and the way out', () => {
  const check = (vocabSize: number, kind: 'local' | 'server' = 'local') =>
    checkClusterRun(
      { config: kind === 'local' ? config : { ...config, policy: { ...config.policy, kind } }, mode: 'async' },
      {},
      { ...model, vocabSize },
    );
  const bytesOf = (vocabSize: number) =>
    weightSpecs({ ...model, vocabSize }).reduce((sum, { shape }) => sum + 4 * shape.reduce((a, b) => a * b, 1), 0);
  const perToken = bytesOf(1001) - bytesOf(1000);
  const most = Math.floor((MAX_WEIGHTS_BYTES - bytesOf(0)) / perToken);
  expect(() => check(most)).not.toThrow();
  expect(() => check(most + 1)).toThrow(/201 MiB, expected at most 200 MiB; use policy\.kind: server, or a smaller/);
  expect(() => check(2 * most)).toThrow(/the weights of this model have 400 MiB/);
  expect(() => check(2 * most, 'server')).not.toThrow();
});
