/** Episode of a task as a policy plays it: the opening, the answers to its replies, the reward at the end. */
import { type AgentReply, callId } from '../../src/core/agent-call.ts';
import type { MaybePromise } from '../../src/core/env.ts';
import type { Judge } from '../../src/core/judge.ts';
import type { ConversationMessage, Tool, ToolChoice } from '../../src/core/model-call.ts';
import type { ToolAnswer, ToolEpisode, ToolResult } from '../../src/core/tool-world.ts';
import { type Domain, openEnvironment } from './domain.ts';
import type { Environment } from './environment.ts';
import type { Tau2Options } from './options.ts';
import { DEFAULT_LIMITS, type Message, Orchestrator, readCall, STOP } from './orchestrator.ts';
import { PyError } from './python/errors.ts';
import { dumps } from './python/format.ts';
import type { PyValue } from './python/values.ts';
import {
  checkActions,
  checkAssertions,
  checkCommunicated,
  isAtTarget,
  noReward,
  printForJudge,
  type RewardInfo,
  rewardOf,
  statementsOf,
} from './reward.ts';
import type { TauTask } from './tasks.ts';
import type { SimulatedUser, UserMessage } from './users.ts';

/** Longest result that is shown, in UTF-16 units. The longest that the recordings have is 18,260. */
const MAX_RESULT_CHARS = 131_072;
/** Calls of one reply that are made. */
const MAX_CALLS = 32;
/** Bound of an observation: its results in JSON, where a control character takes six. */
export const MAX_OBSERVATION_CHARS = 6 * MAX_CALLS * MAX_RESULT_CHARS + 2 ** 20;

const INSTRUCTIONS = `You are a customer service agent that helps the user according to the <policy> provided below.
In each turn you can either:
- Send a message to the user.
- Make a tool call.
You cannot do both at the same time.

Try to be helpful and always follow the policy. Always make sure you generate valid JSON only.`;

const SOLO_INSTRUCTIONS = `You are a customer service agent that helps the user according to the <policy> provided below.
You will be provided with a ticket that contains the user's request.
You will need to plan and call the appropriate tools to solve the ticket.

You cannot communicate with the user, only make tool calls.
Stop when you consider that you have solved the ticket.
To do so, send a message containing a single tool call to the \`done\` tool. Do not include any other tool calls in this last message.

Always follow the policy. Always make sure you generate valid JSON only.`;

/** Tool by which an agent without a user ends the episode. */
const DONE: Tool = {
  name: 'done',
  description: 'Call this function when you are done with the task.',
  parameters: { properties: {}, title: 'parameters', type: 'object' },
};

/** Tools of the agent. @param isSolo with those of the user, and `done` */
export function listTools(domain: Domain, isSolo: boolean): readonly Tool[] {
  const own = domain.tools('assistant').map(({ tool }) => tool);
  return isSolo ? [...own, ...domain.tools('user').map(({ tool }) => tool), DONE] : own;
}

/** System prompt of the agent, as the original writes it; the ticket of an agent without a user follows as a message. */
export function systemPrompt(domain: Domain, isSolo: boolean): string {
  const instructions = isSolo ? SOLO_INSTRUCTIONS : INSTRUCTIONS;
  return `<instructions>\n${instructions}\n</instructions>\n<policy>\n${domain.policy(isSolo)}\n</policy>`;
}

/** Parts of an episode beside its task. */
export interface EpisodeParts {
  /** Tools of the agent. */
  readonly tools: readonly Tool[];
  /** Makes the environment after the task's gold actions, which episodes may share: it is only read. */
  readonly gold: () => Environment;
  /** Makes the user, who may ask the episode about its state; absent: the agent plays alone. */
  readonly createUser?: ((episode: EpisodeState) => SimulatedUser) | undefined;
  /** Judge of statements about the conversation; absent: nobody judges them. */
  readonly judge?: Judge | undefined;
}

/** State of an episode as its user may look at it. */
export interface EpisodeState {
  /** True where the databases are as the user wants them, and what it wants to hear was said. */
  readonly isDone: () => boolean;
  readonly environment: Environment;
}

