/** Memory of the gateway: flat over episodes, calls after the end, and the calls of one episode. */
import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { ask, bodyOf, DIALECTS, type Turn, textReply } from './lab.ts';
import { countSockets, openEpisode, question, start, until } from './open.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;
const isLong = process.env.LONGPLAY_LONG === '1';

describe('memory', () => {
  const heapAfter = async () => {
    for (let i = 0; i < 4; i++) {
      await sleep(5);
      collectGarbage();
    }
    return process.memoryUsage().heapUsed / 2 ** 20;
  };

  it(`is flat over ${isLong ? 2000 : 200} episodes, and no socket is left`, async () => {
    const gateway = await start();
    const episodes = isLong ? 2000 : 200;
    const play = async (count: number) => {
      for (let i = 0; i < count; i++) {
        const agent = new Agent({ keepAlive: true });
        const episode = gateway.open();
        const turns: Turn[] = [{ user: 'x'.repeat(100_000) }];
        for (let n = 0; n < 4; n++) {
          const dialect = DIALECTS[(i + n) % 3]!;
          const sent = ask(episode, dialect, bodyOf(dialect, turns, { stream: n % 2 === 0 }), { agent });
          const call = await episode.next();
          if (n === 3) break; // it ends in the middle of a call
          expect(call.parent).toBe(n === 0 ? null : n - 1);
          await call.answer(textReply(`answer ${n}`));
          await sent.received;
          turns.push({ text: `answer ${n}` }, { user: `more ${n}` });
        }
        episode.close();
        agent.destroy();
      }
    };
    await play(episodes / 4);
    const before = await heapAfter();
    await play(episodes);
    expect((await heapAfter()) - before).toBeLessThan(4 + episodes / 400); // their texts are 20 MB in 200
    await until(() => countSockets() === 0);
  });

  it(`is flat over ${isLong ? 10_000 : 1000} calls after the end`, async () => {
    const episode = await openEpisode();
    episode.close();
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const late = async (count: number) => {
      for (let i = 0; i < count; i++) {
        const { status } = await ask(episode, 'chat', bodyOf('chat', question('x'.repeat(10_000))), { agent }).received;
        expect(status).toBe(403);
      }
    };
    await late(200);
    const before = await heapAfter();
    await late(isLong ? 10_000 : 1000);
    expect((await heapAfter()) - before).toBeLessThan(4);
    agent.destroy();
  });

  it(`of a call in an episode of ${isLong ? 10_000 : 2000} is little more than its hash`, async () => {
    const episode = await openEpisode();
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const calls = isLong ? 10_000 : 2000;
    const play = async (from: number, count: number) => {
      for (let i = from; i < from + count; i++) {
        const sent = ask(episode, 'chat', bodyOf('chat', question(`${i} ${'x'.repeat(10_000)}`)), { agent });
        await (await episode.next()).answer(textReply('a'));
        await sent.received;
      }
    };
    await play(0, 200);
    const before = await heapAfter();
    await play(200, calls);
    expect(((await heapAfter()) - before) * 2 ** 20).toBeLessThan(2 ** 21 + calls * 1500); // its texts alone are 10 KB
    agent.destroy();
  });
});
