/** Members of a group side by side. */
import { largestOf } from '../../core/extremes.ts';
import type { EpisodeView, GroupView } from '../api.ts';
import { choice, h, numberText, visible } from './dom.ts';
import { actionText, logprobOf, outcomeText, SHADES, type Shade, scaleOf, shadeOf } from './turn.ts';

/** Most members in one row; more take further rows. */
const MAX_COLUMNS = 8;

export interface GroupOptions {
  readonly shade: Shade;
  readonly setShade: (shade: Shade) => void;
  readonly hrefOf: (at: number, turn: number) => string;
  readonly listHref: string;
}

/** Group element: all members in columns, with their coloured actions. */
export function groupElement({ members }: GroupView, options: GroupOptions): HTMLElement {
  const { shade, setShade, listHref } = options;
  const first = members[0]?.episode;
  const scale = largestOf(members.map(({ episode }) => scaleOf(episode.turns)));
  const solved = members.filter(({ episode }) => episode.success).length;
  const facts = first
    ? `${first.task.env} task ${first.task.index}${first.label ? ` · ${first.label}` : ''} · horizon ${first.horizon} · ${first.purpose}`
    : '';
  const rows = Math.max(1, Math.ceil(members.length / MAX_COLUMNS));
  const columns = Math.max(1, Math.ceil(members.length / rows));
  return h(
    'div',
    {},
    h(
      'div',
      { class: 'row' },
      h('strong', { class: 'outcome' }, `${solved} of ${members.length} solved`),
      h('h2', { class: 'title' }, `Group ${first?.group ?? ''}`),
      h('span', { class: 'muted' }, visible(facts)),
      h('a', { href: listHref, aria: { 'data-focus': 'list' } }, '← episodes'),
      choice('colour', shade, SHADES, (value) => setShade(value as Shade)),
    ),
    first
      ? h(
          'details',
          { class: 'card' },
          h('summary', {}, 'what all of them read first'),
          h('pre', {}, visible(first.turns[0]?.observation ?? first.finalObservation)),
        )
      : null,
    h(
      'div',
      { class: 'members', style: { '--columns': String(columns) } },
      members.map((member) => memberElement(member, scale, options)),
    ),
  );
}

function memberElement(view: EpisodeView, scale: number, { shade, hrefOf }: GroupOptions): HTMLElement {
  const { at, episode } = view;
  const reward = episode.turns.reduce((sum, one) => sum + one.reward, 0);
  const { text, tone } = outcomeText(episode);
  const list = h('ol');
  episode.turns.forEach((turn, t) => {
    list.append(
      h(
        'li',
        { style: { 'background-color': shadeOf(shade, turn.advantage, logprobOf(turn), scale) } },
        h('a', { href: hrefOf(at, t), class: turn.reward === 0 ? '' : 'action' }, visible(actionText(view, t))),
        turn.reward === 0 ? '' : h('strong', {}, ` ${turn.reward > 0 ? '+' : ''}${numberText(turn.reward)}`),
      ),
    );
  });
  return h(
    'section',
    { class: 'card' },
    h(
      'h3',
      {},
      h('strong', { class: tone }, text),
      ' ',
      h('a', { href: hrefOf(at, 0) }, `episode ${episode.episode}`),
      h('div', {}, `return ${numberText(reward)}, ${episode.turns.length} turns`),
    ),
    list,
  );
}
