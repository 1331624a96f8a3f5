/**
 * Remote hosts: processes of other machines (`longplay worker --envs`), over a switchboard. A host is called for, one of the
 * machines that have a free place takes it, and the bytes of its process's channel come over the network; what they mean
 * is checked as that of any host. A machine that dies or is cut off has lost its hosts (`lost`): nobody is to blame, their episodes are
 * brought back on another one.
 */
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { Channel, type ChannelEnd, isOfChannel, SIGN_MS } from '../../src/cluster/channel.ts';
import {
  decodeHostAnswer,
  encodeCall,
  type HostAnswer,
  type HostIdentity,
  type HostOffer,
  newChannel,
} from '../../src/cluster/host-call.ts';
import type { Switchboard } from '../../src/cluster/switchboard.ts';
import type { Clock } from '../../src/core/clock.ts';
import { LongplayError, UserError } from '../../src/core/errors.ts';
import type { BeaconReading } from './beacon.ts';
import type { EnvFacts } from './env-host.ts';
import { type ChildEnd, type HostChild, residenceOf } from './host-child.ts';
import type { HostVariables } from './host-environment.ts';
import {
  type Host,
  type HostEnd,
  type HostFactory,
  type HostListener,
  type HostOptions,
  startHostIn,
} from './hosts.ts';
import { decodeSign } from './remote-sign.ts';

export interface RemoteHostsOptions {
  /** Connection, which is closed with the hosts. */
  readonly switchboard: Switchboard;
  readonly clock: Clock;
  /** Identity that machines must have in common with this one. */
  readonly identity: HostIdentity;
  /** Facts about the world as this machine knows it; a host that tells others is not believed. */
  readonly facts?: Omit<EnvFacts, 'id'> | undefined;
  readonly heapMb: number | undefined;
  readonly variables: HostVariables;
  /** Command that serves hosts, for a person. */
  readonly command: string;
  readonly onNotice: (text: string) => void;
}

/** Milliseconds in which a machine with a free place must be found; after which a person is told that none is. */
const PLACE_MS = 60_000;
const TELL_MS = 3000;
/** Milliseconds in which machines answer a call, in which more of them may after the first offer, and for a host to show life. */
const ANSWER_MS = 500;
const MORE_MS = 20;
const TAKE_MS = 3000;
/** Milliseconds of silence after which a beacon tells nothing. */
const UNHEARD_MS = 2.5 * SIGN_MS;

const lastWords = z.union([
  z.object({ lost: z.string().max(1000) }),
  z.object({
    code: z.int().nullable(),
    signal: z.string().max(20).nullable(),
    memory: z.string().max(1000).optional(),
  }),
]);

