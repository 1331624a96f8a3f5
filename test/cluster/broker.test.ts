import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { checkNatsUrl, connectNats } from '../../src/cluster/nats/connect.ts';
import { systemClock } from '../../src/core/clock.ts';
import { Rng } from '../../src/core/rng.ts';
import { MemoryServer } from '../support/memory-broker.ts';
import { noServer, startNats } from '../support/nats-server.ts';
import { temporaryFolder } from '../support/small-run.ts';
import { testBrokerLaws } from './broker-laws.ts';

const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

testBrokerLaws('the twin in memory', async () => {
  const server = new MemoryServer(systemClock, Rng.fromSeed(1), 300);
  return {
    connect: async () => server.connect(),
    leaseMs: 300,
    sleep,
    restart: async () => server.restart(50, false),
    close: async () => {},
  };
});

describe.skipIf(noServer)('with a server', () => {
  testBrokerLaws('NATS', async () => {
    const folder = temporaryFolder('nats');
    const server = await startNats(join(folder, 'store'));
    return {
      connect: () => connectNats({ url: server.url, run: 'laws', leaseMs: 2000 }),
      leaseMs: 2000,
      sleep,
      restart: async () => {
        await server.kill();
        await server.start();
      },
      close: async () => {
        await server.kill();
        rmSync(folder, { recursive: true, force: true });
      },
    };
  });

  it('runs of different names share a server and see nothing of each other', async () => {
    const folder = temporaryFolder('nats');
    const server = await startNats(join(folder, 'store'));
    try {
      const [a, b] = [
        await connectNats({ url: server.url, run: 'a' }),
        await connectNats({ url: server.url, run: 'b' }),
      ];
      await a.prepare();
      await b.prepare();
      await a.tickets.put('1', Uint8Array.of(1));
      expect((await b.tickets.list()).size).toBe(0);
      await a.close();
      await b.close();
    } finally {
      await server.kill();
      rmSync(folder, { recursive: true, force: true });
    }
  }, 30_000);
});

describe('an address', () => {
  it('is that of a NATS server on this machine', () => {
    expect(checkNatsUrl('nats://127.0.0.1:4222').port).toBe('4222');
    expect(checkNatsUrl('nats://[::1]:4222').hostname).toBe('[::1]');
    expect(() => checkNatsUrl('nats://me:word@127.0.0.1')).toThrow(
      /\[credentials\]@127.0.0.1: a key is not part of the address/,
    );
    expect(() => checkNatsUrl('http://localhost')).toThrow(/expected the address of a NATS server/);
    expect(() => checkNatsUrl('nats://10.0.0.1:4222')).toThrow(/is another machine: that takes TLS and a key/);
    expect(checkNatsUrl('nats://10.0.0.1:4222', true).hostname).toBe('10.0.0.1');
    expect(() => checkNatsUrl('nats://127.evil.example:4222')).toThrow(/another machine/);
  });

  it('without a server behind it is refused within seconds', async () => {
    await expect(connectNats({ url: 'nats://127.0.0.1:9', run: 'x' })).rejects.toThrow(
      /no NATS server answers at 127.0.0.1:9/,
    );
    await expect(connectNats({ url: 'nats://127.0.0.1:9', run: 'a b' })).rejects.toThrow(/letters, digits/);
  }, 20_000);
});
