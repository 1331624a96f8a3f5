/** Scripts of a policy: which calls an agent makes, what each continues, and what is answered. */
import type { ModelReply } from '../../../src/core/model-call.ts';
import type { GatewayEpisode, WaitingCall } from '../../../src/gateway/gateway.ts';
import { foldReply } from '../fold.ts';
import { textReply } from '../lab.ts';
import { dialectOf, type RecordedExchange, type Recording } from '../recordings.ts';

/** Call that an agent makes. */
export interface ScriptedCall {
  /** Place in the script of the call that it continues; null where it begins a chain. */
  readonly parent: number | null;
  /** Reply, or the failure in its place. */
  readonly answer: ModelReply | Fault;
}

/** Failure: a refusal, or a reply that does not come until the client leaves. */
type Fault = { readonly status: number; readonly message: string; readonly code?: string | undefined } | 'hang';

/** Script, and what becomes of its agent. */
export interface Script {
  readonly calls: readonly ScriptedCall[];
  readonly outcome: {
    readonly answer?: string | undefined;
    /** Tools in the order in which they ran; absent where nothing is asked of it. */
    readonly log?: string | undefined;
    /** Class of the error that the client throws. */
    readonly error?: string | undefined;
  };
}

function callsOf(content: string, ...made: readonly (readonly [name: string, args: object])[]): ModelReply {
  const calls = made.map(([name, args]) => ({ id: '', name, arguments: JSON.stringify(args) }));
  return { content, calls, finish: 'calls', usage: { promptTokens: 7, completionTokens: 3 } };
}

const ANSWER = 'The answer is Canberra.';
const SEARCH = callsOf('I will search.', ['search', { query: 'capital of Australia' }]);
const PARALLEL = callsOf('', ['search', { query: 'capital' }], ['search', { query: 'largest city' }]);
const READ = callsOf('', ['read', { id: 'd2' }]);
const GIVE = callsOf('', ['answer', { text: 'Canberra' }]);
const RESEARCH = callsOf('I will ask.', ['researcher', { input: 'What is the capital of Australia?' }]);
const TEXT = textReply(ANSWER);
const UNICODE = 'The answer is Canberra 🦘🇦🇺 é \u2028 "quoted" \\ back\nline';

/** Chain of replies. @param outcome its answer and its log */
function chain(replies: readonly ScriptedCall['answer'][], outcome: Script['outcome']): Script {
  return { calls: replies.map((answer, i) => ({ parent: i === 0 ? null : i - 1, answer })), outcome };
}

function at(parent: number | null, answer: ScriptedCall['answer']): ScriptedCall {
  return { parent, answer };
}

/** Scripts by kind of scenario, for those that were not recorded. */
const SCRIPTS = {
  plain: chain([TEXT], { answer: ANSWER, log: '' }),
  unicode: chain([textReply(UNICODE)], { answer: UNICODE, log: '' }),
  abort: chain([TEXT], { answer: 'aborted' }),
  structured: chain([textReply('{"answer":"Canberra","confidence":0.9}')], { answer: 'Canberra', log: '' }),
  tools: chain([SEARCH, READ, GIVE, TEXT], { answer: ANSWER, log: 'search,read,answer' }),
  parallel: chain([PARALLEL, READ, GIVE, TEXT], { answer: ANSWER, log: 'search,search,read,answer' }),
  required: chain([SEARCH, READ, GIVE], { answer: 'Canberra', log: 'search,read,answer' }),
  forced: chain([GIVE], { answer: 'Canberra' }),
  subagent: {
    calls: [at(null, RESEARCH), at(null, SEARCH), at(1, READ), at(2, GIVE), at(3, TEXT), at(0, TEXT)],
    outcome: { answer: ANSWER, log: 'search,read,answer' },
  },
  two: {
    calls: [SEARCH, READ, GIVE, TEXT].flatMap((reply, turn) =>
      [0, 1].map((agent) => at(turn === 0 ? null : 2 * (turn - 1) + agent, reply)),
    ),
    outcome: { answer: `${ANSWER}|${ANSWER}` },
  },
  fault: {
    calls: [at(null, SEARCH), at(0, { status: 500, message: 'fault' }), at(0, READ), at(2, GIVE), at(3, TEXT)],
    outcome: { answer: ANSWER, log: 'search,read,answer' },
  },
} as const satisfies Readonly<Record<string, Script>>;

