/** Oracle: makes the gold actions of a task one by one, asks the user for those of its own, says what must be said, and ends. */
import { type AgentReply, NO_USAGE, printAgentReply } from '../../src/core/agent-call.ts';
import type { Oracle } from '../../src/core/env.ts';
import type { Tau2Options } from './options.ts';
import { dumps } from './python/format.ts';
import type { PyValue } from './python/values.ts';

/** Makes the oracle. It gives up where the user does not stop. */
export function oracle({ domain, user, userTurns }: Tau2Options): Oracle {
  return ({ index }) => {
    const { actions, communicate } = domain.tasks()[index]!.criteria ?? { actions: null, communicate: [] };
    const isSolo = user === 'solo';
    const replies = (actions ?? []).map(({ side, name, args }) => {
      if (isSolo || side === 'assistant') return reply('', [{ name, arguments: dumps(args as Map<string, PyValue>) }]);
      return reply(`Please run ${[name, ...(args as Map<string, PyValue>).values()].join(' ')}.`);
    });
    if (isSolo) replies.push(reply('', [{ name: 'done', arguments: '{}' }]));
    else replies.push(reply(['All done.', ...communicate].join(' ')));
    let next = 0;
    return (step) => {
      if (step.kind === 'first') next = 0;
      if (step.kind === 'terminated') return undefined;
      const planned = replies[next++];
      if (planned !== undefined || isSolo) return planned;
      return next <= replies.length + userTurns ? reply('Is there anything else?') : undefined;
    };
  };
}

function reply(content: string, calls: AgentReply['calls'] = []): string {
  return printAgentReply({ content, calls, finish: calls.length > 0 ? 'calls' : 'stop', usage: NO_USAGE });
}
