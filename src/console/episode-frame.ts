/** Episode frames: one turn of a recorded episode as a screen, and a whole episode as plain lines. Pure. */
import { type ReadTurn, readCallTurns } from '../core/call-episode.ts';
import type { Drawing, Panel } from '../core/draw.ts';
import { taskName } from '../core/task.ts';
import { episodeReturn } from '../core/trajectory.ts';
import { logprobOf } from '../storage/parquet.ts';
import type { RescoredMark, TraceLine, TraceTurn } from '../storage/trace.ts';
import { describeCallRead, describeFinalCall, describeThought } from './call-text.ts';
import { compact } from './numbers.ts';
import { clip, cut, fill, type Line, lineWidth, pad, type Style, span, widthOf } from './text.ts';

/**
 * Frame of one turn.
 * @param turn in [0, turns.length]: the last shows the final observation
 */
export function episodeFrame(
  episode: TraceLine,
  turn: number,
  drawing: Drawing | undefined,
  { width, height }: { readonly width: number; readonly height: number },
): Line[] {
  const here = episode.turns[turn];
  const texts = textsOf(episode);
  const panels = drawing?.panels ?? [];
  const side = panels.length > 0 && width >= 100 ? Math.floor(width * 0.45) : 0;
  const textWidth = width - side - (side > 0 ? 2 : 0);
  const left: Line[] = [
    [span(here ? 'OBSERVATION' : 'FINAL OBSERVATION', 'dim')],
    ...wrapText(texts.observed(turn), textWidth),
    [],
    ...(here ? decisionLines(episode, here, texts.done(turn), textWidth) : [outcome(episode)]),
  ];
  const drawn = panels.flatMap((panel, i) => [...(i > 0 ? [[] as Line] : []), ...panelLines(panel, side || width)]);
  const body =
    side > 0 ? joinColumns(left, drawn, textWidth) : [...left, ...(drawn.length > 0 ? [[] as Line, ...drawn] : [])];
  const head: Line[] = [title(episode, turn), []];
  const foot: Line = [span('→ ← turn   ↓ ↑ episode   home end   q quit', 'dim')];
  const room = Math.max(0, height - head.length - 1);
  return [...head, ...body.slice(0, room), foot].slice(0, height).map((line) => clip(line, width));
}

/** Lines of a whole episode, one turn after the other. */
export function episodeLines(episode: TraceLine, width: number): Line[] {
  const lines: Line[] = [title(episode, undefined), ...openingLines(episode, width)];
  const texts = textsOf(episode);
  episode.turns.forEach((turn, t) => {
    lines.push([], [span(`turn ${t + 1}`, 'bold'), span(`  ${turnFacts(turn)}`, 'dim')]);
    // One by one: a call does not take as many arguments as an observation may have lines.
    for (const line of wrapText(texts.observed(t), width)) lines.push(line);
    for (const line of answerLines(turn, width)) lines.push(line);
    const done = actionLines(texts.done(t));
    const reward = span(turn.reward === 0 ? '' : `  reward ${turn.reward}`, 'green');
    done.forEach((line, i) => lines.push(i === done.length - 1 ? [...line, reward] : line));
  });
  return [...lines, [], ...wrapText(texts.observed(episode.turns.length), width), outcome(episode)];
}

/** Texts of an episode as a person reads them: of calls the conversation, of other worlds what was recorded. */
interface EpisodeTexts {
  /** Observation of a turn; at `turns.length` the final one. */
  observed(turn: number): string;
  /** Action of a turn. */
  done(turn: number): string;
}

function textsOf({ turns, finalObservation }: TraceLine): EpisodeTexts {
  const read = readCallTurns(turns, finalObservation);
  if (!read) {
    return {
      observed: (turn) => turns[turn]?.observation ?? finalObservation,
      done: (turn) => turns[turn]!.action,
    };
  }
  const branchOf = ({ call, parent }: ReadTurn, turn: number) => {
    const isNext = parent === null ? turn === 0 : parent === read[turn - 1]?.call;
    return isNext ? '' : `[call ${call}, ${parent === null ? 'a new conversation' : `after call ${parent}`}]\n`;
  };
  return {
    observed(turn) {
      const here = read[turn];
      if (!here) return describeFinalCall(finalObservation);
      return here.messages.length === 0 ? '' : branchOf(here, turn) + describeCallRead(here);
    },
    done: (turn) => (read[turn]!.reply ? describeThought(read[turn]!.reply!) : turns[turn]!.action),
  };
}

/** Lines of an action, a sign before the first. */
function actionLines(text: string): Line[] {
  return text.split('\n').map((line, i): Line => [span(i === 0 ? '> ' : '  ', 'cyan'), span(line, 'bold')]);
}

function title(episode: TraceLine, turn: number | undefined): Line {
  const { turns, horizon, purpose, label, parent } = episode;
  const place =
    turn === undefined ? `${turns.length} turns` : `turn ${Math.min(turn + 1, turns.length)} of ${turns.length}`;
  const where = parent ? `${place} · episode ${parent.episode} up to turn ${parent.turn}` : place;
  return [
    span(`episode ${episode.episode}  `, 'bold'),
    span(taskName(episode.task)),
    span(`  ${label ? `${label} · ` : ''}${purpose} · horizon ${horizon} · ${where}`, 'dim'),
  ];
}

