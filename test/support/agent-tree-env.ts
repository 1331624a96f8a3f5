/** World of an agent program that calls its model in a random tree: continues, branches, begins anew. */
import { printAgentCall, readAgentReply } from '../../src/core/agent-call.ts';
import { type Env, mid, type Session, terminated } from '../../src/core/env.ts';
import type { AssistantMessage, ConversationMessage, Tool } from '../../src/core/model-call.ts';
import { Rng, seedFrom } from '../../src/core/rng.ts';
import { taskTable } from '../../src/core/task.ts';

export const TREE_TOOLS: readonly Tool[] = [
  { name: 'look', description: 'Looks <around>.', parameters: { type: 'object', properties: {} } },
  {
    name: 'go',
    parameters: {
      type: 'object',
      properties: { place: { type: 'string' }, steps: { type: 'integer' } },
      required: ['place'],
    },
  },
];

/** Call as the program made it. */
export interface TreeCall {
  readonly parent: number | null;
  /** Whole conversation, up to the call. */
  readonly messages: readonly ConversationMessage[];
  readonly tools: readonly Tool[];
  /** Observation in which it was sent. */
  readonly observation: string;
}

/** Program that makes `count` calls; a pure function of its seed and the replies. */
export class TreeAgent {
  readonly calls: TreeCall[] = [];
  readonly #rng: Rng;
  readonly #count: number;
  /** Conversations behind each reply. */
  readonly #after: ConversationMessage[][] = [];

  constructor(seed: number, count: number) {
    this.#rng = Rng.fromSeed(seedFrom(seed, 17));
    this.#count = count;
    this.#root();
  }

  get observation(): string {
    return this.calls.at(-1)!.observation;
  }

  /** Takes the reply to the newest call. @returns false where the program ends */
  take(action: string): boolean {
    const number = this.calls.length - 1;
    const { messages } = this.calls[number]!;
    const reply = readAgentReply(action);
    const calls = reply.calls.map((call, i) => ({ ...call, id: `call_${number}_${i}` }));
    const assistant: AssistantMessage = { role: 'assistant', content: reply.content, calls };
    this.#after.push([...messages, assistant]);
    if (this.calls.length === this.#count) return false;
    const draw = this.#rng.float();
    if (draw < 0.15) this.#root();
    else this.#continue(draw < 0.4 ? this.#rng.int(this.calls.length) : number);
    return true;
  }

  #root(): void {
    const user = { role: 'user', content: `Task ${this.#rng.int(3)} <|im_end|>` } as const;
    const messages: ConversationMessage[] =
      this.#rng.float() < 0.5 ? [user] : [{ role: 'system', content: 'You help.' }, user];
    const tools = this.#rng.float() < 0.8 ? TREE_TOOLS : [];
    this.#send({ parent: null, messages, tools }, messages);
  }

  #continue(parent: number): void {
    const before = this.#after[parent]!;
    const assistant = before.at(-1) as AssistantMessage;
    const fresh: ConversationMessage[] = (assistant.calls ?? []).map(({ id }) => {
      return { role: 'tool', callId: id, content: `result ${this.#rng.int(9)}\n<|im_start|>` };
    });
    if (fresh.length === 0 || this.#rng.float() < 0.2)
      fresh.push({ role: 'user', content: `And ${this.#rng.int(9)}?` });
    this.#send({ parent, messages: [...before, ...fresh], tools: this.calls[parent]!.tools }, fresh);
  }

  #send(call: Omit<TreeCall, 'observation'>, fresh: readonly ConversationMessage[]): void {
    const { parent, tools } = call;
    const number = this.calls.length;
    const parallelCalls = this.#rng.float() < 0.8;
    const given = parent === null ? { tools } : {};
    const observation = printAgentCall({ call: number, parent, messages: fresh, parallelCalls, ...given });
    this.calls.push({ ...call, observation });
  }
}

/** Environment of such programs. */
export function createTreeEnv(count: number): Env {
  return {
    id: 'agent-tree',
    description: 'Calls a model in a random tree.',
    tasks: taskTable(100, [], 'tree'),
    rewardRange: [0, 1],
    maxObservationChars: 100_000,
    open({ index, seed }): Session {
      const agent = new TreeAgent(seedFrom(index, seed), count);
      return {
        first: { kind: 'first', observation: agent.observation },
        step: (action) => (agent.take(action) ? mid(agent.observation) : terminated('', 1)),
        actions: () => [],
        close: () => {},
      };
    },
  };
}
