/** Episodes turn by turn. */

import type { EpisodeView } from '../api.ts';
import { matchTurns } from '../search.ts';
import { choice, h, numberText, visible } from './dom.ts';
import { drawingElement } from './drawing.ts';
import {
  actionText,
  endElement,
  logprobOf,
  outcomeText,
  policyElement,
  SHADES,
  type Shade,
  scaleOf,
  shadeOf,
  turnElements,
} from './turn.ts';

export interface EpisodeOptions {
  readonly turn: number;
  readonly shade: Shade;
  /** Text to mark, as `needleOf` makes it; empty for none. */
  readonly needle: string;
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
  const { turn, needle } = options;
  const { turns } = view.episode;
  const current = turns[turn];
  const left = current
    ? [...turnElements(view, current, options), policyElement(view, current)]
    : [endElement(view, needle)];
  const right = stateElement(view, turn, current ? 'before the action' : 'at the end');
  return h(
    'div',
    {},
    headElement(view, options),
    turnStrip(view, options),
    h('div', { class: 'episode' }, h('div', {}, left), right),
    conversationElement(view, options),
  );
}

/** Head of an episode: how it ended comes first. */
function headElement({ episode }: EpisodeView, options: EpisodeOptions): HTMLElement {
  const { turns, task, label, purpose, horizon, rescored, parent } = episode;
  const { text, tone } = outcomeText(episode);
  const reward = turns.reduce((sum, one) => sum + one.reward, 0);
  const facts = `${task.env} task ${task.index}, seed ${task.seed}${label ? ` · ${label}` : ''} · ${purpose} · horizon ${horizon}`;
  const recorded = rescored?.old.rewards.reduce((sum, one) => sum + one, 0);
  const marks = [
    ...(rescored ? [`reward by ${rescored.verify}, recorded ${numberText(recorded!)}`] : []),
    ...(parent ? [`episode ${parent.episode} up to turn ${parent.turn}`] : []),
  ];
  return h(
    'div',
    { class: 'row' },
    h('strong', { class: `outcome ${tone}` }, text),
    h('span', {}, `return ${numberText(reward)}`),
    h('h2', { class: 'title', tabindex: '-1', aria: { 'data-focus': 'title' } }, `Episode ${episode.episode}`),
    h('span', { class: 'muted' }, visible([facts, ...marks].join(' · '))),
    h('a', { href: options.listHref, aria: { 'data-focus': 'list' } }, '← episodes'),
    h('a', { href: options.groupHref, aria: { 'data-focus': 'group' } }, `group ${episode.group} side by side`),
    choice('colour', options.shade, SHADES, (value) => options.setShade(value as Shade)),
  );
}

function stateElement({ drawings, screenshots }: EpisodeView, turn: number, when: string): HTMLElement {
  const drawing = drawings[turn];
  const src = screenshots[turn];
  const alt = `screenshot ${when}`;
  const picture = src ? h('img', { class: 'screenshot', src, alt }) : null;
  if (drawing || picture)
    return h(
      'div',
      { class: 'state' },
      h('p', { class: 'muted' }, `State ${when}`),
      picture,
      drawing ? drawingElement(drawing) : null,
    );
  const why =
    drawings.length === 0 ? 'This world draws nothing; the text is all there is.' : 'No drawing of this state.';
  return h('p', { class: 'muted' }, why);
}

function turnStrip(view: EpisodeView, { turn, shade, go, needle }: EpisodeOptions): HTMLElement {
  const { turns, finalObservation } = view.episode;
  const scale = scaleOf(turns);
  const strip = h('nav', { class: 'turns', aria: { 'aria-label': 'turns' } });
  turns.forEach((one, t) => {
    const found = needle !== '' && matchTurns({ turns: [one], finalObservation: '' }, needle) !== undefined;
    strip.append(
      h(
        'button',
        {
          type: 'button',
          class: `${one.reward === 0 ? '' : 'reward'} ${found ? 'found' : ''}`.trim(),
          title: visible(actionText(view, t)),
          aria: {
            'aria-current': t === turn ? 'step' : undefined,
            'aria-label': `turn ${t + 1}: ${visible(actionText(view, t))}${found ? ' (found)' : ''}`,
            'data-focus': `turn ${t}`,
          },
          style: { 'background-color': shadeOf(shade, one.advantage, logprobOf(one), scale) },
          on: { click: () => go(t) },
        },
        t + 1,
      ),
    );
  });
  const found = needle !== '' && matchTurns({ turns: [], finalObservation }, needle) !== undefined;
  strip.append(
    h(
      'button',
      {
        type: 'button',
        class: found ? 'found' : '',
        aria: { 'aria-current': turn === turns.length ? 'step' : undefined, 'data-focus': `turn ${turns.length}` },
        on: { click: () => go(turns.length) },
      },
      'end',
    ),
  );
  return strip;
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
