/** Tickets that wait for the weights they name. */
import type { GroupTicket } from '../../core/ticket.ts';

export class WaitingTickets {
  readonly #tickets = new Map<number, GroupTicket>();

  get size(): number {
    return this.#tickets.size;
  }

  /** True while a group waits. */
  has(group: number): boolean {
    return this.#tickets.has(group);
  }

  add(ticket: GroupTicket): void {
    this.#tickets.set(ticket.group, ticket);
  }

  delete(group: number): void {
    this.#tickets.delete(group);
  }

  /** Takes the tickets that weights of `version` may play, in the order in which they came. */
  take(version: number): readonly GroupTicket[] {
    const due = [...this.#tickets.values()].filter((ticket) => ticket.version <= version);
    for (const { group } of due) this.#tickets.delete(group);
    return due;
  }
}
