/** Configuration as servers of experiments get it: nothing that is a secret. */
import { describe, expect, it } from 'vitest';
import { checkRunConfig } from '../../../src/config/load.ts';
import { redact } from '../../../src/core/secrets.ts';
import { flattenConfig } from '../../../src/metrics/sinks/flat-config.ts';
import { openSinks } from '../../../src/metrics/sinks/open.ts';
import { closeSinks } from '../../../src/metrics/sinks/sink.ts';
import { inFolder } from '../../support/toy-run.ts';

const base = { env: { id: 'babyai' }, horizon: { type: 'fixed', rounds: 4 }, stop: { updates: 1 } };

describe('a flat configuration', () => {
  it('shows no key, no variable of a server and no query of a URL, in lists neither', () => {
    const options = {
      env: { MODE: 'sk-literal' },
      apiKey: 'sk-literal',
      headers: { 'x-api-key': 'sk-literal', tokens: 5 },
      url: 'https://host/mcp?key=sk-literal',
      args: ['--url', 'see "https://host/a?b=sk-literal" and more?', 3],
      servers: [{ password: { deep: 'sk-literal' } }],
    };
    expect(Object.fromEntries(flattenConfig({ env: { options }, policy: { apiKeyEnv: 'MY_KEY' } }))).toEqual({
      'env.options.env.MODE': '[key]',
      'env.options.apiKey': '[key]',
      'env.options.headers.x-api-key': '[key]',
      'env.options.headers.tokens': '5',
      'env.options.url': 'https://host/mcp',
      'env.options.args': '["--url","see \\"https://host/a\\" and more?",3]',
      'env.options.servers': '[{"password":{"deep":"[key]"}}]',
      'policy.apiKeyEnv': 'MY_KEY',
    });
  });

  it('shows all of one without secrets', () => {
    const shown = flattenConfig(checkRunConfig(base, 'test'));
    expect(shown.length).toBeGreaterThan(50);
    expect(shown.filter(([, value]) => value.includes('[key]'))).toEqual([]);
  });
});

it('a header of OpenTelemetry is struck out by itself', async () => {
  process.env.TEST_OTLP_HEADERS = 'authorization=Bearer%20of-the-receiver,x-scope=another-value';
  try {
    await inFolder(async (dir) => {
      const metrics = { tensorboard: false, otel: { url: 'http://127.0.0.1:1', headersEnv: 'TEST_OTLP_HEADERS' } };
      const sinks = await openSinks(checkRunConfig({ ...base, metrics }, 'test'), dir, () => {});
      await closeSinks(sinks, 'finished', () => {});
    });
  } finally {
    delete process.env.TEST_OTLP_HEADERS;
  }
  expect(redact('401: Bearer of-the-receiver, of-the-receiver, another-value')).toBe('401: [key], [key], [key]');
});