/** Episode of one task. */
export class Tau2Episode implements ToolEpisode {
  readonly tools: readonly Tool[];
  readonly toolChoice: ToolChoice;
  readonly values: readonly string[] | undefined;
  readonly #task: TauTask;
  readonly #gold: () => Environment;
  readonly #environment: Environment;
  readonly #course: Orchestrator;
  readonly #user: SimulatedUser | undefined;
  readonly #judge: Judge | undefined;
  #opening: readonly ConversationMessage[] = [];
  #userCalls = 0;
  #replies = 0;

  private constructor(task: TauTask, options: Tau2Options, { tools, gold, createUser, judge }: EpisodeParts) {
    const { domain, maxSteps, maxErrors } = options;
    const isSolo = createUser === undefined;
    this.#task = task;
    this.#gold = gold;
    this.#judge = judge;
    this.tools = tools;
    this.toolChoice = isSolo ? 'required' : 'auto';
    this.values = domain.values;
    this.#environment = openEnvironment(domain, task, isSolo);
    this.#course = new Orchestrator(task, this.#environment, { ...DEFAULT_LIMITS, maxSteps, maxErrors }, isSolo);
    this.#user = createUser?.({ isDone: () => this.#isDone(), environment: this.#environment });
  }

  /** Opens an episode: the user says the first word. @throws what the user throws */
  static open(task: TauTask, options: Tau2Options, parts: EpisodeParts): MaybePromise<Tau2Episode> {
    const episode = new Tau2Episode(task, options, parts);
    const begin = () => {
      const isSolo = parts.createUser === undefined;
      const system: ConversationMessage = { role: 'system', content: systemPrompt(options.domain, isSolo) };
      const history = episode.#course.messages.filter(isForAgent).map(toConversation);
      const ticket = isSolo ? [{ role: 'user' as const, content: ticketOf(task) }] : [];
      episode.#opening = [system, ...history, ...ticket];
      return episode;
    };
    const first = episode.#converse();
    return typeof first === 'object' ? first.then(begin) : begin();
  }

  get opening(): readonly ConversationMessage[] {
    return this.#opening;
  }

