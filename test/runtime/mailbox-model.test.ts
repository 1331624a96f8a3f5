/** The mailbox against a model of three arrays, and under every order of producers and consumers. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Overflow } from '../../src/runtime/actor.ts';
import { Mailbox } from '../../src/runtime/mailbox.ts';

const runs = process.env.LONGPLAY_LONG === '1' ? 5000 : 500;

interface Model {
  readonly capacity: number;
  readonly overflow: Overflow;
  readonly weigh: (n: number) => number;
  data: number[];
  control: number[];
  waiting: number[];
  next: number;
}

interface Real {
  readonly mailbox: Mailbox<number>;
  readonly admitted: number[];
}

type Op = fc.Command<Model, Real>;

const isFull = ({ data, weigh, capacity, waiting }: Model) =>
  data.reduce((sum, n) => sum + weigh(n), 0) >= capacity || waiting.length > 0;

const command = (name: string, run: (m: Model, r: Real) => void): Op => ({
  check: () => true,
  run(m, r) {
    run(m, r);
    expect(r.mailbox.length).toBe(m.data.length + m.control.length);
    expect(r.mailbox.full).toBe(isFull(m));
    expect(r.mailbox.peek()).toBe(m.control[0] ?? m.data[0]);
  },
  toString: () => name,
});

const admit = (m: Model) => {
  while (m.waiting.length > 0 && !isFull({ ...m, waiting: [] })) m.data.push(m.waiting.shift()!);
};

const offer = command('offer', (m, { mailbox, admitted }) => {
  const n = m.next++;
  const full = isFull(m);
  if (full && m.overflow === 'reject') {
    expect(() => mailbox.offer(n)).toThrow(expect.objectContaining({ code: 'MAILBOX_FULL' }));
    return;
  }
  const offered = mailbox.offer(n);
  if (!full) {
    expect(offered).toBeUndefined();
    m.data.push(n);
  } else if (m.overflow === 'drop-oldest') {
    const dropped: number[] = [];
    while (isFull(m)) dropped.push(m.data.shift()!);
    expect(offered).toEqual({ dropped });
    m.data.push(n);
  } else {
    expect(offered).toBeInstanceOf(Promise);
    void (offered as Promise<void>).then(() => admitted.push(n));
    m.waiting.push(n);
  }
});
const force = (lane: 'data' | 'control') =>
  command(`force ${lane}`, (m, { mailbox }) => {
    mailbox.force(m.next, lane);
    m[lane].push(m.next++);
  });
const shift = command('shift', (m, { mailbox }) => {
  const expected = m.control.length > 0 ? m.control.shift() : m.data.shift();
  expect(mailbox.shift()).toBe(expected);
  if (expected === undefined || m.control.length === 0) admit(m);
});
const take = command('take odd', (m, { mailbox }) => {
  const odd = (n: number) => n % 2 === 1;
  expect(mailbox.has(odd)).toBe([...m.control, ...m.data].some(odd));
  const lane = m.control.some(odd) ? m.control : m.data;
  const at = lane.findIndex(odd);
  expect(mailbox.take(odd)).toBe(at < 0 ? undefined : lane.splice(at, 1)[0]);
  admit(m);
});
const putBack = command('unshift', (m, { mailbox }) => {
  const items = [m.next++, m.next++];
  mailbox.unshift(items);
  m.data.unshift(...items);
});

/** @returns whether the mailbox of `make` does as the model does */
function obeys(
  make: (capacity: number, overflow: Overflow) => Mailbox<number>,
  ops: Op[],
  weigh: (n: number) => number = () => 1,
) {
  const property = fc.property(
    fc.integer({ min: 1, max: 5 }),
    fc.constantFrom<Overflow>('wait', 'reject', 'drop-oldest'),
    fc.commands(
      ops.map((op) => fc.constant(op)),
      { maxCommands: 60 },
    ),
    (capacity, overflow, commands) => {
      const model: Model = { capacity, overflow, weigh, data: [], control: [], waiting: [], next: 0 };
      fc.modelRun(() => ({ model, real: { mailbox: make(capacity, overflow), admitted: [] } }), commands);
    },
  );
  return fc.check(property, { numRuns: runs });
}

