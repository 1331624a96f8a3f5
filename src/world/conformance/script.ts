/**
 * Scripts that a law plays against an environment. Generated from our own generator, so that a seed repeats a check,
 * and shrunk when a law fails, so that a person reads three actions instead of forty.
 */
import type { Env, EnvStep, Session, TimeStep } from '../../core/env.ts';
import type { Rng } from '../../core/rng.ts';
import type { Task } from '../../core/task.ts';
import { rejectAfter } from './deadline.ts';

/** Move: a text, a listed action, or a listed action that got garbled on its way. */
export type Move =
  | { readonly say: string }
  | { readonly pick: number }
  | { readonly garble: number; readonly how: number };

/** Script of an episode: what is done, turn by turn. */
export interface Script {
  /** Task index, in the env's table. */
  readonly index: number;
  /** uint32. */
  readonly seed: number;
  readonly moves: readonly Move[];
}

/** Draws a text that a policy of some world might send; malformed ones should be among them. */
export type ActionTexts = (rng: Rng) => string;

/** Played episode: the trace, `first` included, and the actions sent. */
export interface Played {
  readonly trace: readonly TimeStep[];
  readonly actions: readonly string[];
}

const MAX_MOVES = 40;
const LONG = 5000;

/** Awkward texts, which trip parsers whatever the world. */
const AWKWARD: readonly string[] = [
  '',
  ' ',
  '\n',
  '\t\r\n',
  '\u0000',
  '\uFEFF',
  '__proto__',
  'constructor',
  'toString',
  'null',
  'undefined',
  'NaN',
  '-0',
  '1e309',
  '99999999999999999999999',
  '{}',
  '[]',
  '"',
  '\\',
  '%s%n',
  '$(x)',
  '<|endoftext|>',
  'Thought: I do not know.\nAction:',
  'héllo wörld',
  '行动：向前',
  '🙂🙃',
  '\u202Etxet',
];

/** Draws any text at all: awkward ones, random code units (lone surrogates among them), very long ones. */
export function drawAnyText(rng: Rng): string {
  const kind = rng.int(10);
  if (kind < 5) return rng.pick(AWKWARD);
  if (kind < 6)
    return rng
      .pick(AWKWARD)
      .repeat(1 + rng.int(LONG / 2))
      .slice(0, LONG);
  const alphabet = kind < 9 ? 0x80 : 0x1_0000;
  return String.fromCharCode(...Array.from({ length: rng.int(60) }, () => rng.int(alphabet)));
}

/** Draws a script over a random task of the env. @param texts texts of this world, mixed with any texts */
export function drawScript(rng: Rng, env: Pick<Env, 'tasks'>, texts: ActionTexts = drawAnyText): Script {
  const moves = Array.from({ length: rng.int(MAX_MOVES + 1) }, (): Move => {
    const kind = rng.int(10);
    if (kind < 6) return { pick: rng.next() };
    if (kind < 7) return { garble: rng.next(), how: rng.next() };
    return { say: kind < 9 ? texts(rng) : drawAnyText(rng) };
  });
  return { index: rng.int(env.tasks.count), seed: rng.next(), moves };
}

/** Garbling that language models do to an action on its way. */
const GARBLES: readonly ((text: string, n: number) => string)[] = [
  (text) => text.toUpperCase(),
  (text) => ` ${text}  `,
  (text) => text.replaceAll(' ', '  '),
  (text) => `${text}.`,
  (text) => `${text}\n${text}`,
  (text) => `"${text}"`,
  (text) => `Thought: let me try.\nAction: ${text}`,
  (text, n) => text.slice(0, n % (text.length + 1)),
  (text, n) => text.slice(0, n % (text.length + 1)) + text.slice((n % (text.length + 1)) + 1),
];

/** Action that a move stands for now. */
export function actionOf(move: Move, session: Pick<Session, 'actions'>): string {
  if ('say' in move) return move.say;
  const listed = session.actions();
  const at = 'pick' in move ? move.pick : move.garble;
  const text = listed.length === 0 ? '' : listed[at % listed.length]!;
  return 'pick' in move ? text : GARBLES[move.how % GARBLES.length]!(text, move.how >>> 8);
}

export function taskOf(env: Env, { index, seed }: Script): Task {
  return { env: env.id, index, seed };
}

/** Opens a script's task; a promise that does not settle is a failure like any other. */
export function open(env: Env, script: Script): Promise<Session> | Session {
  return rejectAfter(env.open(taskOf(env, script)), 'open');
}

/** Takes one action. */
export function step(session: Session, action: string): Promise<EnvStep> | EnvStep {
  return rejectAfter(session.step(action), `step(${quoteText(action)})`);
}

/** Releases a session. */
export async function close(session: Session): Promise<void> {
  await rejectAfter(session.close(), 'close');
}

/** Plays a script and stops where the episode does. */
export async function play(env: Env, script: Script): Promise<Played> {
  const session = await open(env, script);
  const trace: TimeStep[] = [session.first];
  const actions: string[] = [];
  for (const move of script.moves) {
    if (trace.at(-1)!.kind === 'terminated') break;
    const action = actionOf(move, session);
    actions.push(action);
    trace.push(await step(session, action));
  }
  await close(session);
  return { trace, actions };
}

/**
 * Shrinks to the smallest script found that still fails: shorter runs of moves first, then plainer texts.
 * @param fails whether a script still breaks the law
 * @param tries scripts tried at most
 */
export async function shrink(
  script: Script,
  fails: (script: Script) => Promise<boolean>,
  tries = 300,
): Promise<Script> {
  let best = script;
  let left = tries;
  const better = async (candidate: Script) => {
    if (left-- <= 0 || !(await fails(candidate))) return false;
    best = candidate;
    return true;
  };
  for (let size = best.moves.length; size >= 1; size = Math.floor(size / 2)) {
    for (let at = 0; at < best.moves.length && left > 0; ) {
      const moves = [...best.moves.slice(0, at), ...best.moves.slice(at + size)];
      if (!(await better({ ...best, moves }))) at += size;
    }
  }
  for (let at = 0; at < best.moves.length && left > 0; at++) {
    const move = best.moves[at]!;
    const plainer: Move[] = 'say' in move ? [{ say: '' }, { say: move.say.slice(0, 8) }] : [{ say: '' }, { pick: 0 }];
    for (const one of plainer) {
      if ('say' in one && 'say' in move && one.say === move.say) continue;
      if (await better({ ...best, moves: best.moves.with(at, one) })) break;
    }
  }
  return best;
}

/** Quotes a text as a person can read and paste it, cut where it is long. */
export function quoteText(text: string): string {
  const shown = text.length > 60 ? `${text.slice(0, 60)}…` : text;
  return `${JSON.stringify(shown)}${text.length > 60 ? ` (${text.length} characters)` : ''}`;
}
