/**
 * Dispatch of commands to hosts, together with the others of one turn of the event loop. While it is unknown whose code
 * ends a slot's hosts, commands go one at a time, so that the next end has one suspect.
 */
import type { Host } from './hosts.ts';
import type { EnvCommand, Open, Step } from './protocol.ts';
import type { OpenEpisode, Slot } from './slot.ts';

/** Commands under way up to which a command leaves at once. */
const FEW_ASKED = 8;

export class Dispatch {
  readonly #slots: readonly Slot[];
  readonly #episodes: ReadonlyMap<number, OpenEpisode>;
  readonly #inline: boolean;
  #flushing = false;
  /** About how many commands wait for their answer. */
  #asked = 0;

  /**
   * @param episodes those that are open; a command that has waited for its turn is sent for them only
   * @param inline hosts run in this thread
   */
  constructor(slots: readonly Slot[], episodes: ReadonlyMap<number, OpenEpisode>, inline: boolean) {
    this.#slots = slots;
    this.#episodes = episodes;
    this.#inline = inline;
  }

  /** Sends a command that is answered. */
  ask(record: OpenEpisode, command: Open | Step): void {
    const { slot } = record;
    if (slot.careful === 0) {
      this.#askNow(record, command);
      return;
    }
    record.ordinal = Number.POSITIVE_INFINITY;
    slot.queue.push({ record, command });
    this.#tryNext(slot);
  }

  send(slot: Slot, command: EnvCommand): void {
    slot.sent++;
    slot.outbox.push(command);
    if (this.#flushing || !slot.host) return;
    this.#flushing = true;
    // To a thread not in a microtask: what other code of this turn sends should go along. Where few are under way
    // each leaves at once instead, so that the host works on one while the next is being sent.
    if (!this.#inline && this.#asked > FEW_ASKED) setImmediate(() => this.#flush());
    else queueMicrotask(() => this.#flush());
  }

  /** Sends what has waited for the slot's host. */
  sendWaiting(slot: Slot): void {
    if (slot.outbox.length > 0) this.#flush();
    if (slot.careful > 0) this.#tryNext(slot);
  }

  /** Counts an answer. */
  countAnswer(record: OpenEpisode): void {
    this.#asked--;
    this.settle(record);
  }

  /** The episode's command is answered, or of no interest any more: one on trial makes room for the next. */
  settle(record: OpenEpisode): void {
    const { slot } = record;
    if (slot.trial?.record === record) void this.#awaitSurvival(slot, slot.host);
  }

  /** Counts anew what waits for an answer. */
  recount(): void {
    this.#asked = 0;
    for (const { pending, restoring } of this.#episodes.values()) if (pending || restoring) this.#asked++;
  }

  /** Gives a careful slot's host the next command, once the last one has been survived. */
  #tryNext(slot: Slot): void {
    while (!slot.trial && slot.host) {
      const next = slot.queue.shift();
      if (!next) return;
      if (!this.#isOpen(next.record)) continue; // closed meanwhile
      slot.trial = { record: next.record };
      this.#askNow(next.record, next.command);
    }
  }

  /**
   * The command on trial was answered: when the host has outlived it, the next one may come. A host that does not answer, or
   * that holds too much memory by now, is judged with this trial at one of the next looks.
   */
  async #awaitSurvival(slot: Slot, host: Host | undefined): Promise<void> {
    const { trial } = slot;
    try {
      await host?.awaitSettled?.();
    } catch {
      return;
    }
    if (slot.host !== host || slot.trial !== trial) return; // it ended meanwhile: `onDied` has seen to it
    if ((host?.overweight?.() ?? 0) > 0) return;
    slot.trial = undefined;
    slot.careful--;
    if (slot.careful > 0) {
      this.#tryNext(slot);
      return;
    }
    host?.unwatch?.();
    for (const { record, command } of slot.queue.splice(0)) if (this.#isOpen(record)) this.#askNow(record, command);
  }

  #isOpen(record: OpenEpisode): boolean {
    return this.#episodes.get(record.open.episode) === record;
  }

  #askNow(record: OpenEpisode, command: Open | Step): void {
    this.#asked++;
    record.ordinal = record.slot.sent + 1;
    record.begunAt = undefined;
    record.lateSince = undefined;
    this.send(record.slot, command);
  }

  #flush(): void {
    this.#flushing = false;
    for (const slot of this.#slots) {
      if (!slot.host || slot.outbox.length === 0) continue;
      const commands = slot.outbox;
      slot.outbox = [];
      slot.host.send(commands);
    }
  }
}
