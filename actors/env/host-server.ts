/**
 * Server of env hosts for runs on other machines: answers calls with the places that are free, and runs each host as a
 * process of its own, whose channel it passes on unread. A run that is not heard of any more has its hosts ended.
 */
import { Channel, isOfChannel } from '../../src/cluster/channel.ts';
import {
  decodeHostCall,
  decodeHostTake,
  encodeCall,
  type HostAnswer,
  type HostCall,
  type HostTake,
} from '../../src/cluster/host-call.ts';
import type { Place, Switchboard } from '../../src/cluster/switchboard.ts';
import type { Clock } from '../../src/core/clock.ts';
import { LongplayError } from '../../src/core/errors.ts';
import { frameOf } from '../../src/runtime/stream-ports.ts';
import type { HostChaos } from './env-host.ts';
import { EXIT_MS, type HostChild, startHostChild } from './host-child.ts';
import { hostEnvironment } from './host-environment.ts';
import { hostTask } from './hosts.ts';
import { ports } from './process-channel.ts';
import { encodeSign } from './remote-sign.ts';

export interface HostServerOptions {
  readonly switchboard: Switchboard;
  readonly clock: Clock;
  /** Name of this process: letters, digits, `_`, `-`. */
  readonly name: string;
  /** Hosts at once, ≥ 1. */
  readonly places: number;
  /** URL of the world that a call is for. @throws {UserError} saying what this machine has otherwise */
  readonly moduleOf: (call: HostCall) => URL;
  readonly onNotice: (text: string) => void;
}

/** Milliseconds that an offer is good for; and between two looks at the beacon of a host. */
const OFFER_MS = 3000;
const LOOK_MS = 100;
/** Reasons of refusals that a person is told, at most: they come from outside. */
const MOST_TOLD = 100;

interface RunningHost {
  readonly child: HostChild;
  readonly channel: Channel;
}

export class HostServer {
  readonly #of: HostServerOptions;
  readonly #running = new Set<RunningHost>();
  readonly #told = new Set<string>();
  #endHearing = () => {};
  #closed = false;
  /** Hosts started. */
  started = 0;

  constructor(options: HostServerOptions) {
    this.#of = options;
  }

  /** Hosts that run. */
  get size(): number {
    return this.#running.size;
  }

  start(): void {
    this.#endHearing = this.#of.switchboard.hear({ kind: 'call' }, (bytes) => {
      const call = decodeHostCall(bytes);
      if (call) this.#called(call);
    });
  }

  /** Ends all hosts; their runs bring the episodes back elsewhere. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#endHearing();
    const running = [...this.#running];
    for (const { child, channel } of running) {
      channel.break({ lost: `${this.#of.name}, the machine that ran the host, has left` });
      child.kill();
    }
    await Promise.all(running.map(({ child }) => child.ended));
  }

  #called(call: HostCall): void {
    const { switchboard, clock, name: server, places, moduleOf } = this.#of;
    const { channel } = call;
    const say = (answer: HostAnswer) => switchboard.say({ kind: 'down', channel }, encodeCall(answer));
    let url: URL;
    try {
      url = moduleOf(call);
    } catch (thrown) {
      if (!(thrown instanceof LongplayError)) throw thrown;
      this.#tell(`a run cannot have hosts here: ${thrown.message}`);
      say({ type: 'refusal', server, reason: 'other', why: thrown.message });
      return;
    }
    const isFull = () => this.#running.size >= places;
    const full: HostAnswer = { type: 'refusal', server, reason: 'full', why: `${places} hosts run` };
    if (isFull()) {
      say(full);
      return;
    }
    let host: RunningHost | undefined;
    const endHearing = switchboard.hear({ kind: 'up', channel }, (bytes) => {
      if (host) host.channel.heard(bytes);
      else if (!isOfChannel(bytes)) {
        const take = decodeHostTake(bytes);
        if (take?.server === server && !isFull() && !this.#closed) host = this.#host(call, take, url, endHearing);
        else endHearing();
        if (take?.server === server && !host) say(full);
      }
    });
    clock.after(OFFER_MS, () => {
      if (!host) endHearing();
    });
    say({ type: 'offer', server, free: places - this.#running.size });
  }

  #host({ channel: name, options }: HostCall, take: HostTake, url: URL, endHearing: () => void): RunningHost {
    const { switchboard, clock } = this.#of;
    const { id, listActions, where, watchful, heapMb, variables } = take;
    const child = startHostChild({ heapMb, variables: hostEnvironment(process.env, variables) });
    const to: Place = { kind: 'down', channel: name };
    const channel = new Channel({
      clock,
      say: (bytes) => switchboard.say(to, bytes),
      mostBytes: switchboard.mostBytes,
      sign: () =>
        encodeSign({
          beacon: child.beacon(),
          overweight: child.overweight(),
          waitedMs: child.waitedMs(clock.now()),
        }),
      onEnd: () => child.kill(), // by its run, or it is not heard of any more
    });
    const host = { child, channel };
    this.#running.add(host);
    this.started++;
    const chaos = take.chaos as HostChaos | undefined;
    const task = hostTask({ envs: [{ id, url, options }], listActions, where, chaos, watchful });
    for (const bytes of frameOf(ports.setUp, task)) child.channel.write(bytes);
    for (const stream of [child.channel, channel.stream]) stream.on('error', () => {}); // the child's end says the rest
    channel.stream.once('close', endHearing);
    // One that closed its channel hears nothing any more.
    child.channel.once('close', () => setTimeout(() => child.kill(), EXIT_MS).unref());
    child.channel.pipe(channel.stream);
    channel.stream.pipe(child.channel);
    const endLooking = this.#look(child, channel);
    void child.ended.then((end) => {
      endLooking();
      this.#running.delete(host);
      channel.sign(); // the beacon's last words
      channel.end(end);
    });
    return host;
  }

  /** Shows a beacon that has moved, so that the run knows whose code runs. */
  #look(child: HostChild, channel: Channel): () => void {
    let shown = '';
    let cancel = () => {};
    const look = () => {
      const { current, began, calls } = child.beacon();
      const now = `${current} ${began} ${calls}`;
      if (now !== shown) channel.sign();
      shown = now;
      cancel = this.#of.clock.after(LOOK_MS, look);
    };
    look();
    return () => cancel();
  }

  #tell(why: string): void {
    if (this.#told.has(why) || this.#told.size >= MOST_TOLD) return;
    this.#told.add(why);
    this.#of.onNotice(why);
  }
}