function outcome(episode: TraceLine): Line {
  const { end, success, rescored } = episode;
  return [
    span(success ? 'solved' : 'not solved', success ? 'green' : 'red'),
    span(`  ${end}, return ${compact(episodeReturn(episode))}`),
    ...(rescored ? [span(` (by ${describeRescored(rescored)})`, 'dim')] : []),
  ];
}

/** Describes who gave an episode its reward, and the recorded one. */
function describeRescored({ verify, old }: RescoredMark): string {
  const sum = old.rewards.reduce((total, reward) => total + reward, 0);
  return `${verify}; recorded: ${old.success ? 'solved' : 'not solved'}, return ${compact(sum)}`;
}

/** Facts of a turn: latencies, and the judgement of policy and learner. */
function turnFacts(turn: TraceTurn): string {
  const { decision, actMs, envMs, stages, advantage } = turn;
  const facts: string[] = [];
  if (decision) {
    facts.push(
      `version ${decision.version}`,
      `logprob ${compact(logprobOf(turn))}`,
      `value ${compact(decision.value)}`,
    );
  }
  if (advantage !== undefined) facts.push(`advantage ${compact(advantage)}`);
  const parts = stages
    ? ` (wait ${compact(stages.waitMs)}, prefill ${compact(stages.prefillMs)}, decode ${compact(stages.decodeMs)})`
    : '';
  facts.push(`policy ${compact(actMs)} ms${parts}`, `env ${compact(envMs)} ms`);
  return facts.join(' · ');
}

/** Instructions that a language model read first. */
function openingLines({ turns }: TraceLine, width: number): Line[] {
  const opening = turns[0]?.response?.opening;
  if (!opening) return [];
  const text = opening.system === undefined ? opening.instructions : `${opening.system}\n\n${opening.instructions}`;
  return [[], [span('INSTRUCTIONS', 'dim')], ...wrapText(text, width)];
}

/** Whole answer of a language model, and why no action could be read from it. */
function answerLines({ response, action }: TraceTurn, width: number): Line[] {
  if (!response || (response.text === action && response.formatError === undefined)) return [];
  const why = response.formatError === undefined ? [] : [[span(`not understood: ${response.formatError}`, 'red')]];
  return [[span('ANSWER', 'dim')], ...wrapText(response.text, width), ...why];
}

function decisionLines(episode: TraceLine, turn: TraceTurn, done: string, width: number): Line[] {
  const listed = [...turn.actions].map((at) => episode.actionTable[at] ?? '');
  return [
    ...answerLines(turn, width),
    [span('ACTION', 'dim'), span(turn.reward === 0 ? '' : `  reward ${turn.reward}`, 'green')],
    ...actionLines(done),
    ...wrapText(turnFacts(turn), width).map((line): Line => line.map(({ text }) => span(text, 'dim'))),
    ...(listed.length > 0 ? [[], [span(`${listed.length} ADMISSIBLE`, 'dim')] as Line] : []),
    ...listed.slice(0, 12).map((text): Line => [span(text === turn.action ? '• ' : '  ', 'cyan'), span(text)]),
    ...(listed.length > 12 ? [[span(`  and ${listed.length - 12} more`, 'dim')]] : []),
  ];
}

const MARKS: Readonly<Record<string, Style>> = { good: 'green', bad: 'red', goal: 'yellow' };
const CELLS: Readonly<Record<string, Style>> = {
  red: 'red',
  green: 'green',
  blue: 'blue',
  purple: 'magenta',
  yellow: 'yellow',
  grey: 'dim',
  white: 'bold',
};

function panelLines(panel: Panel, width: number): Line[] {
  const head: Line = [span(panel.title, 'dim')];
  if (panel.kind === 'text') return [head, ...panel.lines.map((text): Line => [span(cut(text, width))])];
  if (panel.kind === 'list') {
    const items = panel.items.map(
      ({ name, count, mark }): Line => [
        span(pad(count === undefined ? '' : String(count), 4, 'start'), 'bold'),
        span(` ${name}`, mark ? MARKS[mark]! : 'plain'),
      ],
    );
    return [head, ...(items.length > 0 ? items : [[span('   nothing', 'dim')] as Line])];
  }
  return [
    head,
    ...panel.rows.map(
      (row): Line =>
        row.map(({ glyph, color, dim }) => span(pad(glyph, 2), dim ? 'dim' : color ? CELLS[color]! : 'plain')),
    ),
  ];
}

/**
 * Wraps text at blanks; longer words break where the line ends. Linear in the text: widths are summed up, never asked again.
 */
function wrapText(text: string, width: number): Line[] {
  return text.split('\n').flatMap((paragraph) => {
    const lines: string[] = [];
    let line = '';
    let used = 0;
    const end = () => {
      lines.push(line.trimEnd());
      line = '';
      used = 0;
    };
    for (const word of paragraph.split(/(?<=\s)(?=\S)/)) {
      const shown = widthOf(word.trimEnd());
      if (used > 0 && used + shown > width) end();
      if (shown <= width) {
        line += word;
        used += widthOf(word);
        continue;
      }
      for (const char of word) {
        const next = widthOf(char);
        if (used > 0 && used + next > width) end();
        line += char;
        used += next;
      }
    }
    return [...lines, line.trimEnd()].map((one): Line => [span(one)]);
  });
}

function joinColumns(left: readonly Line[], right: readonly Line[], width: number): Line[] {
  return Array.from({ length: Math.max(left.length, right.length) }, (_, i) => {
    const cell = left[i] ?? [];
    return lineWidth(right[i] ?? []) === 0 ? cell : [...fill(cell, width), span('  '), ...right[i]!];
  });
}