/** Finds the script of a scenario by the words of its name. @returns undefined where there is none */
export function scriptOf(scenario: string): Script | undefined {
  const kind = Object.keys(SCRIPTS).find((key) => scenario.split('-').includes(key));
  return kind === undefined ? undefined : SCRIPTS[kind as keyof typeof SCRIPTS];
}

/** Makes the script of a recording: the calls that reached a model, and what was replied. */
export function scriptOfRecording({ head, exchanges }: Recording): Script {
  const places = new Map<number, number>();
  const asked = exchanges.filter(({ request, reply }) => {
    return dialectOf(request.path) !== undefined && !reply.chunks?.join('').includes('thread_unsupported_request');
  });
  for (const [place, { n }] of asked.entries()) places.set(n, place);
  const parents = new Map(head.tree.map(({ n, parent }) => [n, parent]));
  const calls = asked.map((exchange) => {
    const parent = parents.get(exchange.n)!;
    return { parent: parent === null ? null : places.get(parent)!, answer: answerOf(exchange) };
  });
  const { answer, log, error } = head.outcome;
  return { calls, outcome: { answer, log, error: error?.split(':')[0] } };
}

function answerOf({ request, reply }: RecordedExchange): ScriptedCall['answer'] {
  if (reply.hung) return 'hang';
  if (reply.status === 0) return { status: 503, message: 'dropped' }; // the gateway drops none
  const text = reply.chunks!.join('');
  if (reply.status === 200) {
    const { usage = { promptTokens: 0, completionTokens: 0 }, ...folded } = foldReply(
      dialectOf(request.path)!,
      text,
      reply.headers!['content-type']!,
    ).reply;
    return { ...folded, usage };
  }
  const { error } = JSON.parse(text) as { error: { message: string; code?: string } };
  return { status: reply.status, message: error.message, code: error.code };
}

/**
 * Answers the calls of an episode by a script. A call is the first one of the script that continues what it continues and
 * has not been made.
 * @param signal ends it
 * @returns the calls, in order of arrival, and the place of each in the script
 * @throws for a call that the script does not have
 */
export async function followScript(
  episode: GatewayEpisode,
  { calls }: Script,
  signal: AbortSignal,
): Promise<readonly { readonly place: number; readonly call: WaitingCall }[]> {
  const made: { place: number; call: WaitingCall }[] = [];
  while (!signal.aborted) {
    const call = await episode.next(signal).catch(() => undefined);
    if (!call) break;
    const parent = call.parent === null ? null : made[call.parent]!.place;
    const place = calls.findIndex((one, i) => one.parent === parent && !made.some((other) => other.place === i));
    if (place < 0) {
      call.refuse(400, 'no such call in the script');
      throw new Error(`call ${call.number} continues ${parent}: the script has no such call left`);
    }
    made.push({ place, call });
    const { answer } = calls[place]!;
    if (answer === 'hang') {
      if (!call.gone.aborted) await new Promise((resolve) => call.gone.addEventListener('abort', resolve));
      call.refuse(503, 'its client left');
    } else if ('status' in answer) call.refuse(answer.status, answer.message, answer.code);
    else await call.answer(renameCalls(answer, call));
  }
  return made;
}

/** Names calls as the request does where a client numbers its tools through the process, e.g. `extract-2`. */
function renameCalls(reply: ModelReply, { call: { tools } }: WaitingCall): ModelReply {
  const stem = (name: string) => name.replace(/-\d+$/, '');
  const calls = reply.calls.map((made) => {
    if (tools.some(({ name }) => name === made.name)) return made;
    return { ...made, name: tools.find(({ name }) => stem(name) === stem(made.name))?.name ?? made.name };
  });
  return { ...reply, calls };
}
