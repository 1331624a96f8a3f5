/**
 * World in few tokens, for the local policy: the ticket, the status bar, and of each tool what it answered last, in known words.
 * The words are the carrier's. Of the other domains only a rough picture is left.
 *
 *     ask mms messaging abroad | bar no signal data disabled | check sim status no sim card detected | call grant app permission
 *
 * Ids become kinds with a number: `L1002` is `line 2`. A tool that was called before is listed with `again`.
 */
import { readAgentCall, readAgentReply } from '../../src/core/agent-call.ts';
import type { First } from '../../src/core/env.ts';
import type { ConversationMessage } from '../../src/core/model-call.ts';
import type { Rendered, SeenTurn, Track, WindowView } from '../../src/core/view.ts';

/** Answers that the text lists, the latest kept. */
const MAX_ANSWERS = 12;
/** Words of the ticket, and of one answer. */
const MAX_ASK = 32;
const MAX_ANSWER = 16;

const MARKS = ['ask', 'bar', 'call', 'again', 'other', '|'];
/** Kinds of ids by their first letter. */
const KINDS: Readonly<Record<string, string>> = { b: 'bill', c: 'customer', d: 'device', l: 'line', p: 'plan' };
/** Words of tickets, of tools' names and of their answers. */
const WORDS =
  '2g 3g 4g 5g abroad accept activation active agents airplane already amount apn app apps available awaiting bill bills ' +
  'broken browser by calling can cannot card cellular change charge check closed connect connected connection contract ' +
  'customer data details detected device disable disabled disconnect disconnected done draft due enable enabled end ' +
  'ended error exceeded excellent failed fair false fast fi for found get good grant granted home human in installed ' +
  'internet issued limit line locked make messaging missing mms mmsc mobile mode name network no none not now number off ' +
  'on only overdue paid pay payment pending permission permissions phone pin plan poor preference preferred puk reboot ' +
  'refuel refueling request reseat reset resetting restarting restriction resume resumed roaming run saver seated send ' +
  'sent service services set settings signal sim slow sms speed status storage success successfully suspend suspended ' +
  'test toggle tool transfer true turned unable url usage used very vpn wi wifi working';
const KNOWN: ReadonlySet<string> = new Set(['bar', 'call', ...WORDS.split(' ')]);

/** Memory of an episode. */
interface Memory {
  readonly ask: string;
  /** Status bar that was shown last. */
  readonly bar: string;
  /** Answers by the tool's name, in the order of their last calls. */
  readonly answers: ReadonlyMap<string, string>;
  /** Choices of the call that is being put together. */
  readonly stage: readonly string[];
}

const track: Track<Memory> = {
  begin,
  reduce,
  situation: ({ ask, bar, answers, stage }) => JSON.stringify([ask, bar, ...answers, ...stage]),
};

/** View of the world. */
export const view: WindowView<Memory> = {
  id: 'tau2@1',
  mode: 'window',
  lexicon: [],
  words: [...new Set([...MARKS, ...KNOWN])],
  track,
  candidate: (action, { answers, stage }) => {
    const words = wordsOf(action, MAX_ANSWER);
    return stage.length === 0 && answers.has(action) ? `${words} again` : words;
  },
  render,
};

function begin({ observation }: First): Memory {
  const said = messagesOf(observation).filter(({ role }) => role === 'user');
  return {
    ask: wordsOf(said.map(({ content }) => content).join(' '), MAX_ASK),
    bar: '',
    answers: new Map(),
    stage: [],
  };
}

function reduce(memory: Memory, { action, observation, partial }: SeenTurn): Memory {
  if (partial) return { ...memory, stage: [...memory.stage, action] };
  const chosen = memory.stage[0] ?? (action.startsWith('{') ? undefined : action);
  const names = chosen === undefined ? readAgentReply(action).calls.map(({ name }) => name) : [chosen];
  const results = messagesOf(observation).filter(({ role }) => role === 'tool');
  const answers = new Map(memory.answers);
  let { bar } = memory;
  names.forEach((name, i) => {
    const [text, shown] = (results[i]?.content ?? '').split('Status Bar: ');
    answers.delete(name); // answered again: the latest
    answers.set(name, wordsOf(text!, MAX_ANSWER));
    if (shown !== undefined) bar = wordsOf(shown, MAX_ANSWER);
  });
  return { ...memory, bar, answers, stage: [] };
}

function messagesOf(observation: string): readonly ConversationMessage[] {
  return observation.startsWith('{') ? readAgentCall(observation).messages : [];
}

/** Known words, numbers below 100 and ids of a text, the first of them; `other` where it has none. */
function wordsOf(text: string, count: number): string {
  const found: string[] = [];
  for (const [word] of text.toLowerCase().matchAll(/[a-z0-9]+/g)) {
    const kind = /^[bcdlp]\d{4,}$/.test(word) ? KINDS[word[0]!] : undefined;
    if (kind !== undefined) found.push(kind, String(Number(word.slice(1)) % 100));
    else if (KNOWN.has(word) || /^[1-9]?\d$/.test(word)) found.push(word);
    if (found.length >= count) break;
  }
  return found.length > 0 ? found.join(' ') : 'other';
}

function render(first: First, _turns: readonly SeenTurn[], state?: Memory): Rendered {
  const { ask, bar, answers, stage } = state ?? begin(first);
  const listed = [...answers].slice(-MAX_ANSWERS);
  const segments = [`ask ${ask}`, ...(bar === '' ? [] : [` | bar ${bar}`])];
  const places = new Map<string, number>();
  for (const [name, answer] of listed) {
    places.set(name, segments.length);
    segments.push(` | ${wordsOf(name, MAX_ANSWER)} ${answer}`);
  }
  if (stage.length > 0) segments.push(` | call ${stage.map((choice) => wordsOf(choice, MAX_ANSWER)).join(' ')}`);
  return {
    segments,
    focus: '',
    mentions: (action) => {
      const place = stage.length === 0 ? places.get(action) : undefined;
      return place === undefined ? [] : [place];
    },
  };
}
