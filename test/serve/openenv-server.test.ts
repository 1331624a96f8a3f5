/** Clients of the environment server's WebSockets that do not read their answers: bounded, and disconnected. */
import { afterEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { SimulatedClock, systemClock } from '../../src/core/clock.ts';
import { type EnvServer, type EnvServerOptions, serveEnvs } from '../../src/serve/env-server.ts';
import type { Episodes } from '../../src/serve/episodes.ts';
import { createEnv } from '../support/faulty-env.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const MIB = 2 ** 20;
const observation = 'x'.repeat(MIB);

/** Episodes whose answers are large, and whose actions are never answered. */
class LargeEpisodes implements Episodes {
  readonly healthy = true;
  readonly running = new Set<number>();
  /** Episodes opened so far. */
  opened = 0;

  get count(): number {
    return this.running.size;
  }

  async open() {
    const episode = this.opened++;
    this.running.add(episode);
    return { episode, turn: 0, step: { kind: 'first', observation }, actions: [] } as const;
  }

  step(): Promise<never> {
    return new Promise(() => {});
  }

  close(episode: number): void {
    this.running.delete(episode);
  }
}

/** A server with one client, connected. */
async function connected(sendMs: number, options: Partial<EnvServerOptions> = {}) {
  const episodes = new LargeEpisodes();
  const worlds = [{ env: createEnv(), world: {} }];
  const server: EnvServer = await serveEnvs({ worlds, episodes, clock: systemClock, port: 0, sendMs, ...options });
  closing.push(() => server.close());
  const client = new WebSocket(`${server.url.replace('http', 'ws')}/openenv/faulty/ws`);
  closing.push(() => client.terminate());
  client.on('error', () => {});
  await new Promise((resolve) => client.once('open', resolve));
  const closed = new Promise<void>((resolve) => client.once('close', () => resolve()));
  return { server, episodes, client, closed };
}

const until = async (done: () => boolean) => {
  while (!done()) await new Promise((resolve) => setTimeout(resolve, 5));
};
const reset = JSON.stringify({ type: 'reset', data: { index: 0 } });

describe('a client of a WebSocket', () => {
  it('that reads is answered one message after the other', async () => {
    const { client, episodes } = await connected(60_000);
    let received = 0;
    client.on('message', (data: Buffer) => {
      expect(data.length).toBeGreaterThan(MIB);
      received++;
    });
    for (let n = 0; n < 5; n++) client.send(reset);
    await until(() => received === 5);
    expect(episodes).toMatchObject({ opened: 5, count: 1 });
  });

  it('that reads nothing is answered no further, and let go with its episode', async () => {
    const { server, client, episodes } = await connected(100);
    client.pause();
    for (let n = 0; n < 60; n++) client.send(reset);
    await until(() => server.sessions === 1);
    await until(() => server.sessions === 0);
    expect(episodes.count).toBe(0);
    expect(episodes.opened).toBeLessThan(40); // what the system holds on its way, and one
  });

  it('that reads nothing but sends pings is disconnected', async () => {
    const { server, client, closed } = await connected(60_000);
    client.pause();
    const payload = Buffer.alloc(125);
    let open = true;
    void closed.then(() => (open = false));
    client.on('error', () => (open = false));
    while (open && server.sessions > 0) {
      for (let n = 0; n < 1000; n++) client.ping(payload);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await until(() => server.sessions === 0);
  });

  it('that neither reads nor closes is ended when it is idle, with its episode', async () => {
    const clock = new SimulatedClock();
    const { server, client, episodes } = await connected(60_000, { clock, idleMs: 60_000 });
    const answered = new Promise((resolve) => client.once('message', resolve));
    client.send(reset);
    await answered;
    expect(episodes.count).toBe(1);
    client.pause(); // the close of the server is never answered
    clock.advance(70_000);
    expect([server.sessions, episodes.count]).toEqual([0, 0]);
  });

  it('is not read any further while a megabyte of its messages waits for answers', async () => {
    const { client } = await connected(60_000);
    const answered = new Promise((resolve) => client.once('message', resolve));
    client.send(reset);
    await answered;
    const step = JSON.stringify({ type: 'step', data: { action: 'x'.repeat(MIB / 2) } });
    for (let n = 0; n < 60; n++) client.send(step);
    let left = client.bufferedAmount;
    for (let same = 0; same < 40; ) {
      await new Promise((resolve) => setTimeout(resolve, 5));
      same = client.bufferedAmount === left ? same + 1 : 0;
      left = client.bufferedAmount;
    }
    expect(left).toBeGreaterThan(10 * MIB); // of 30
  });
});
