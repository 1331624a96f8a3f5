/** One turn: what was observed, answered, done, and what came of it; beside it the policy that decided. */
import type { MadeCall, ReadTurn } from '../../core/call-episode.ts';
import { describeReply } from '../../core/call-text.ts';
import { largestOf } from '../../core/extremes.ts';
import type { ConversationMessage } from '../../core/model-call.ts';
import type { TraceTurn } from '../../storage/trace.ts';
import type { EpisodeView, Plain } from '../api.ts';
import { h, legendItem, markText, numberText, visible } from './dom.ts';

export type ViewTurn = Plain<TraceTurn>;

/** Shade: the meaning of a turn's or token's colour. */
export type Shade = 'advantage' | 'logprob' | 'none';

export const SHADES: readonly (readonly [Shade, string])[] = [
  ['advantage', 'advantage'],
  ['logprob', 'log-probability'],
  ['none', 'none'],
];

/** Log-probability of a whole decision. */
export function logprobOf({ decision }: ViewTurn): number | undefined {
  if (!decision) return undefined;
  return decision.kind === 'choice' ? decision.logprob : decision.logprobs.reduce((sum, one) => sum + one, 0);
}

/**
 * Shade of a value: green above zero and red below for advantages; red where a log-probability is low: the unlikely
 * stands out.
 */
export function shadeOf(
  shade: Shade,
  advantage: number | undefined,
  logprob: number | undefined,
  scale: number,
): string {
  const value = shade === 'advantage' ? advantage : shade === 'logprob' ? logprob : undefined;
  if (value === undefined || value === 0) return 'transparent';
  const strength = shade === 'advantage' ? Math.min(1, Math.abs(value) / scale) : Math.min(1, -value / 5);
  const side = shade === 'advantage' && value > 0 ? 'plus' : 'minus';
  return `rgb(var(--${side}) / ${(0.05 + 0.27 * strength).toFixed(2)})`;
}

export function scaleOf(turns: readonly ViewTurn[]): number {
  return largestOf(
    turns.map(({ advantage }) => Math.abs(advantage ?? 0)),
    0.2,
  );
}

/** Words for how an episode ended, with the class of their colour. */
export function outcomeText({ success, end }: { readonly success: boolean; readonly end: string }): {
  readonly text: string;
  readonly tone: string;
} {
  if (success) return { text: 'solved', tone: 'good' };
  return end === 'truncated' ? { text: 'truncated', tone: 'warn' } : { text: 'unsolved', tone: 'bad' };
}

/** Observation that answered a turn's action. */
function resultOf({ turns, finalObservation }: EpisodeView['episode'], turn: number): string {
  return turns[turn + 1]?.observation ?? finalObservation;
}

export interface TurnOptions {
  readonly turn: number;
  readonly shade: Shade;
  /** Text to mark, as `needleOf` makes it. */
  readonly needle: string;
}

/** Cards of a turn: what was read, and what was done with its result. */
export function turnElements(view: EpisodeView, turn: ViewTurn, options: TurnOptions): HTMLElement[] {
  const { episode, spelling, calls } = view;
  const { needle } = options;
  const { reward } = turn;
  const read = calls[options.turn];
  if (read) return callElements(view, turn, read, options);
  const observed = h(
    'section',
    { class: 'card' },
    h('h3', {}, `Turn ${options.turn + 1} of ${episode.turns.length}: observation`),
    h('pre', {}, markText(turn.observation, needle)),
    options.turn > 0
      ? h('details', {}, h('summary', {}, 'what it read first'), h('pre', {}, visible(episode.turns[0]!.observation)))
      : null,
  );
  const done = h(
    'section',
    { class: 'card' },
    answerElement(turn, needle),
    h('h3', {}, turn.partial ? 'Stage of an action' : 'Action'),
    actionElement(turn, spelling, options),
    rewardElement(reward, 'Result'),
    h('pre', { class: 'result' }, markText(resultOf(episode, options.turn), needle)),
  );
  return [observed, done];
}

