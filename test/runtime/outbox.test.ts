/** Outbox of a thread: frames of one turn of the event loop go as one message, and one that cannot be sent spoils no other. */
import { describe, expect, it } from 'vitest';
import { type Frame, Outbox } from '../../src/runtime/wire.ts';

/** A port that clones as a real one does, and keeps what came. */
function port() {
  const messages: { frames: Frame[]; transfer: readonly ArrayBuffer[] }[] = [];
  return {
    messages,
    postMessage(value: unknown, transfer: readonly ArrayBuffer[] = []) {
      structuredClone(value);
      messages.push({ frames: value as Frame[], transfer });
    },
  };
}

const nextTurn = () => new Promise((done) => setImmediate(() => setImmediate(done)));
const PING: Frame = ['ping'];
const tell = (path: string, message: object): Frame => ['tell', path, message as never, undefined];

describe('an outbox', () => {
  it('sends what was posted in one turn as one message, in order', async () => {
    const to = port();
    const outbox = new Outbox(to, () => {});
    outbox.post(PING);
    await Promise.resolve();
    outbox.post(['ready']);
    expect(to.messages).toEqual([]);
    await nextTurn();
    expect(to.messages.map(({ frames }) => frames)).toEqual([[PING, ['ready']]]);
    outbox.post(['ended']);
    await nextTurn();
    expect(to.messages).toHaveLength(2);
  });

  it('sends nothing where nothing was posted', async () => {
    const to = port();
    const outbox = new Outbox(to, () => {});
    outbox.flush();
    outbox.schedule();
    await nextTurn();
    expect(to.messages).toEqual([]);
  });

  it('does not wait for the turn’s end with a thousand frames', () => {
    const to = port();
    const outbox = new Outbox(to, () => {});
    for (let i = 0; i < 1024; i++) outbox.post(PING);
    expect(to.messages.map(({ frames }) => frames.length)).toEqual([1024]);
  });

  it('lets its owner add acknowledgements to what is sent', async () => {
    const to = port();
    const outbox: Outbox = new Outbox(
      to,
      () => {},
      () => {
        if (to.messages.length === 0) outbox.post(['handled', 3, 1]);
      },
    );
    outbox.post(PING);
    await nextTurn();
    expect(to.messages[0]!.frames).toEqual([PING, ['handled', 3, 1]]);
  });

  it('sends the others singly where one cannot be cloned, and names that one', async () => {
    const to = port();
    const unsendable: Frame[] = [];
    const outbox = new Outbox(to, (frame) => unsendable.push(frame));
    const bad = tell('a', { type: 'x', run: () => {} });
    outbox.post(PING);
    outbox.post(bad);
    outbox.post(['ready']);
    await nextTurn();
    expect(to.messages.map(({ frames }) => frames)).toEqual([[PING], [['ready']]]);
    expect(unsendable).toEqual([bad]);
  });

  it('hands buffers over with the frame that mentions them', async () => {
    const to = port();
    const outbox = new Outbox(to, () => {});
    const [one, other] = [new Float32Array(4), new Float32Array(4)];
    outbox.post(tell('a', { type: 'x', run: () => {} }));
    outbox.post(tell('b', { type: 'y', deep: [{ values: one }] }), [one.buffer]);
    outbox.post(tell('c', { type: 'z', values: other }), [other.buffer]);
    await nextTurn();
    expect(to.messages.map(({ frames, transfer }) => [frames[0]![1], transfer])).toEqual([
      ['b', [one.buffer]],
      ['c', [other.buffer]],
    ]);
  });
});