// A control message that is taken frees no place in the data lane, so waiting senders stay where they are.
const ops = [offer, offer, offer, force('data'), force('control'), shift, shift, take, putBack];

describe('a mailbox', () => {
  it('does as the model does', () => {
    const { failed, error, counterexample } = obeys((capacity, overflow) => new Mailbox(capacity, overflow), ops) as {
      failed: boolean;
      error?: unknown;
      counterexample?: unknown;
    };
    expect({ failed, error, counterexample: String(counterexample) }).toMatchObject({ failed: false });
  });

  it('does as the model does when its capacity is a weight', () => {
    const weigh = (n: number) => 1 + (n % 3);
    const { failed, error } = obeys((capacity, overflow) => new Mailbox(capacity, overflow, weigh), ops, weigh) as {
      failed: boolean;
      error?: unknown;
    };
    expect({ failed, error }).toMatchObject({ failed: false });
    // The model would notice a mailbox that counts messages.
    expect(obeys((capacity, overflow) => new Mailbox(capacity, overflow), ops, weigh).failed).toBe(true);
  });

  it.each<[string, (mailbox: Mailbox<number>) => void]>([
    [
      'a lost message',
      (mailbox) => {
        const { shift } = mailbox;
        let n = 0;
        mailbox.shift = () => {
          if (++n % 2 === 0) shift.call(mailbox);
          return shift.call(mailbox);
        };
      },
    ],
    [
      'a message delivered twice',
      (mailbox) => {
        const { shift } = mailbox;
        let n = 0;
        let last: number | undefined;
        mailbox.shift = () => (++n % 2 === 0 && last !== undefined ? last : (last = shift.call(mailbox)));
      },
    ],
    [
      'messages out of order',
      (mailbox) => {
        mailbox.take = Mailbox.prototype.take;
        mailbox.shift = () => mailbox.take((n) => n % 3 !== 0) ?? mailbox.take(() => true);
      },
    ],
    [
      'a capacity that does not hold',
      (mailbox) => {
        mailbox.offer = (n) => void mailbox.force(n, 'data');
      },
    ],
  ])('with %s is found out', (_, sabotage) => {
    const broken = (capacity: number, overflow: Overflow) => {
      const mailbox = new Mailbox<number>(capacity, overflow);
      sabotage(mailbox);
      return mailbox;
    };
    expect(obeys(broken, ops).failed).toBe(true);
  });

  it('keeps the order of each producer and loses nothing, in every schedule', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.integer({ min: 1, max: 4 }),
        fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 4 }),
        async (s, capacity, counts) => {
          const mailbox = new Mailbox<readonly [number, number]>(capacity, 'wait');
          const got: (readonly [number, number])[] = [];
          const producers = counts.map(async (count, producer) => {
            for (let n = 0; n < count; n++) {
              await s.schedule(Promise.resolve());
              await mailbox.offer([producer, n]);
            }
          });
          const total = counts.reduce((a, b) => a + b, 0);
          const consumer = (async () => {
            while (got.length < total) {
              await s.schedule(Promise.resolve());
              const item = mailbox.shift();
              if (item) got.push(item);
              expect(mailbox.length).toBeLessThanOrEqual(capacity);
            }
          })();
          await s.waitFor(Promise.all([...producers, consumer]));
          counts.forEach((count, producer) => {
            const own = got.filter(([from]) => from === producer).map(([, n]) => n);
            expect(own).toEqual(Array.from({ length: count }, (_, n) => n));
          });
        },
      ),
      { numRuns: runs / 5 },
    );
  });
});
