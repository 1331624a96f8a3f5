/** Messages that one handler of the rollouts sends: commands to the hosts together, and a wait where a mailbox is full. */
import type { Context, Message } from '../../src/runtime/actor.ts';
import type { EnvCommand, EnvCommands } from '../env/protocol.ts';

export class Outbox {
  readonly #resolve: Context<Message>['resolve'];
  readonly #envs: string;
  #commands: EnvCommand[] = [];
  #waits: Promise<void>[] = [];

  /** @param envs path of the env hosts */
  constructor(resolve: Context<Message>['resolve'], envs: string) {
    this.#resolve = resolve;
    this.#envs = envs;
  }

  /** Gathers a command; `sendCommands` sends it. */
  command(command: EnvCommand): void {
    this.#commands.push(command);
  }

  sendCommands(): void {
    if (this.#commands.length === 0) return;
    this.send<EnvCommands>(this.#envs, { type: 'commands', commands: this.#commands });
    this.#commands = [];
  }

  send<M extends Message>(path: string, message: M): void {
    const wait = this.#resolve<M>(path).tell(message);
    if (wait) this.#waits.push(wait);
  }

  /** Places in mailboxes that were full: a promise to wait for before the next message is handled, where there are any. */
  awaitSpace(): void | Promise<void> {
    if (this.#waits.length > 0) return Promise.all(this.#waits.splice(0)).then(() => {});
  }
}
