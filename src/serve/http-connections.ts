/**
 * Connections of a server, bounded so that silent clients cannot keep others out. A connection is *unproven* until a
 * whole request on it was admitted. When a new client comes and there is no room, the oldest unproven connection gives way,
 * then the proven one that has been idle longest; one with a request under way never does.
 */
import type { Socket } from 'node:net';

interface Connection {
  proven: boolean;
  /** Requests under way. */
  busy: number;
}

export class Connections {
  readonly #max: number;
  /** Connections, the last answered one last. */
  readonly #held = new Map<Socket, Connection>();
  /** Unproven connections, oldest first. */
  readonly #unproven = new Set<Socket>();

  /** @param max connections at once; unproven ones may take half of them */
  constructor(max: number) {
    this.#max = max;
  }

  add(socket: Socket): void {
    this.#held.set(socket, { proven: false, busy: 0 });
    this.#unproven.add(socket);
    socket.once('close', () => {
      this.#held.delete(socket);
      this.#unproven.delete(socket);
    });
    if (this.#held.size > this.#max || this.#unproven.size > Math.max(1, this.#max / 2)) this.#makeRoom(socket);
  }

  /** Marks that a whole request on the connection was admitted and is being answered. */
  begin(socket: Socket): void {
    const held = this.#held.get(socket);
    if (!held) return;
    held.proven = true;
    held.busy++;
    this.#unproven.delete(socket);
  }

  /** Marks that the request was answered: from now on the connection is idle, if no other one is under way. */
  end(socket: Socket): void {
    const held = this.#held.get(socket);
    if (!held) return;
    held.busy--;
    this.#held.delete(socket);
    this.#held.set(socket, held);
  }

  closeAll(): void {
    for (const socket of this.#held.keys()) socket.destroy();
  }

  /** Makes room: ends one connection in favour of `newcomer`, or that one itself where all others are busy. */
  #makeRoom(newcomer: Socket): void {
    const [oldest] = this.#unproven;
    if (oldest && oldest !== newcomer) {
      this.#drop(oldest);
      return;
    }
    for (const [socket, { busy }] of this.#held) {
      if (busy > 0 || socket === newcomer) continue;
      this.#drop(socket);
      return;
    }
    this.#drop(newcomer);
  }

  #drop(socket: Socket): void {
    this.#held.delete(socket); // before its `close`, so that the next newcomer finds another
    this.#unproven.delete(socket);
    socket.destroy();
  }
}