  take(reply: AgentReply): MaybePromise<ToolAnswer> {
    if (this.#course.ending) {
      // The user has ended it with its first words: nothing is made or counted any more.
      return this.#answer(
        reply.calls.map(() => ({ text: 'Error: not made: the episode is over', isError: true })),
        undefined,
      );
    }
    const calls = reply.calls.slice(0, MAX_CALLS);
    const n = this.#replies++;
    const isSolo = this.#user === undefined;
    if (isSolo && calls.some(({ name }) => name === DONE.name)) {
      this.#course.add(STOP, []);
      const results = reply.calls.map(({ name }) => ({
        text: name === DONE.name ? 'Done.' : 'Not made: done ends the task.',
      }));
      return this.#answer(results, undefined);
    }
    if (calls.length === 0 && reply.content.trim() === '') {
      // The original makes such an episode anew. Here it is over: a policy answers for what it writes.
      return { results: [], user: formatEnd('agent_error', noReward()), reward: 0, end: { success: false } };
    }
    this.#course.add(
      reply.content,
      calls.map((call, i) => readCall(callId(n, i), call)),
    );
    const made = this.#course.next === 'tools' ? this.#course.execute() : [];
    const results = reply.calls.map((_, i): ToolResult => {
      const result = made[i] ?? { text: `Error: not made: a message holds ${MAX_CALLS} calls at most`, error: true };
      return { text: cut(result.text), ...(result.error ? { isError: true } : {}) };
    });
    const said = this.#converse();
    return typeof said === 'object' ? said.then((text) => this.#answer(results, text)) : this.#answer(results, said);
  }

  /** Lets the user speak and call until it is the agent's turn. @returns the user's last text; undefined where it said nothing */
  #converse(last?: string): MaybePromise<string | undefined> {
    const course = this.#course;
    let said = last;
    while (this.#user && !course.ending && course.next !== 'assistant') {
      if (course.next === 'tools') {
        course.execute();
        continue;
      }
      const message = this.#user.next(course.messages);
      if ('then' in message) return message.then((one) => this.#converse(this.#addUser(one)));
      said = this.#addUser(message);
    }
    return said;
  }

  /** Takes a message of the user. @returns its text, where it has no calls */
  #addUser({ text, calls }: UserMessage): string | undefined {
    this.#course.add(
      text,
      calls.map((call) => ({ ...call, id: `user_${this.#userCalls++}` })),
    );
    return calls.length > 0 ? undefined : text;
  }

  #answer(results: readonly ToolResult[], said: string | undefined): MaybePromise<ToolAnswer> {
    const { ending } = this.#course;
    if (!ending) return { results, user: said, reward: 0 };
    const finish = (info: RewardInfo): ToolAnswer => {
      const end = formatEnd(ending, info);
      return {
        results,
        user: said === undefined ? end : `${said}\n${end}`,
        reward: info.reward,
        metrics: { ...info.breakdown, ...(info.notJudged > 0 ? { notJudged: info.notJudged } : {}) },
        end: { success: info.reward >= 1 - 1e-6 },
      };
    };
    const isStopped = ending === 'user_stop' || ending === 'agent_stop';
    if (!isStopped) return finish(noReward());
    const statements = statementsOf(this.#task);
    if (!this.#judge || statements.length === 0) return finish(this.#reward());
    const text = printForJudge(this.#course.messages);
    return this.#judge.check(text, statements).then((verdicts) => finish(this.#reward(verdicts)));
  }

  #reward(verdicts?: readonly boolean[]): RewardInfo {
    try {
      return rewardOf(this.#task, this.#course.messages, this.#environment, this.#gold(), verdicts);
    } catch (thrown) {
      if (thrown instanceof PyError) return noReward(); // an assertion about something that the agent has removed
      throw thrown;
    }
  }

  /** True where the databases are as the user wants them, and what it wants to hear was said. */
  #isDone(): boolean {
    const { criteria } = this.#task;
    const { messages } = this.#course;
    if (!criteria) return true;
    const { basis, actions, communicate } = criteria;
    if (basis.includes('DB') && !isAtTarget(this.#environment, this.#gold())) return false;
    if (basis.includes('COMMUNICATE') && !checkCommunicated(communicate, messages).every(Boolean)) return false;
    if (basis.includes('ACTION') && !checkActions(actions ?? [], messages).every(Boolean)) return false;
    if (!basis.includes('ENV_ASSERTION')) return true;
    try {
      return checkAssertions(criteria, this.#environment).every(Boolean);
    } catch {
      return false; // it is about something that is not there yet
    }
  }
}

function ticketOf({ ticket, instructions }: TauTask): string {
  const text = ticket ?? (typeof instructions === 'string' ? instructions : Object.values(instructions).join('\n'));
  return `<ticket>\n${text}\n</ticket>`;
}

/** True for a message that the agent sees: the user's calls and their results are its own. */
function isForAgent({ role, calls, answers }: Message): boolean {
  return answers ? answers.side === 'assistant' : role === 'assistant' || calls.length === 0;
}

function toConversation({ role, content, calls, answers }: Message): ConversationMessage {
  if (role === 'tool') {
    return { role, callId: answers!.id, content: cut(content), ...(answers!.error ? { isError: true } : {}) };
  }
  if (role === 'user') return { role, content };
  const made = calls.map(({ id, name, args }) => ({ id, name, arguments: dumps(args as Map<string, PyValue>) }));
  return { role, content, ...(made.length > 0 ? { calls: made } : {}) };
}

function cut(text: string): string {
  return (text.length > MAX_RESULT_CHARS ? `${text.slice(0, MAX_RESULT_CHARS)}…` : text).toWellFormed();
}

/** Last line of an episode: why it ended, and what it was rewarded for. */
function formatEnd(ending: string, { reward, breakdown, notJudged }: RewardInfo): string {
  const parts = Object.entries(breakdown).map(([name, value]) => `${name} ${value}`);
  if (notJudged > 0) parts.push(`NL_ASSERTION not judged (${notJudged})`);
  const without = notJudged > 0 ? ' without a judge' : '';
  return `[${ending}] reward${without} ${reward}${parts.length > 0 ? `: ${parts.join(', ')}` : ''}`;
}