export class RemoteHosts implements HostFactory {
  readonly #of: RemoteHostsOptions;
  readonly #children = new Set<HostChild>();
  #closed = false;
  /** True after a person was told that no place is free, until one is. */
  #told = false;
  #refused: LongplayError | undefined;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: RemoteHostsOptions) {
    this.#of = options;
    void options.switchboard.refused.then((error) => {
      this.#refused = error;
    });
  }

  async start(options: HostOptions, listener: HostListener, startMs: number): Promise<Host> {
    const child = await this.#place(options);
    this.#children.add(child);
    void child.ended.then(() => this.#children.delete(child));
    const host = await startHostIn(residenceOf(child).residence, listener, startMs);
    const { facts } = this.#of;
    const told = host.facts.map(({ id: _, ...rest }) => rest);
    if (facts && !told.every((one) => isDeepStrictEqual(one, facts))) {
      host.kill();
      const [there, here] = [told[0], facts].map((one) => JSON.stringify(one));
      throw new LongplayError(
        'ENV_BROKEN',
        `a remote env host tells other facts about its world: ${there}, here ${here}`,
      );
    }
    return host;
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const child of this.#children) child.kill();
    await this.#of.switchboard.close();
  }

  /**
   * Finds a machine with a free place, and takes it.
   * @throws {LongplayError} REMOTE_FAILED where none has one for a minute; {UserError} BAD_CONFIG where none can ever have
   */
  async #place(options: HostOptions): Promise<HostChild> {
    const { clock, command, onNotice } = this.#of;
    const began = clock.now();
    for (;;) {
      const answers = new Map<string, HostAnswer>();
      const child = await this.#inTurn(() => this.#call(options, answers));
      if (this.#closed) {
        child?.kill();
        throw new LongplayError('ACTOR_STOPPED', 'the env pool is closed');
      }
      if (this.#refused) throw this.#refused;
      if (child) {
        this.#told = false;
        return child;
      }
      const ms = clock.now() - began;
      const why = placeless([...answers.values()], command);
      if (ms >= TELL_MS && answers.size > 0 && [...answers.values()].every(isHopeless))
        throw new UserError('BAD_CONFIG', why);
      if (ms >= PLACE_MS) throw new LongplayError('REMOTE_FAILED', why);
      if (ms >= TELL_MS && !this.#told) {
        this.#told = true;
        onNotice(`${why}; waiting for one`);
      }
    }
  }

  /** One call at a time, so that the next one sees which places are taken: hosts are spread over machines. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(work);
    this.#turn = turn.catch(() => {});
    return turn;
  }

  /** Calls once. @param answers of all machines, by name */
  async #call(options: HostOptions, answers: Map<string, HostAnswer>): Promise<HostChild | undefined> {
    const { switchboard, identity, clock } = this.#of;
    const [spec, ...more] = options.envs;
    if (!spec || more.length > 0) throw new LongplayError('BAD_ARGUMENT', 'a remote host has one world');
    const channel = newChannel();
    const line = new Line(this.#of, channel, (one) => answers.set(one.server, one));
    switchboard.say({ kind: 'call' }, encodeCall({ type: 'call', channel, identity, options: spec.options ?? {} }));
    const offers = () => [...answers.values()].filter((one): one is HostOffer => one.type === 'offer');
    const until = clock.now() + ANSWER_MS;
    while (offers().length === 0 && clock.now() < until && !this.#closed) await this.#sleep(MORE_MS);
    await this.#sleep(MORE_MS);
    const most = offers().sort((a, b) => b.free - a.free)[0];
    const child = most && !this.#closed ? await line.take(most.server, options, spec.id) : undefined;
    if (!child) line.hangUp();
    return child;
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.#of.clock.after(ms, resolve));
  }
}

function isHopeless(answer: HostAnswer): boolean {
  return answer.type === 'refusal' && answer.reason === 'other';
}

/** Reason why there is no place, in words. */
function placeless(answers: readonly HostAnswer[], command: string): string {
  const refused = answers.filter((one) => one.type === 'refusal');
  const other = refused.find(isHopeless);
  if (other && refused.every(isHopeless)) return `no machine can host this world: ${other.server}: ${other.why}`;
  if (refused.length > 0)
    return `all places of ${refused.map(({ server }) => server).join(', ')} are taken; start more: ${command}`;
  return `no machine offers a place for env hosts; start one: ${command}`;
}

/** Line to one machine: what is said to a channel of this end. */
class Line {
  readonly #of: RemoteHostsOptions;
  readonly #channel: string;
  readonly #endHearing: () => void;
  #open: { readonly channel: Channel; readonly child: HostChild } | undefined;
  #beacon: BeaconReading = { current: -1, began: 0, calls: 0 };
  #overweight = 0;
  #waitedMs = 0;
  #end: (end: ChildEnd | HostEnd) => void = () => {};
  /** Called when the host shows life, or will not. */
  #settle: (isThere: boolean) => void = () => {};

  constructor(of: RemoteHostsOptions, channel: string, onAnswer: (answer: HostAnswer) => void) {
    this.#of = of;
    this.#channel = channel;
    this.#endHearing = of.switchboard.hear({ kind: 'down', channel }, (bytes) => {
      if (isOfChannel(bytes)) this.#open?.channel.heard(bytes);
      else {
        const answer = decodeHostAnswer(bytes);
        if (answer && this.#open === undefined) onAnswer(answer);
        else if (answer?.type === 'refusal') this.#settle(false); // taken meanwhile
      }
    });
  }

  hangUp(): void {
    this.#endHearing();
  }

  /** Takes an offer. @returns undefined where the place is gone */
  async take(server: string, options: HostOptions, id: string): Promise<HostChild | undefined> {
    const { switchboard, clock, heapMb, variables } = this.#of;
    const { listActions, where, watchful = false, chaos } = options;
    const { secret = [], passed = [] } = variables;
    const isThere = new Promise<boolean>((resolve) => {
      this.#settle = resolve;
      clock.after(TAKE_MS, () => resolve(false));
    });
    const say = (bytes: Uint8Array) => switchboard.say({ kind: 'up', channel: this.#channel }, bytes);
    say(
      encodeCall({
        type: 'take',
        server,
        id,
        listActions,
        where,
        watchful,
        chaos,
        heapMb,
        variables: { secret, passed },
      }),
    );
    const channel = new Channel({
      clock,
      say,
      mostBytes: switchboard.mostBytes,
      onSign: (bytes) => this.#sign(bytes),
      onEnd: (end) => this.#ended(end),
    });
    channel.stream.on('error', () => {});
    const child: HostChild = {
      channel: channel.stream,
      ended: new Promise((resolve) => {
        this.#end = (end) => {
          this.hangUp();
          resolve(end);
        };
      }),
      beacon: () => this.#beacon,
      overweight: () => this.#overweight,
      waitedMs: () => this.#waitedMs,
      isHeard: () => channel.silentMs < UNHEARD_MS,
      kill: () => {
        channel.break('ended by its run');
        this.#end({ code: null, signal: 'SIGKILL' });
      },
    };
    this.#open = { channel, child };
    if (await isThere) return child;
    child.kill();
    return undefined;
  }

  #sign(bytes: Uint8Array): void {
    const sign = decodeSign(bytes);
    if (!sign) {
      this.#open?.channel.break('a sign of life that is none');
      this.#end({ cause: 'protocol', message: 'the host sent something that is no message' });
      return;
    }
    this.#beacon = sign.beacon;
    this.#overweight = sign.overweight;
    this.#waitedMs = sign.waitedMs;
    this.#settle(true);
  }

  #ended(end: ChannelEnd): void {
    this.#settle(false);
    if (end.type === 'lost') {
      this.#end({ cause: 'lost', message: `the machine that ran the host is gone: ${end.why}` });
      return;
    }
    const words = lastWords.safeParse(end.words).data;
    if (!words) this.#end({ cause: 'protocol', message: 'the host sent something that is no message' });
    else if ('lost' in words) this.#end({ cause: 'lost', message: words.lost });
    else this.#end(words);
  }
}
