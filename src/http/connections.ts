/**
 * Connections of a server, bounded so that silent clients cannot keep others out. A connection is *unproven* until a
 * whole request on it was admitted. When a new client comes and there is no room, the oldest unproven connection of the
 * address that has most of them gives way, then the proven one that has been idle longest; one with a request under way
 * never does. So a client that opens many can push out its own alone, however fast it is.
 */
import type { Socket } from 'node:net';

/** Connection of a server, and the answers that it waits for. */
export class Connection {
  /** True once a whole request was admitted. */
  proven = false;
  /** Requests under way. */
  busy = 0;
  /** Place among all answers of the server of the last one that it got. */
  answered = 0;
  /** True while a request has not sent its whole body. */
  reading = false;
  /** True while a request is being answered. */
  answering = false;
  /** True while work that was sent ahead is gone on with. */
  goesOn = false;
  /** Work that waits until the request before it is answered: those sent ahead, in order. */
  readonly ahead: (() => void)[] = [];
}

export class Connections {
  readonly #max: number;
  readonly #held = new Map<Socket, Connection>();
  readonly #unproven = new UnprovenSockets();
  #answers = 0;

  /** @param max connections at once; unproven ones may take half of them */
  constructor(max: number) {
    this.#max = max;
  }

  add(socket: Socket): void {
    this.#held.set(socket, new Connection());
    this.#unproven.add(socket);
    socket.once('close', () => {
      this.#held.delete(socket);
      this.#unproven.delete(socket);
    });
    if (this.#held.size > this.#max || this.#unproven.size > Math.max(1, this.#max / 2)) this.#makeRoom(socket);
  }

  /** Connection of a socket; undefined for one that is closed. */
  of(socket: Socket): Connection | undefined {
    return this.#held.get(socket);
  }

  /** Marks that a whole request on the connection was admitted and is being answered. */
  begin(socket: Socket, held: Connection): void {
    held.busy++;
    if (held.proven) return;
    held.proven = true;
    this.#unproven.delete(socket);
  }

  /** Marks that the request was answered: from now on the connection is idle, if no other one is under way. */
  end(held: Connection): void {
    held.busy--;
    held.answered = ++this.#answers;
  }

  closeAll(): void {
    for (const socket of this.#held.keys()) socket.destroy();
  }

  /** Makes room: ends one connection in favour of `newcomer`, or that one itself where all others are busy. */
  #makeRoom(newcomer: Socket): void {
    const oldest = this.#unproven.oldestOfMost();
    if (oldest && oldest !== newcomer) {
      this.#drop(oldest);
      return;
    }
    let idle: Socket = newcomer;
    let least = Number.POSITIVE_INFINITY;
    for (const [socket, { busy, answered }] of this.#held) {
      if (busy > 0 || socket === newcomer || answered >= least) continue;
      idle = socket;
      least = answered;
    }
    this.#drop(idle);
  }

  #drop(socket: Socket): void {
    this.#held.delete(socket); // before its `close`, so that the next newcomer finds another
    this.#unproven.delete(socket);
    socket.destroy();
  }
}

/** Unproven connections by their clients' addresses, each address's oldest first. */
class UnprovenSockets {
  readonly #byAddress = new Map<string, Set<Socket>>();
  readonly #addresses = new Map<Socket, string>();

  get size(): number {
    return this.#addresses.size;
  }

  add(socket: Socket): void {
    const address = socket.remoteAddress ?? ''; // unknown once it is closed
    this.#addresses.set(socket, address);
    let own = this.#byAddress.get(address);
    if (!own) this.#byAddress.set(address, (own = new Set()));
    own.add(socket);
  }

  delete(socket: Socket): void {
    const address = this.#addresses.get(socket);
    if (address === undefined) return;
    this.#addresses.delete(socket);
    const own = this.#byAddress.get(address)!;
    own.delete(socket);
    if (own.size === 0) this.#byAddress.delete(address);
  }

  /** Oldest connection of the address that has most of them. */
  oldestOfMost(): Socket | undefined {
    let most: ReadonlySet<Socket> = new Set();
    for (const own of this.#byAddress.values()) if (own.size > most.size) most = own;
    return most.values().next().value;
  }
}
