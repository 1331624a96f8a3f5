/** Requests go through the proxy that the environment names, and to this machine directly. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { HttpClient } from '../../src/http/http-client.ts';
import { openProxyAgent } from '../../src/http/proxy.ts';

const NAMES = [
  'HTTP_PROXY',
  'HTTPS_PROXY',
  'NO_PROXY',
  'ALL_PROXY',
  'http_proxy',
  'https_proxy',
  'no_proxy',
  'all_proxy',
];
const before = Object.fromEntries(NAMES.map((name) => [name, process.env[name]]));
const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.closeAllConnections();
  for (const name of NAMES) {
    if (before[name] === undefined) delete process.env[name];
    else process.env[name] = before[name];
  }
});

async function listening(server: Server): Promise<number> {
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

function setProxy(variables: Record<string, string>): void {
  for (const name of NAMES) delete process.env[name];
  Object.assign(process.env, variables);
}

it('an http server is asked through HTTP_PROXY, with the whole URL', async () => {
  const seen: string[] = [];
  const port = await listening(
    createServer((request, response) => {
      seen.push(request.url!);
      response.end('{"data": []}');
    }),
  );
  setProxy({ HTTP_PROXY: `http://127.0.0.1:${port}` });
  const client = new HttpClient({ baseUrl: 'http://models.example/v1' });
  expect((await client.send('GET', 'models', undefined, 5000)).body).toBe('{"data": []}');
  expect(seen).toEqual(['http://models.example/v1/models']);
  client.close();
});

it('an https server is reached by a tunnel of HTTPS_PROXY', async () => {
  const tunnels: string[] = [];
  const proxy = createServer();
  proxy.on('connect', (request, socket) => {
    tunnels.push(request.url!);
    socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n');
  });
  const port = await listening(proxy);
  setProxy({ HTTPS_PROXY: `http://127.0.0.1:${port}` });
  const client = new HttpClient({ baseUrl: 'https://models.example/v1' });
  await expect(client.send('GET', 'models', undefined, 5000)).rejects.toThrow();
  expect(tunnels).toEqual(['models.example:443']);
  client.close();
});

it('hosts of NO_PROXY and this machine are reached directly', () => {
  setProxy({ ALL_PROXY: 'http://127.0.0.1:9', NO_PROXY: 'inside.example' });
  for (const url of [
    'http://inside.example/v1',
    'http://127.0.0.1:8000/v1',
    'http://localhost/v1',
    'http://[::1]:8000/v1',
  ]) {
    expect(openProxyAgent(new URL(url), {}), url).toBeUndefined();
  }
  expect(openProxyAgent(new URL('https://outside.example/v1'), {})).toBeDefined();
});

it('a proxy that is none is refused, its password struck out', () => {
  setProxy({ HTTPS_PROXY: 'socks5://me:secret@proxy.example:1080' });
  const open = () => new HttpClient({ baseUrl: 'https://models.example/v1' });
  expect(open).toThrow(/proxy for models\.example is .*expected http:\/\/host:port/);
  expect(open).not.toThrow(/secret/);
});
