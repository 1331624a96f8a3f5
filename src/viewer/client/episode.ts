/** Episodes turn by turn, and the members of a group side by side. */
import type { TraceTurn } from '../../record/trace.ts';
import type { EpisodeView, GroupView, Plain } from '../api.ts';
import { choice, h, numberText, visible } from './dom.ts';
import { drawingElement } from './drawing.ts';

type ViewTurn = Plain<TraceTurn>;

/** Shade: the meaning of a turn's or token's colour. */
export type Shade = 'advantage' | 'logprob' | 'none';

const SHADES: readonly (readonly [Shade, string])[] = [
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
function shadeOf(shade: Shade, advantage: number | undefined, logprob: number | undefined, scale: number): string {
  const value = shade === 'advantage' ? advantage : shade === 'logprob' ? logprob : undefined;
  if (value === undefined || value === 0) return 'transparent';
  const strength = shade === 'advantage' ? Math.min(1, Math.abs(value) / scale) : Math.min(1, -value / 5);
  const side = shade === 'advantage' && value > 0 ? 'plus' : 'minus';
  return `rgb(var(--${side}) / ${(0.05 + 0.27 * strength).toFixed(2)})`;
}

function scaleOf(turns: readonly ViewTurn[]): number {
  return Math.max(0.2, ...turns.map(({ advantage }) => Math.abs(advantage ?? 0)));
}

export interface EpisodeOptions {
  readonly turn: number;
  readonly shade: Shade;
  readonly go: (turn: number) => void;
  readonly setShade: (shade: Shade) => void;
  readonly groupHref: string;
  readonly listHref: string;
}

/**
 * Element of an episode.
 * @param options.turn in [0, turns.length]; the last is the end
 */
export function episodeElement(view: EpisodeView, options: EpisodeOptions): HTMLElement {
  const { episode, drawings } = view;
  const { turn } = options;
  const { turns, task } = episode;
  const outcome = episode.success
    ? h('strong', { class: 'good' }, 'solved')
    : h(
        'strong',
        { class: episode.end === 'truncated' ? 'warn' : 'bad' },
        episode.end === 'truncated' ? 'truncated by the horizon' : 'ended unsolved',
      );
  const reward = turns.reduce((sum, one) => sum + one.reward, 0);
  const head = h(
    'div',
    { class: 'row' },
    h('a', { href: options.listHref }, '← episodes'),
    h('h2', { style: { margin: '0', 'font-size': '1.05rem' } }, `Episode ${episode.episode}`),
    h(
      'span',
      { class: 'muted' },
      visible(
        `${task.env} task ${task.index}, seed ${task.seed}${episode.label ? ` · ${episode.label}` : ''} · ${episode.purpose} · horizon ${episode.horizon}`,
      ),
    ),
    outcome,
    h('span', {}, `return ${numberText(reward)}`),
    h('a', { href: options.groupHref }, `group ${episode.group} side by side`),
    choice('colour', options.shade, SHADES, (value) => options.setShade(value as Shade)),
  );
  const drawing = drawings[turn];
  const right = drawing
    ? drawingElement(drawing)
    : h(
        'p',
        { class: 'muted' },
        drawings.length === 0 ? 'This world draws nothing; the text is all there is.' : 'No drawing of this state.',
      );
  const left = turn < turns.length ? turnElement(view, turns[turn]!, options) : endElement(view);
  const pages = h('div', { class: 'episode' }, left, right);
  return h('div', {}, head, turnStrip(turns, options), pages, conversationElement(view, options));
}

function turnStrip(turns: readonly ViewTurn[], { turn, shade, go }: EpisodeOptions): HTMLElement {
  const scale = scaleOf(turns);
  const strip = h('nav', { class: 'turns', aria: { 'aria-label': 'turns' } });
  turns.forEach((one, t) => {
    strip.append(
      h(
        'button',
        {
          type: 'button',
          class: one.reward === 0 ? '' : 'reward',
          title: visible(one.action),
          aria: {
            'aria-current': t === turn ? 'step' : undefined,
            'aria-label': `turn ${t + 1}: ${visible(one.action)}`,
          },
          style: { 'background-color': shadeOf(shade, one.advantage, logprobOf(one), scale) },
          on: { click: () => go(t) },
        },
        t + 1,
      ),
    );
  });
  const last = turn === turns.length ? 'step' : undefined;
  strip.append(
    h('button', { type: 'button', aria: { 'aria-current': last }, on: { click: () => go(turns.length) } }, 'end'),
  );
  return strip;
}

function turnElement(view: EpisodeView, turn: ViewTurn, options: EpisodeOptions): HTMLElement {
  const { episode, spelling } = view;
  const listed = turn.actions.map((at) => episode.actionTable[at] ?? '');
  const candidates = h('ul', { class: 'candidates' });
  for (const text of listed)
    candidates.append(
      h(
        'li',
        text === turn.action ? { class: 'action' } : {},
        visible(text),
        text === turn.action ? h('span', { class: 'sr' }, ' (taken)') : '',
      ),
    );
  return h(
    'section',
    { class: 'card' },
    h('h3', {}, `Turn ${options.turn + 1} of ${episode.turns.length}: observation`),
    h('pre', {}, visible(turn.observation)),
    answerElement(turn),
    h('h3', { style: { 'margin-top': '.8rem' } }, turn.partial ? 'Stage of an action' : 'Action'),
    actionElement(turn, spelling, options.shade),
    factsElement(turn),
    latencyBar(turn),
    options.turn > 0
      ? h('details', {}, h('summary', {}, 'what it read first'), h('pre', {}, visible(episode.turns[0]!.observation)))
      : null,
    listed.length > 0 ? h('details', {}, h('summary', {}, `${listed.length} admissible actions`), candidates) : null,
    turn.decision ? contextElement(turn.decision.context, spelling) : null,
  );
}

/** Answer of a language model, whole, and why no action could be read from it. */
function answerElement({ response, action }: ViewTurn): HTMLElement | null {
  if (!response || (response.text === action && response.formatError === undefined)) return null;
  const { text, formatError, promptTokens, completionTokens } = response;
  return h(
    'div',
    { class: 'answer' },
    h('h3', { style: { 'margin-top': '.8rem' } }, 'Answer of the model'),
    h('pre', {}, visible(text)),
    formatError === undefined ? null : h('p', { class: 'bad' }, visible(`not understood: ${formatError}`)),
    h('p', { class: 'muted' }, `${promptTokens} tokens read, ${completionTokens} written`),
  );
}

/** Whole conversation of an episode on one page; each answer leads to its turn. */
function conversationElement({ conversation }: EpisodeView, { go }: EpisodeOptions): HTMLElement | null {
  if (conversation.length === 0) return null;
  const list = h('ol', { class: 'conversation' });
  let turn = 0;
  for (const { role, content, reward, formatError } of conversation) {
    const at = reward === undefined ? undefined : turn++;
    const name = at === undefined ? h('span', {}, role) : turnButton(at, go);
    const earned = reward ? h('strong', { class: 'good' }, ` +${numberText(reward)}`) : '';
    list.append(
      h(
        'li',
        { class: role },
        h('div', { class: 'muted' }, name, earned),
        h('pre', {}, visible(content)),
        formatError === undefined ? null : h('p', { class: 'bad' }, visible(`not understood: ${formatError}`)),
      ),
    );
  }
  return h('details', { class: 'card' }, h('summary', {}, `whole conversation, ${conversation.length} messages`), list);
}

function turnButton(turn: number, go: (turn: number) => void): HTMLElement {
  return h('button', { type: 'button', on: { click: () => go(turn) } }, `assistant, turn ${turn + 1}`);
}

/** Action element: tokens one by one where the policy wrote them, the whole action where it chose it. */
function actionElement(turn: ViewTurn, spelling: EpisodeView['spelling'], shade: Shade): HTMLElement {
  const { decision, action, advantage } = turn;
  const box = h('div', { class: 'mono action' });
  if (decision?.kind !== 'tokens') {
    box.append(
      h(
        'span',
        { class: 'token', style: { 'background-color': shadeOf(shade, advantage, logprobOf(turn), 1) } },
        visible(action),
      ),
    );
    return box;
  }
  decision.tokens.forEach((id, i) => {
    const logprob = decision.logprobs[i];
    const text = spelling[id] ?? `#${id}`;
    box.append(
      h(
        'span',
        {
          class: 'token',
          title: `token ${id}, log-probability ${numberText(logprob)}`,
          style: { 'background-color': shadeOf(shade, advantage, logprob, 1) },
        },
        visible(text),
      ),
    );
  });
  box.append(h('div', { class: 'muted' }, `sent: ${visible(action)}`));
  return box;
}

function factsElement(turn: ViewTurn): HTMLElement {
  const { decision, advantage, reward, actMs, envMs, stages } = turn;
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
  facts.push([
    'policy',
    `${numberText(actMs)} ms${stages ? `: waiting ${numberText(stages.waitMs)}, prefill ${numberText(stages.prefillMs)}, decode ${numberText(stages.decodeMs)}` : ''}`,
  ]);
  facts.push(['environment', `${numberText(envMs)} ms`]);
  return h('dl', { class: 'facts' }, ...facts.flatMap(([name, value]) => [h('dt', {}, name), h('dd', {}, value)]));
}

/** Time of the turn by its parts, as one bar. */
function latencyBar({ actMs, envMs, stages }: ViewTurn): HTMLElement {
  const { waitMs = 0, prefillMs = 0, decodeMs = 0 } = stages ?? {};
  const rest = Math.max(0, actMs - waitMs - prefillMs - decodeMs);
  const parts: [string, number, string][] = [
    ['waiting', waitMs, '#c9a227'],
    ['prefill', prefillMs, '#3b62d8'],
    ['decode', decodeMs, '#4fb0c6'],
    [stages ? 'on the way' : 'policy', rest, '#d14b5a'],
    ['environment', envMs, '#2f9e6e'],
  ];
  const total = parts.reduce((sum, [, ms]) => sum + ms, 0) || 1;
  const words = parts.map(([name, ms]) => `${name} ${numberText(ms)} ms`).join(', ');
  const bar = h('div', { class: 'bar', role: 'img', title: words, aria: { 'aria-label': words } });
  for (const [, ms, color] of parts)
    bar.append(h('span', { style: { width: `${(100 * ms) / total}%`, background: color } }));
  return bar;
}

function contextElement(context: readonly number[], spelling: EpisodeView['spelling']): HTMLElement {
  const box = h('div', { class: 'mono muted' });
  for (const id of context.slice(0, 2000))
    box.append(h('span', { class: 'token', title: `token ${id}` }, visible(spelling[id] ?? `#${id} `)));
  return h('details', {}, h('summary', {}, `${context.length} tokens read before it`), box);
}

function endElement({ episode }: EpisodeView): HTMLElement {
  return h(
    'section',
    { class: 'card' },
    h('h3', {}, 'Final observation'),
    h('pre', {}, visible(episode.finalObservation)),
  );
}

/** Group element: members in columns, with their coloured actions; the best first return to compare with. */
export function groupElement(
  { members }: GroupView,
  shade: Shade,
  setShade: (shade: Shade) => void,
  hrefOf: (at: number, turn: number) => string,
  listHref: string,
): HTMLElement {
  const first = members[0]?.episode;
  const scale = Math.max(...members.map(({ episode }) => scaleOf(episode.turns)));
  const columns = members.map(({ at, episode }) => {
    const reward = episode.turns.reduce((sum, one) => sum + one.reward, 0);
    const list = h('ol');
    episode.turns.forEach((turn, t) => {
      list.append(
        h(
          'li',
          { style: { 'background-color': shadeOf(shade, turn.advantage, logprobOf(turn), scale) } },
          h('a', { href: hrefOf(at, t), class: turn.reward === 0 ? '' : 'action' }, visible(turn.action)),
          turn.reward === 0 ? '' : h('strong', {}, ` +${numberText(turn.reward)}`),
        ),
      );
    });
    const result = episode.success ? 'solved' : episode.end === 'truncated' ? 'truncated' : 'unsolved';
    return h(
      'section',
      { class: 'card' },
      h(
        'h3',
        {},
        h('a', { href: hrefOf(at, 0) }, `Episode ${episode.episode}`),
        `: ${result}, return ${numberText(reward)}, ${episode.turns.length} turns`,
      ),
      list,
    );
  });
  return h(
    'div',
    {},
    h(
      'div',
      { class: 'row' },
      h('a', { href: listHref }, '← episodes'),
      h('h2', { style: { margin: '0', 'font-size': '1.05rem' } }, `Group ${first?.group ?? ''}`),
      h(
        'span',
        { class: 'muted' },
        first
          ? visible(
              `${first.task.env} task ${first.task.index}${first.label ? ` · ${first.label}` : ''} · horizon ${first.horizon} · ${first.purpose}`,
            )
          : '',
      ),
      choice('colour', shade, SHADES, (value) => setShade(value as Shade)),
    ),
    first
      ? h(
          'details',
          {},
          h('summary', {}, 'what all of them read first'),
          h('pre', {}, visible(first.turns[0]?.observation ?? first.finalObservation)),
        )
      : null,
    h('div', { class: 'members' }, ...columns),
  );
}
