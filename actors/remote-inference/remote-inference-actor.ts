/**
 * A policy behind a server, in the place of the batching inference actor: the same `act` in, the same `acted` out.
 * The server batches, so every turn is a request of its own, at most `concurrency` of them in flight.
 *
 * A turn that no attempt answers fails its episode as `policy`: it is issued again or dropped by the rollouts, and never
 * becomes a reward. Answers of episodes that were released meanwhile are dropped.
 */
import { messageOf } from '../../src/core/errors.ts';
import type { Acted, ActRequest } from '../../src/policy/policy.ts';
import { packActed, unpackRequests } from '../../src/policy/turn-batch.ts';
import { codecOf } from '../../src/reading/codec-of.ts';
import { attempt } from '../../src/remote/attempts.ts';
import { ChatPrompting } from '../../src/remote/policy/chat-prompting.ts';
import { type Completion, OpenAIClient } from '../../src/remote/policy/openai-client.ts';
import type { Prompting } from '../../src/remote/policy/prompting.ts';
import { TokenPrompting } from '../../src/remote/policy/token-prompting.ts';
import type { RemoteUsage } from '../../src/remote/policy/usage.ts';
import { RemoteError } from '../../src/remote/retry.ts';
import type { Behavior, BehaviorFactory, Context } from '../../src/runtime/actor.ts';
import { localUrl } from '../../src/runtime/thread.ts';
import { loadWorld } from '../../src/world/open-world.ts';
import type { ActedEvent, InferenceCommand, InferenceReport } from '../inference/protocol.ts';
import type { EnvObserved } from '../rollout/protocol.ts';
import type { RemoteInferenceInit } from './protocol.ts';

/** Private: an answer came, or none will. */
type Internal =
  | InferenceCommand
  | { readonly type: 'settled'; readonly request: ActRequest; readonly outcome: Outcome };
type Outcome = { readonly completion: Completion; readonly ms: number } | { readonly error: string };

export default function remoteInferenceActor(init: RemoteInferenceInit): BehaviorFactory<Internal> {
  return async (ctx) => serve(ctx, init, await promptingOf(init));
}

function serve(ctx: Context<Internal>, init: RemoteInferenceInit, prompting: Prompting): Behavior<Internal> {
  const { openai } = init;
  const client = new OpenAIClient({ ...init.server, maxConnections: openai.concurrency });
  const rollouts = ctx.resolve<ActedEvent | EnvObserved>(init.replyPath);
  /** Turns that wait for a place, oldest first, and those in flight, by episode. */
  const waiting = new Map<number, ActRequest>();
  const flying = new Map<number, ActRequest>();
  let inFlight = 0;
  let turns = 0;
  const used = { requests: 0, failures: 0, formatErrors: 0, promptTokens: 0, completionTokens: 0, latencyMs: 0 };
  const retries: Record<string, number> = {};
  const attempts = {
    attempts: openai.attempts,
    minMs: openai.minRetryMs,
    maxMs: openai.maxRetryMs,
    attemptMs: openai.attemptMs,
    totalMs: openai.turnMs,
  };

  const tellActed = (acted: Acted) => {
    turns++;
    if (acted.response?.formatError !== undefined) used.formatErrors++;
    void rollouts.tell({
      type: 'acted',
      turns: packActed([acted]),
      tokens: used.promptTokens + used.completionTokens,
    });
  };

  const fail = (episode: number, message: string) => {
    used.failures++;
    prompting.release([episode]);
    const failure = { cause: 'policy', where: ctx.path, message } as const;
    void rollouts.tell({ type: 'observed', events: [{ type: 'failed', episode, failure }] });
  };

  const fly = (request: ActRequest) => {
    const prompt = prompting.ask(request);
    if ('decided' in prompt) {
      tellActed({ episode: request.episode, turn: request.turn, ...prompt.decided });
      return;
    }
    flying.set(request.episode, request);
    inFlight++;
    const began = ctx.clock.now();
    const onRetry = ({ fault, status }: RemoteError) => {
      const why = status === undefined ? fault : String(status);
      retries[why] = (retries[why] ?? 0) + 1;
    };
    const answer = attempt(attempts, { clock: ctx.clock, rng: ctx.rng, onRetry }, (deadlineMs) =>
      client.complete(prompt.api, prompt.body, deadlineMs),
    ).then(
      (completion): Outcome => ({ completion, ms: ctx.clock.now() - began }),
      (thrown): Outcome => ({ error: messageOf(thrown) }),
    );
    void ctx.outside(answer).then((outcome) => ctx.self.tell({ type: 'settled', request, outcome }));
  };

  const pump = () => {
    for (const [episode, request] of waiting) {
      if (inFlight >= openai.concurrency) return;
      waiting.delete(episode);
      fly(request);
    }
  };

  return {
    handlers: {
      act({ requests }) {
        for (const request of unpackRequests(requests)) waiting.set(request.episode, request);
        pump();
      },
      release({ episodes }) {
        for (const episode of episodes) {
          waiting.delete(episode);
          flying.delete(episode);
        }
        prompting.release(episodes);
      },
      forget() {
        prompting.release([...waiting.keys(), ...flying.keys()]);
        waiting.clear();
        flying.clear();
      },
      loadWeights() {}, // the server's weights are its own
      report({ replyTo }) {
        const { price } = openai;
        const cost = (used.promptTokens * price.prompt + used.completionTokens * price.completion) / 1e6;
        const remote: RemoteUsage = { ...used, retries: { ...retries }, cost, inFlight };
        const report: InferenceReport = {
          calls: used.requests,
          turns,
          tokens: used.promptTokens + used.completionTokens,
          engineMs: used.latencyMs,
          busyMs: used.latencyMs,
          idleMs: 0,
          engine: `openai ${init.model}`,
          remote,
        };
        ctx.reply(replyTo, report);
      },
      settled({ request, outcome }) {
        inFlight--;
        const { episode } = request;
        const wanted = flying.get(episode) === request;
        if (wanted) flying.delete(episode);
        if ('completion' in outcome) {
          const { completion, ms } = outcome;
          used.requests++;
          used.promptTokens += completion.promptTokens;
          used.completionTokens += completion.completionTokens;
          used.latencyMs += ms;
          if (wanted) read(request, completion);
        } else if (wanted) fail(episode, outcome.error);
        pump();
      },
    },
    stopped() {
      client.close();
    },
  };

  function read(request: ActRequest, completion: Completion): void {
    try {
      tellActed(prompting.read(request, completion));
    } catch (thrown) {
      if (!(thrown instanceof RemoteError)) throw thrown;
      fail(request.episode, thrown.message);
    }
  }
}

async function promptingOf({ openai, model, prompt, envModule }: RemoteInferenceInit): Promise<Prompting> {
  if (openai.prompt === 'text') return new ChatPrompting(openai, model, prompt);
  return new TokenPrompting(openai, model, codecOf(await loadWorld(localUrl(new URL(envModule)))));
}
