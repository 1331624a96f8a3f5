import fc from 'fast-check';
import { expect, it } from 'vitest';
import { excerpt, HttpClient } from '../../src/remote/http-client.ts';
import { readCompletion } from '../../src/remote/policy/openai-client.ts';
import { listen } from '../../src/serve/http-server.ts';

it('quotes a server on one line, without what a terminal would obey', () => {
  expect(excerpt('<html>\n  <h1>\u001b[31mError\u0007</h1>\r\n', 300)).toBe('<html> <h1> [31mError </h1>');
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 40 }), fc.nat(30), (text, length) => {
      const quoted = excerpt(text, length);
      expect(quoted.length).toBeLessThanOrEqual(length);
      expect(quoted).not.toMatch(/\p{Cc}|\p{Zl}|\p{Zp}/u);
    }),
  );
});

it('strikes its key out of whatever a server echoes', async () => {
  const server = await listen(
    ({ path }) => ({ status: path === '/bad' ? 400 : 200, body: '{"you sent":"sk-12345678"}' }),
    {
      port: 0,
    },
  );
  const client = new HttpClient({ baseUrl: server.url, headers: { Authorization: 'Bearer sk-12345678' } });
  try {
    expect((await client.send('GET', 'good', undefined, 5000)).body).toBe('{"you sent":"[key]"}');
    await expect(client.send('GET', 'bad', undefined, 5000)).rejects.toThrow(/HTTP 400 .*\[key\]/);
    await expect(client.send('GET', 'bad', undefined, 5000)).rejects.not.toThrow(/12345678/);
  } finally {
    client.close();
    await server.close();
  }
});

it('takes no URL with a password, and does not say it', () => {
  const make = () => new HttpClient({ baseUrl: 'http://me:secret@127.0.0.1:1/v1' });
  expect(make).toThrow(/no name or password/);
  expect(make).not.toThrow(/secret/);
});

it.each(['1e999', '-1e999', '-1e300'])('takes a log-probability of %s for a malformed answer', (logprob) => {
  const answer = JSON.parse(`{"choices":[{"text":"a","token_ids":[1],"logprobs":{"token_logprobs":[${logprob}]}}]}`);
  expect(() => readCompletion('completions', answer)).toThrow(/not finite/);
});