/** Cards of a turn of calls: the messages that it read, and its calls beside their results. */
function callElements(view: EpisodeView, turn: ViewTurn, read: ReadTurn, options: TurnOptions): HTMLElement[] {
  const { episode, spelling, calls } = view;
  const { needle } = options;
  const from = read.parent === null ? 'begins a conversation' : `continues call ${read.parent}`;
  const heading = `Turn ${options.turn + 1} of ${episode.turns.length}: call ${read.call}, ${from}`;
  const first = calls[0]?.messages ?? [];
  const observed = h(
    'section',
    { class: 'card' },
    h('h3', {}, heading),
    read.tools.length > 0 ? h('p', { class: 'muted' }, visible(`tools: ${read.tools.join(', ')}`)) : null,
    messagesElement(read.messages, needle),
    options.turn > 0 ? h('details', {}, h('summary', {}, 'what it read first'), messagesElement(first, '')) : null,
    h('details', {}, h('summary', {}, 'as recorded'), h('pre', {}, markText(turn.observation, needle))),
  );
  const { reply } = read;
  const done = h(
    'section',
    { class: 'card' },
    answerElement(turn, needle),
    h('h3', {}, reply ? 'Reply' : 'Stage of a reply'),
    turn.decision || !reply ? actionElement(turn, spelling, options) : null,
    reply?.reasoning
      ? h('details', {}, h('summary', {}, 'reasoning'), h('pre', {}, markText(reply.reasoning, needle)))
      : null,
    reply && reply.content !== '' ? h('pre', { class: 'words' }, markText(reply.content, needle)) : null,
    reply && reply.calls.length > 0 ? callsElement(reply.calls, needle) : null,
    rewardElement(turn.reward, 'Then'),
    reply ? messagesElement(reply.next, needle) : null,
    options.turn === episode.turns.length - 1 && !isCall(episode.finalObservation)
      ? h('pre', { class: 'result' }, markText(episode.finalObservation, needle))
      : null,
  );
  return [observed, done];
}

/** Calls of a reply as a table, each beside its result. */
function callsElement(calls: readonly MadeCall[], needle: string): HTMLElement {
  const rows = calls.map(({ name, arguments: args, result, isError }) =>
    h(
      'tr',
      {},
      h('td', {}, h('strong', {}, markText(name, needle)), h('pre', {}, markText(args, needle))),
      h(
        'td',
        isError ? { class: 'bad' } : {},
        isError ? h('strong', {}, 'error') : null,
        result === undefined ? h('span', { class: 'muted' }, 'no result') : h('pre', {}, markText(result, needle)),
      ),
    ),
  );
  return h(
    'table',
    { class: 'calls', aria: { 'aria-label': 'calls and results' } },
    h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'Call'), h('th', { scope: 'col' }, 'Result'))),
    h('tbody', { class: 'plain' }, rows),
  );
}

/** Messages of a conversation, each under its role. */
function messagesElement(messages: readonly ConversationMessage[], needle: string): HTMLElement {
  return h(
    'ol',
    { class: 'conversation' },
    messages.map((message) => {
      const isError = message.role === 'tool' && message.isError;
      return h(
        'li',
        { class: message.role },
        h('div', { class: isError ? 'bad' : 'muted' }, isError ? 'tool, an error' : message.role),
        h('pre', {}, markText(describeReply(message), needle)),
      );
    }),
  );
}

function isCall(observation: string): boolean {
  return observation.startsWith('{"call":');
}

function rewardElement(reward: number, heading: string): HTMLElement {
  return h(
    'h3',
    { class: 'next' },
    heading,
    reward === 0 ? null : h('strong', { class: reward > 0 ? 'good' : 'bad' }, ` reward ${numberText(reward)}`),
  );
}

/** Text of a turn's action; of an episode of calls the words and the calls of the reply. */
export function actionText({ calls, episode }: EpisodeView, turn: number): string {
  const reply = calls[turn]?.reply;
  return reply ? describeReply(reply) : episode.turns[turn]!.action;
}

/** Answer of a language model, whole, and why no action could be read from it. */
function answerElement({ response, action }: ViewTurn, needle: string): HTMLElement | null {
  if (!response || (response.text === action && response.formatError === undefined)) return null;
  const { text, formatError, promptTokens, completionTokens } = response;
  return h(
    'div',
    { class: 'answer' },
    h('h3', {}, 'Answer of the model'),
    h('pre', {}, markText(text, needle)),
    formatError === undefined ? null : h('p', { class: 'bad' }, visible(`not understood: ${formatError}`)),
    h('p', { class: 'muted' }, `${promptTokens} tokens read, ${completionTokens} written`),
  );
}

