/** Tickets that would never come back by themselves, on the broker's twin under a simulated clock. */
import { describe, expect, it } from 'vitest';
import { encodeResult, encodeTicket } from '../../src/cluster/result.ts';
import { TicketConsumer } from '../../src/cluster/ticket-consumer.ts';
import { TicketDispatcher } from '../../src/cluster/ticket-dispatcher.ts';
import { SimulatedClock } from '../../src/core/clock.ts';
import { Rng } from '../../src/core/rng.ts';
import type { GroupTicket } from '../../src/core/ticket.ts';
import { Books, playedBy, VOCABULARY } from '../support/cluster-books.ts';
import { type MemoryBroker, MemoryServer } from '../support/memory-broker.ts';

const LEASE_MS = 1000;

class Scene {
  readonly clock = new SimulatedClock();
  readonly server = new MemoryServer(this.clock, Rng.fromSeed(1), LEASE_MS);
  readonly broker: MemoryBroker = this.server.connect();
  readonly results: number[] = [];

  async pass(ms: number): Promise<void> {
    for (const end = this.clock.now() + ms; this.clock.now() < end; ) {
      for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
      this.clock.advance(100);
    }
  }

  dispatcher(): TicketDispatcher {
    return new TicketDispatcher({
      ...{ broker: this.server.connect(), clock: this.clock, vocabSize: VOCABULARY, digestOf: () => undefined },
      onResult: ({ ticket }) => this.results.push(ticket.group),
      onRefused: (_, __, why) => {
        throw new Error(why);
      },
      onError: (thrown) => {
        throw thrown;
      },
    });
  }

  consumer(play: (ticket: GroupTicket) => void): TicketConsumer {
    return new TicketConsumer({
      ...{ broker: this.server.connect(), clock: this.clock, worker: 'w', slots: 4, leaseMs: LEASE_MS },
      maxDeliveries: 100,
      play,
      onNotice() {},
      onError(thrown) {
        throw thrown;
      },
    });
  }

  async store(name: string, ticket: GroupTicket): Promise<void> {
    const [worker, delivery, digests] = ['w', 1, { 0: 'digest' }];
    const trajectories = playedBy(ticket, 0);
    await this.broker.results.put(name, encodeResult({ ticket, worker, delivery, digests, failed: [], trajectories }));
  }
}

describe('a ticket', () => {
  it('that the server keeps but never delivers is issued once more, and either result counts, once', async () => {
    const scene = new Scene();
    const { server, broker } = scene;
    const [ticket, other] = new Books(1).launch() as [GroupTicket, GroupTicket];
    const dispatcher = scene.dispatcher();
    dispatcher.dispatch([ticket, other]);
    dispatcher.start();
    await scene.pass(500);
    for (const one of server.tickets.values()) one.until = Number.POSITIVE_INFINITY;
    await scene.pass(50_000);
    expect([...server.tickets.keys()]).toEqual(['0', '1']); // a group may take its time
    await scene.pass(20_000);
    expect([...server.tickets.keys()]).toEqual(['0', '1', '0-1', '1-2']);
    expect(dispatcher.counts.reissued).toBe(2);
    const fetched = await broker.tickets.fetch(4, 100);
    expect(fetched.map(({ name }) => name)).toEqual(['0-1', '1-2']);
    await scene.store('0-1', ticket);
    await scene.store('0', ticket);
    await scene.store('1', other);
    await scene.pass(3000);
    expect(scene.results).toEqual([0, 1]);
    expect(dispatcher.counts).toMatchObject({ outstanding: 0, duplicates: 1 });
    dispatcher.stop();
  });

  it('that waits to be fetched is issued once, however long it waits', async () => {
    const scene = new Scene();
    const dispatcher = scene.dispatcher();
    dispatcher.dispatch(new Books(1).launch());
    dispatcher.start();
    await scene.pass(600_000);
    expect(dispatcher.counts.reissued).toBe(0);
    expect([...scene.server.tickets.keys()]).toEqual(['0', '1', '2', '3']);
    dispatcher.stop();
  });

  it('whose weights a worker cannot have goes to another, and that worker fetches again once it has some', async () => {
    const scene = new Scene();
    const [first] = new Books(1).launch();
    const ticket = { ...first!, version: 3 };
    await scene.broker.tickets.put('0', encodeTicket(ticket));
    const played: string[] = [];
    const consumer = scene.consumer(() => played.push('here'));
    consumer.setWeights(0, 'digest');
    consumer.start();
    await scene.pass(5000);
    expect([consumer.size, consumer.waiting]).toEqual([1, 1]);
    consumer.pause();
    await scene.pass(300); // before its lease ends
    expect([consumer.size, consumer.waiting]).toEqual([0, 0]);
    const [fetched] = await scene.broker.tickets.fetch(1, 100);
    expect(fetched!.name).toBe('0');
    fetched!.nack();
    consumer.setWeights(3, 'digest');
    await scene.pass(3000);
    expect([consumer.size, consumer.waiting, played]).toEqual([1, 0, ['here']]);
    consumer.stop();
  });
});
