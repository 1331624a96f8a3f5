/**
 * Remote inference actor: a policy behind a server in the place of the batching inference actor; the same `act` in, the
 * same `acted` out.
 *
 * A turn that no attempt answers fails its episode as `policy`: it is issued again or dropped by the rollouts, and never
 * becomes a reward.
 */

import { UserError } from '../../src/core/errors.ts';
import { AgentPrompting } from '../../src/policy/remote/agent-prompting.ts';
import { ChatPrompting } from '../../src/policy/remote/chat-prompting.ts';
import { OpenAIClient } from '../../src/policy/remote/openai-client.ts';
import type { Prompting } from '../../src/policy/remote/prompting.ts';
import { RemotePolicy } from '../../src/policy/remote/remote-policy.ts';
import { TokenPrompting } from '../../src/policy/remote/token-prompting.ts';
import { packActed, unpackRequests } from '../../src/policy/turn-batch.ts';
import { divideUnanswered } from '../../src/policy/unanswered.ts';
import type { Behavior, BehaviorFactory, Context } from '../../src/runtime/actor.ts';
import { localUrl } from '../../src/runtime/module-url.ts';
import { codecOf } from '../../src/text/reading/codec-of.ts';
import { loadReading } from '../../src/world/open-world.ts';
import type { ActedEvent, InferenceCommand, InferenceReport } from '../inference/protocol.ts';
import type { Noticed } from '../recorder/protocol.ts';
import type { EnvObserved, Truncated } from '../rollout/protocol.ts';
import type { RemoteInferenceInit } from './protocol.ts';

/** Internal: an answer came, or none will. */
type Internal = InferenceCommand | { readonly type: 'settled' };

export default function remoteInferenceActor(init: RemoteInferenceInit): BehaviorFactory<Internal> {
  return async (ctx) => serve(ctx, init, await promptingOf(init));
}

function serve(ctx: Context<Internal>, init: RemoteInferenceInit, prompting: Prompting): Behavior<Internal> {
  const { openai, limits, server, model } = init;
  const rollouts = ctx.resolve<ActedEvent | EnvObserved | Truncated>(init.replyPath);
  const recorder = ctx.resolve<Noticed>(init.noticePath);
  const policy = new RemotePolicy({
    openai,
    limits,
    client: new OpenAIClient({ ...server, maxConnections: openai.concurrency }),
    prompting,
    clock: ctx.clock,
    rng: ctx.rng,
    outside: (work) => ctx.outside(work),
    onNotice: (text) => void recorder.tell({ type: 'noticed', text }),
    onSettled: () => void ctx.self.tell({ type: 'settled' }),
  });
  return {
    handlers: {
      act({ requests }) {
        policy.submit(unpackRequests(requests));
      },
      release: ({ episodes }) => policy.release(episodes),
      forget: () => policy.forget(),
      loadWeights() {}, // the server's weights are its own
      useAdapter() {},
      report({ replyTo }) {
        const { usage, turns, tokens } = policy;
        const { requests: calls, latencyMs } = usage;
        const times = { engineMs: latencyMs, busyMs: latencyMs, idleMs: 0 };
        const report: InferenceReport = { calls, turns, tokens, ...times, engine: `openai ${model}`, remote: usage };
        ctx.reply(replyTo, report);
      },
      settled() {
        const { denial } = policy;
        if (denial) {
          throw new UserError(
            'REMOTE_FAILED',
            `the server refuses the key: ${denial.message}; set another one and resume`,
          );
        }
        const { acted, unanswered } = policy.take();
        if (acted.length > 0) void rollouts.tell({ type: 'acted', turns: packActed(acted), tokens: policy.tokens });
        const { truncated, failed } = divideUnanswered(unanswered, ctx.path);
        if (truncated.length > 0) void rollouts.tell({ type: 'truncated', episodes: truncated });
        if (failed.length > 0) void rollouts.tell({ type: 'observed', events: failed });
      },
    },
    stopped: () => policy.dispose(),
  };
}

async function promptingOf({ openai, chat, model, prompt, envModule }: RemoteInferenceInit): Promise<Prompting> {
  if (openai.prompt === 'text') {
    return prompt.tools ? new AgentPrompting(openai, model) : new ChatPrompting(openai, chat, model, prompt);
  }
  return new TokenPrompting(openai, model, codecOf(await loadReading(localUrl(new URL(envModule)))));
}