/** Action element: tokens one by one where the policy wrote them, the whole action where it chose it. */
function actionElement(turn: ViewTurn, spelling: EpisodeView['spelling'], options: TurnOptions): HTMLElement {
  const { decision, action, advantage } = turn;
  const { shade, needle } = options;
  const box = h('div', { class: 'mono action' });
  if (decision?.kind !== 'tokens') {
    const style = { 'background-color': shadeOf(shade, advantage, logprobOf(turn), 1) };
    box.append(h('span', { class: 'token', style }, markText(action, needle)));
    return box;
  }
  decision.tokens.forEach((id, i) => {
    const logprob = decision.logprobs[i];
    const title = `token ${id}, log-probability ${numberText(logprob)}`;
    const style = { 'background-color': shadeOf(shade, advantage, logprob, 1) };
    box.append(h('span', { class: 'token', title, style }, visible(spelling[id] ?? `#${id}`)));
  });
  box.append(h('div', { class: 'muted' }, 'sent: ', markText(action, needle)));
  return box;
}

/** Card of the policy: probabilities as bars, its numbers, and where the time of the turn went. */
export function policyElement({ episode, spelling }: EpisodeView, turn: ViewTurn): HTMLElement {
  const listed = turn.actions.map((at) => episode.actionTable[at] ?? '');
  return h(
    'section',
    { class: 'card policy' },
    h('h3', {}, 'Policy'),
    probabilityElement(turn, listed, spelling),
    factsElement(turn),
    timeElement(turn),
    listed.length > 0 ? renderListed(turn, listed) : null,
    turn.decision ? contextElement(turn.decision.context, spelling) : null,
  );
}

/** Bar of a probability. */
interface ProbabilityBar {
  readonly name: string;
  readonly share: number;
  readonly taken: boolean;
}

/** Most tokens of a run that have a bar. */
const MAX_TOKEN_BARS = 40;

/** Parts of one in which `likeliest` keeps probabilities. */
const LIKELIEST_PARTS = 10_000;

/**
 * Bars of a choice: the likeliest actions, the one taken, and all others together.
 * @param listed texts of the turn's actions
 */
export function choiceBars(
  {
    choice,
    logprob,
    likeliest = [],
  }: Pick<Extract<ViewTurn['decision'], { kind: 'choice' }>, 'choice' | 'logprob' | 'likeliest'>,
  listed: readonly string[],
): { readonly bars: readonly ProbabilityBar[]; readonly others: number; readonly rest: number } {
  const bars: ProbabilityBar[] = [];
  for (let i = 0; i + 1 < likeliest.length; i += 2) {
    const at = likeliest[i]!;
    bars.push({ name: listed[at] ?? '', share: likeliest[i + 1]! / LIKELIEST_PARTS, taken: at === choice });
  }
  if (!bars.some(({ taken }) => taken))
    bars.push({ name: listed[choice] ?? '', share: Math.exp(logprob), taken: true });
  const others = listed.length - bars.length;
  const sum = bars.reduce((total, { share }) => total + share, 0);
  return { bars, others, rest: others === 0 ? 0 : Math.max(0, 1 - sum) };
}

function probabilityElement(
  { decision }: ViewTurn,
  listed: readonly string[],
  spelling: EpisodeView['spelling'],
): HTMLElement {
  if (!decision) {
    return h(
      'p',
      { class: 'muted' },
      'The trace has no probabilities of this turn: a script, random play or a model behind a server decided it.',
    );
  }
  if (decision.kind === 'tokens') {
    const { tokens, logprobs, masked } = decision;
    const bars = tokens.slice(0, MAX_TOKEN_BARS).map((id, i): ProbabilityBar => {
      return { name: spelling[id] ?? `#${id}`, share: Math.exp(logprobs[i] ?? Number.NaN), taken: false };
    });
    const left = tokens.length - bars.length;
    const more = left > 0 ? `; ${left} more tokens follow` : '';
    return h(
      'div',
      {},
      barsElement(bars, 'probability of each token'),
      h(
        'p',
        { class: 'muted' },
        `each token it wrote, ${masked ? 'among those that spell a listed action' : 'among all'}${more}`,
      ),
    );
  }
  const { bars, others, rest } = choiceBars(decision, listed);
  const hasLikeliest = decision.likeliest !== undefined;
  const note = hasLikeliest
    ? others > 0
      ? `${others} other actions together ${percentOf(rest)}`
      : 'these are all listed actions'
    : 'The trace holds the probability of the action taken alone, not those of the others.';
  return h('div', {}, barsElement(bars, 'probability of each action'), h('p', { class: 'muted' }, note));
}

