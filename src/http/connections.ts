/**
 * Connections of a server, bounded so that silent clients cannot keep others out. Node's `maxConnections` turns
 * newcomers away instead. A connection is *unproven* until a whole request on it was admitted. When a new client comes
 * and there is no room, the oldest unproven connection of the address that has most of them gives way, then the proven
 * one that has been idle longest; one with a whole request under way never does. So a client that opens many can push
 * out its own alone, however fast it is.
 */
import type { Socket } from 'node:net';

/** Connection of a server. */
export class Connection {
  readonly socket: Socket;
  /** True once a whole request was admitted. */
  isProven = false;
  /** True once it is a WebSocket's. */
  isUpgraded = false;
  /** Requests under way. */
  busy = 0;
  /** Requests under way whose body has not come whole. */
  reading = 0;
  /** Number of the last answer on it, counted over all answers of the server. */
  answered = 0;
  /** True while a time limit is set on what waits for the client. */
  isLimited = false;
  /** Work that waits until no request is under way. */
  whenIdle: (() => void) | undefined;

  constructor(socket: Socket) {
    this.socket = socket;
  }
}

/** Requests under way on one connection below which it is read again. */
const FEW_AHEAD = 32;

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
    this.#held.set(socket, new Connection(socket));
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

  /** Marks that a request on the connection is under way. */
  begin(connection: Connection): void {
    connection.busy++;
  }

  /** Marks that a request on the connection was whole, and admitted. */
  prove(connection: Connection): void {
    if (connection.isProven) return;
    connection.isProven = true;
    this.#unproven.delete(connection.socket);
  }

  /** Marks that a request was answered: from now on the connection is idle, if no other one is under way. */
  end(connection: Connection): void {
    connection.answered = ++this.#answers;
    connection.busy--;
    if (connection.busy === FEW_AHEAD && !connection.isLimited) connection.socket.resume();
    if (connection.busy > connection.reading || !connection.whenIdle) return;
    const work = connection.whenIdle;
    connection.whenIdle = undefined;
    work();
  }

  /**
   * Ends connections whose clients take nothing of what waits for them.
   * @param sendMs milliseconds that such a client has from when it is noticed, which is a quarter of them later at most
   * @returns ends the watch
   */
  limitWaits(sendMs: number): () => void {
    const timer = setInterval(
      () => {
        for (const connection of this.#held.values()) {
          if (connection.isUpgraded || connection.isLimited || !connection.socket.writableNeedDrain) continue;
          limitWait(connection, sendMs);
        }
      },
      Math.max(5, sendMs / 4),
    ).unref();
    return () => clearInterval(timer);
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
    for (const [socket, { busy, reading, answered }] of this.#held) {
      if (busy > reading || socket === newcomer || answered >= least) continue;
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

/**
 * Sets a time limit on what waits for a client. Until it has taken all of it nothing is read from it: what it sends would
 * count as progress.
 */
function limitWait(connection: Connection, sendMs: number): void {
  const { socket } = connection;
  connection.isLimited = true;
  socket.setTimeout(sendMs);
  socket.pause();
  socket.once('drain', () => {
    connection.isLimited = false;
    socket.setTimeout(0); // the next piece may be long in coming
    socket.resume();
  });
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
