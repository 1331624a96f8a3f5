import { homedir } from 'node:os';
import { describe, expect, it } from 'vitest';
import { checkRunConfig } from '../../src/config/load.ts';
import { absolutePath, resolvePolicyPaths } from '../../src/config/paths.ts';

/** Checked policy of a configuration with these keys. */
function policyOf(policy: object) {
  const env = { id: 'textcraft' };
  const raw = { env, horizon: { type: 'fixed', rounds: 3 }, stop: { updates: 1 }, policy };
  return checkRunConfig(raw, 'test').policy;
}

describe('paths in a configuration', () => {
  it('start from a folder, from the root, or from home', () => {
    expect(absolutePath('models/x', '/here')).toBe('/here/models/x');
    expect(absolutePath('../x', '/here/runs')).toBe('/here/x');
    expect(absolutePath('/models/x', '/here')).toBe('/models/x');
    expect(absolutePath('~/x', '/here')).toBe(`${homedir()}/x`);
    expect(absolutePath('~', '/here')).toBe(homedir());
    expect(absolutePath('~x/y', '/here')).toBe('/here/~x/y');
  });

  it('are absolute in a policy: of its model, its beginning and its adapter', () => {
    const policy = policyOf({ kind: 'checkpoint', path: 'm', init: '~/run', adapter: { init: './a' } });
    expect(resolvePolicyPaths(policy, '/here')).toMatchObject({
      path: '/here/m',
      init: `${homedir()}/run`,
      adapter: { init: '/here/a', rank: 16 },
    });
    const none = policyOf({});
    expect(resolvePolicyPaths(none, '/here')).toEqual(none);
  });

  it('leave a server the name under which it knows its model', () => {
    const server = (more: object) =>
      resolvePolicyPaths(policyOf({ kind: 'server', path: 'models/m', ...more }), '/here');
    expect(server({})).toMatchObject({ path: '/here/models/m', server: { model: 'models/m' } });
    expect(server({ server: { model: 'mine' } })).toMatchObject({ server: { model: 'mine' } });
    expect(resolvePolicyPaths(policyOf({ kind: 'checkpoint', path: 'm' }), '/here').server.model).toBeUndefined();
  });
});
