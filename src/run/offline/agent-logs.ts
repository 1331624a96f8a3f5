/**
 * Agent logs: conversations with tools as demonstrations for the world of an agent. A turn's observation is the call that the
 * program would have made, its action the reply, both as JSON (agent-call.ts). Pure.
 */
import { NO_USAGE, printAgentCall, printAgentReply } from '../../core/agent-call.ts';
import { messageOf, UserError } from '../../core/errors.ts';
import type { AssistantMessage, ModelCall } from '../../core/model-call.ts';
import { recordOf } from '../../core/record.ts';
import { chat } from '../../gateway/dialects/chat.ts';
import type { DemonstratedTurn, Demonstration } from './demonstrations.ts';

/**
 * Converts conversations in OpenAI's form, `{ messages, tools?, reward? }`. Every turn of the model is learnt; what comes
 * before it is read.
 * @param where names the source in messages
 * @throws {UserError} BAD_TRACE
 */
export function convertAgentLog(conversations: readonly unknown[], where: string): Demonstration[] {
  return conversations.map((conversation, i) => {
    const source = `${where}, conversation ${i}`;
    const { messages, tools, reward } = Array.isArray(conversation)
      ? { messages: conversation }
      : (recordOf(conversation) ?? {});
    let call: ModelCall;
    try {
      ({ call } = chat.parse({ model: '', messages, ...(tools === undefined ? {} : { tools }) }, NOTHING_KEPT));
    } catch (thrown) {
      throw new UserError(
        'BAD_TRACE',
        `${source}: expected { messages, tools? } as OpenAI has them: ${messageOf(thrown)}`,
      );
    }
    const turns = turnsOf(call);
    if (turns.length === 0) throw new UserError('BAD_TRACE', `${source}: expected a message before one of the model`);
    return {
      source,
      task: `conversation ${i}`,
      turns,
      finalObservation: '',
      score: typeof reward === 'number' ? reward : 1,
    };
  });
}

const NOTHING_KEPT = { response: () => undefined, item: () => undefined };

function turnsOf({ messages, tools }: ModelCall): DemonstratedTurn[] {
  const turns: DemonstratedTurn[] = [];
  let begin = 0;
  for (const [at, message] of messages.entries()) {
    if (message.role !== 'assistant' || at === 0) continue;
    // A turn right behind another one continues no reply: its conversation begins anew.
    const isRoot = turns.length === 0 || begin === at;
    const call = turns.length;
    const observation = printAgentCall({
      call,
      parent: isRoot ? null : call - 1,
      messages: messages.slice(isRoot ? 0 : begin, at),
      ...(isRoot ? { tools } : {}),
    });
    turns.push({ observation, action: actionOf(message) });
    begin = at + 1;
  }
  return turns;
}

function actionOf({ content, reasoning, calls = [] }: AssistantMessage): string {
  const finish = calls.length > 0 ? 'calls' : 'stop';
  return printAgentReply({ content, reasoning, calls, finish, usage: NO_USAGE });
}