function percentOf(share: number): string {
  return Number.isFinite(share) ? `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %` : '–';
}

function barsElement(bars: readonly ProbabilityBar[], label: string): HTMLElement {
  const list = h('ul', { class: 'shares', aria: { 'aria-label': label } });
  for (const { name, share, taken } of bars) {
    const width = `${(100 * Math.min(1, Number.isFinite(share) ? share : 0)).toFixed(1)}%`;
    list.append(
      h(
        'li',
        taken ? { class: 'taken' } : {},
        h('span', { class: 'name' }, visible(name), taken ? h('span', { class: 'sr' }, ' (taken)') : null),
        h('span', { class: 'share' }, percentOf(share)),
        h('span', { class: 'track', aria: { 'aria-hidden': 'true' } }, h('span', { style: { width } })),
      ),
    );
  }
  return list;
}

function renderListed(turn: ViewTurn, listed: readonly string[]): HTMLElement {
  const candidates = h('ul', { class: 'candidates' });
  for (const text of listed) {
    const taken = text === turn.action;
    candidates.append(
      h('li', taken ? { class: 'action' } : {}, visible(text), taken ? h('span', { class: 'sr' }, ' (taken)') : ''),
    );
  }
  return h('details', {}, h('summary', {}, `${listed.length} admissible actions`), candidates);
}

function factsElement(turn: ViewTurn): HTMLElement {
  const { decision, advantage, reward } = turn;
  const facts: [string, string][] = [['reward', numberText(reward)]];
  if (decision) {
    facts.push(
      ['log-probability', numberText(logprobOf(turn))],
      ['value', numberText(decision.value)],
      ['policy version', String(decision.version)],
    );
    if (decision.kind === 'tokens') facts.push(['sampling', decision.masked ? 'masked to admissible actions' : 'free']);
  }
  if (advantage !== undefined) facts.push(['advantage', numberText(advantage)]);
  return h(
    'dl',
    { class: 'facts' },
    facts.flatMap(([name, value]) => [h('dt', {}, name), h('dd', {}, value)]),
  );
}

/** Time of the turn by its parts: one bar, and its legend. */
function timeElement({ actMs, envMs, stages }: ViewTurn): HTMLElement {
  const { waitMs = 0, prefillMs = 0, decodeMs = 0 } = stages ?? {};
  const rest = Math.max(0, actMs - waitMs - prefillMs - decodeMs);
  const parts: (readonly [string, number, string])[] = [
    ...(stages
      ? ([
          ['waiting for a batch', waitMs, '#c9a227'],
          ['prefill', prefillMs, '#3b62d8'],
          ['decode', decodeMs, '#4fb0c6'],
        ] as const)
      : []),
    [stages ? 'messages' : 'policy', rest, '#d14b5a'],
    ['environment', envMs, '#2f9e6e'],
  ];
  const total = parts.reduce((sum, [, ms]) => sum + ms, 0);
  const words = parts.map(([name, ms]) => `${name} ${numberText(ms)} ms`).join(', ');
  const bar = h('div', { class: 'bar', role: 'img', aria: { 'aria-label': words } });
  const legend = h('ul', { class: 'legend' });
  for (const [name, ms, color] of parts) {
    bar.append(h('span', { style: { width: `${(100 * ms) / (total || 1)}%`, background: color } }));
    legend.append(legendItem(color, name, `${numberText(ms)} ms`));
  }
  return h('div', { class: 'time' }, h('h3', { class: 'next' }, `Time: ${numberText(total)} ms`), bar, legend);
}

function contextElement(context: readonly number[], spelling: EpisodeView['spelling']): HTMLElement {
  const box = h('div', { class: 'mono muted' });
  for (const id of context.slice(0, 2000))
    box.append(h('span', { class: 'token', title: `token ${id}` }, visible(spelling[id] ?? `#${id} `)));
  return h('details', {}, h('summary', {}, `${context.length} tokens read before it`), box);
}

/** Card of the end: the last observation. */
export function endElement({ episode, calls }: EpisodeView, needle: string): HTMLElement {
  const last = calls.at(-1)?.reply;
  const isShown = last !== undefined && isCall(episode.finalObservation);
  return h(
    'section',
    { class: 'card' },
    h('h3', {}, 'Final observation'),
    isShown && last.calls.length > 0 ? callsElement(last.calls, needle) : null,
    isShown ? messagesElement(last.next, needle) : h('pre', {}, markText(episode.finalObservation, needle)),
  );
}
