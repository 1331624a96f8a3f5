/**
 * Session of an agent: the episode of a program that calls a model. Its observations are the program's calls, its actions the
 * replies (agent-call.ts); the program's end is the end of the episode.
 *
 * Calls are answered one at a time, in order of arrival. After as many as the horizon allows, every later one gets a short
 * closing text from the gateway, the program ends, and the reward it gives then is the episode's.
 */
import { setMaxListeners } from 'node:events';
import { type AgentOutcome, printAgentCall, printAgentOutcome } from '../core/agent-call.ts';
import { ReplyChooser } from '../core/call-stages.ts';
import { type EnvStep, type First, type Session, terminated } from '../core/env.ts';
import type { GatewayEpisode, WaitingCall } from './gateway.ts';

/** Episode to play: the program's run, its gateway, and its limits. */
export interface AgentEpisode {
  readonly gateway: GatewayEpisode;
  /** Starts the program. Rejects where it failed. */
  run(signal: AbortSignal): Promise<AgentOutcome>;
  /** Replies that the episode may take; absent: any number. */
  readonly horizon: number | undefined;
  readonly rewardAtHorizon: 'keep' | 'drop';
}

/** Next event of an episode: a call, or the program's end. */
type Next = { readonly call: WaitingCall } | { readonly outcome: AgentOutcome };

/** Session over one episode. */
export class AgentSession implements Session {
  first: First = { kind: 'first', observation: '' };
  readonly #episode: AgentEpisode;
  readonly #ending = new AbortController();
  readonly #outcome: Promise<Next>;
  /** Call asked of the gateway and not taken yet. */
  #asked: Promise<Next> | undefined;
  #call: WaitingCall | undefined;
  /** Outcome of a program that ended before its first call. */
  #early: AgentOutcome | undefined;
  #answered = 0;
  readonly #chooser = new ReplyChooser();

  private constructor(episode: AgentEpisode) {
    this.#episode = episode;
    const { signal } = this.#ending;
    setMaxListeners(0, signal); // a program hands it to every call that it makes
    this.#outcome = episode.run(signal).then((outcome) => ({ outcome }));
    this.#outcome.catch(() => {}); // reported where it is awaited
  }

  /** Starts the program and waits for its first call. @throws what the program threw */
  static async open(episode: AgentEpisode): Promise<AgentSession> {
    const session = new AgentSession(episode);
    try {
      const next = await session.#next();
      session.first = { kind: 'first', observation: session.#observe(next) };
    } catch (thrown) {
      session.close();
      throw thrown;
    }
    return session;
  }

  async step(action: string): Promise<EnvStep> {
    if (this.#early) {
      const { reward, success } = this.#early;
      this.close();
      return { ...terminated('', reward, success), undelivered: true };
    }
    const call = this.#call;
    if (!call) return terminated('', 0, false); // over
    const reply = this.#chooser.take(action);
    if (!reply) return { kind: 'mid', observation: '', reward: 0, partial: true };
    this.#call = undefined;
    await call.answer({ ...reply, calls: reply.calls.map((one) => ({ id: '', ...one })) });
    this.#answered++;
    const next = await this.#next();
    const isUndelivered = this.#episode.gateway.takeUndelivered().includes(call.number);
    if (isUndelivered) this.#answered--;
    if ('outcome' in next) {
      const { reward, success } = next.outcome;
      this.close();
      const end = terminated(this.#observe(next), reward, success);
      return isUndelivered ? { ...end, undelivered: true } : end;
    }
    const observation = this.#observe(next);
    if (isUndelivered) return { kind: 'mid', observation, reward: 0, partial: true, undelivered: true };
    const { horizon } = this.#episode;
    if (horizon === undefined || this.#answered < horizon) return { kind: 'mid', observation, reward: 0 };
    return { kind: 'mid', observation, reward: await this.#closePolitely() };
  }

  /** Choices of the present stage. */
  actions(): readonly string[] {
    if (this.#early) return [EARLY];
    return this.#call ? this.#chooser.list() : [];
  }

  /** Ends the program and its calls; twice does no harm. */
  close(): void {
    this.#call = undefined;
    this.#ending.abort();
    this.#episode.gateway.close();
  }

  /** Answers whatever still comes with the closing text. @returns the reward that the program gives at its end */
  async #closePolitely(): Promise<number> {
    const { gateway, rewardAtHorizon } = this.#episode;
    gateway.finish();
    // A program that cannot live with the closing text (it forces a tool) was cut, like any other.
    const ended = await this.#outcome.catch(() => undefined);
    this.close();
    return rewardAtHorizon === 'keep' && ended && 'outcome' in ended ? ended.outcome.reward : 0;
  }

  /** Next call or the end. Where both are there, the end: what a program has not waited for is nobody's. */
  async #next(): Promise<Next> {
    this.#asked ??= this.#episode.gateway.next(this.#ending.signal).then((call) => ({ call }));
    this.#asked.catch(() => {}); // it is over
    const next = await Promise.race([this.#outcome, this.#asked]);
    if ('call' in next) this.#asked = undefined;
    return next;
  }

  /** Observation of what came, which is in hand from now on. */
  #observe(next: Next): string {
    if ('outcome' in next) {
      if (this.#answered === 0) this.#early = next.outcome;
      return printAgentOutcome(next.outcome);
    }
    const { call: waiting } = next;
    this.#call = waiting;
    this.#chooser.begin(waiting.call, waiting.fresh);
    return printCall(waiting);
  }
}

/** The only choice after the end of a program that made no call. */
const EARLY = 'end';

function printCall({ number, parent, call, fresh }: WaitingCall): string {
  const { tools, toolChoice, parallelCalls, format, maxTokens, stop, sampling } = call;
  return printAgentCall({
    call: number,
    parent,
    messages: fresh,
    ...(parent === null ? { tools } : {}),
    toolChoice,
    parallelCalls,
    format,
    maxTokens,
    stop,
    sampling,
  });
}
