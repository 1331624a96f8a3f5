/**
 * Laws that every environment obeys, free of any test runner: `longplay check-env` runs them for users, and a test
 * declares one test for each. A law that is broken throws, and the message states what was seen.
 */
import { isDeepStrictEqual } from 'node:util';
import {
  ACTION_LIMITS,
  ACTIONS_PER_STAGE,
  type Env,
  type EnvStep,
  MAX_PARTIAL_STEPS,
  type Session,
  type TimeStep,
} from '../../core/env.ts';
import { messageOf } from '../../core/errors.ts';
import { Rng } from '../../core/rng.ts';
import type { SeenTurn, View } from '../../core/view.ts';
import type { World } from '../../core/world.ts';
import { ViewCodec } from '../../text/reading/view-codec.ts';
import {
  type ActionTexts,
  actionOf,
  close,
  drawScript,
  open,
  play,
  quoteText,
  type Script,
  step,
  taskOf,
} from './script.ts';

/** Subject of the laws: the env and its module. */
export interface Subject {
  /** Makes a fresh environment; the laws compare two of them. */
  readonly createEnv: () => Env;
  /** Texts a policy of this world might send; any texts are mixed in. */
  readonly texts?: ActionTexts;
  /** Other exports of the world's module; the laws on it are skipped where it is absent. */
  readonly module?: Pick<World, 'view' | 'draw'>;
}

/** Case of a law. */
export interface Case {
  readonly subject: Subject;
  readonly env: Env;
  readonly script: Script;
}

/** Law that every environment keeps. */
export interface Law {
  readonly name: string;
  /** True for a law that is tried on many scripts, false for one that is tried once on the env itself. */
  readonly scripted: boolean;
  /** True for a law that plays an episode twice: not asked of a world whose actions must not be repeated (`Env.replay`). */
  readonly repeats: boolean;
  /** Checks the law: rejects with what was seen when it is broken. */
  readonly holds: (one: Case) => Promise<void>;
}

/** Broken law: an error that states what was seen instead of what the law asks for. */
class BrokenLaw extends Error {}

function requireThat(holds: boolean, seen: () => string): void {
  if (!holds) throw new BrokenLaw(seen());
}

/** Laws of environments, in the order in which they are tried. */
export const laws: readonly Law[] = [
  law('takes any string as an action', async ({ env, script }) => {
    const session = await open(env, script);
    requireThat(
      session.first?.kind === 'first' && typeof session.first.observation === 'string',
      () => `open answered with first = ${formatValue(session.first)}, not a first step`,
    );
    for (const move of script.moves) {
      const action = actionOf(move, session);
      const answer: EnvStep = await step(session, action); // not stopped by `terminated`: that must do no harm either
      requireThat(isEnvStep(answer), () => `${quoteText(action)} was answered with ${formatValue(answer)}`);
    }
    await close(session);
    await close(session);
  }),
  repeating('replays a task and its actions to the same trace', async ({ subject, env, script }) => {
    const { trace, actions } = await play(env, script);
    const again = await play(subject.createEnv(), { ...script, moves: actions.map((say) => ({ say })) });
    requireSame(trace, again.trace, actions);
  }),
  repeating('lets episodes be reset, stepped and closed in any order', async ({ subject, env, script }) => {
    const other = { ...script, index: (script.index + 1) % env.tasks.count };
    const seats = [seat(script), seat(script), seat(other)];
    const alone = [await play(subject.createEnv(), script), await play(subject.createEnv(), other)];
    const rng = Rng.fromSeed(script.seed);
    for (let left = 8 * (script.moves.length + 2); left > 0; left--) {
      const one = rng.pick(seats);
      const { trace, actions } = alone[one.script === other ? 1 : 0]!;
      const { session } = one;
      if (!session) {
        one.session = await open(env, one.script);
        one.turn = 0;
        requireSame(trace.slice(0, 1), [one.session.first], [], 'beside other episodes');
      } else if (rng.int(12) === 0) {
        await close(session);
        one.session = undefined;
        if (rng.int(2) === 0) await settle(() => step(session, 'step after close')); // may be refused, must not hurt
      } else if (one.turn < actions.length) {
        const answer = await step(session, actionOf(script.moves[one.turn]!, session));
        requireSame(
          trace.slice(one.turn + 1, one.turn + 2),
          [answer],
          actions.slice(one.turn),
          'beside other episodes',
        );
        one.turn++;
      }
    }
    for (const { session } of seats) if (session) await close(session);
  }),
  law('leaves truncation to the horizon', async ({ env, script }) => {
    const { trace } = await play(env, script);
    trace.forEach(({ kind }, t) => {
      requireThat(
        (kind as string) !== 'truncated' && (t === 0) === (kind === 'first'),
        () => `step ${t} is '${kind}'; an env opens with 'first' and answers with 'mid' or 'terminated'`,
      );
    });
  }),
  law('pays finite rewards within its range', async ({ env, script }) => {
    const [least, most] = env.rewardRange;
    const { trace, actions } = await play(env, script);
    trace.forEach((one, t) => {
      if (one.kind === 'first') return;
      requireThat(
        Number.isFinite(one.reward) && one.reward >= least && one.reward <= most,
        () => `${quoteText(actions[t - 1]!)} paid ${one.reward}, outside [${least}, ${most}]`,
      );
    });
  }),
  law('puts actions together in few stages, each with a list', async ({ env, script }) => {
    const session = await open(env, script);
    const stubborn = script.seed % 2 === 1; // sends a stage again and again
    let stage: string | undefined;
    let inRow = 0;
    for (const move of script.moves) {
      const listed = session.actions();
      const chars = listed.reduce((sum, text) => sum + text.length, 0);
      requireThat(
        listed.length <= ACTION_LIMITS.count && chars <= ACTION_LIMITS.totalChars,
        () => `${listed.length} actions of ${chars} characters are listed, beyond ${formatValue(ACTION_LIMITS)}`,
      );
      const action = stubborn && stage !== undefined ? stage : actionOf(move, session);
      const answer = await step(session, action);
      if (answer.kind === 'terminated') break;
      stage = answer.partial ? action : undefined;
      inRow = answer.partial ? inRow + 1 : 0;
      requireThat(
        inRow <= MAX_PARTIAL_STEPS,
        () =>
          `${inRow} stages in a row, the last ${quoteText(action)}: at most ${MAX_PARTIAL_STEPS} may follow each other`,
      );
      if (!answer.partial) continue;
      requireThat(answer.reward === 0, () => `the stage ${quoteText(action)} paid ${answer.reward}`);
      const next = session.actions().length;
      requireThat(
        next >= 1 && next <= ACTIONS_PER_STAGE,
        () => `after the stage ${quoteText(action)} ${next} actions are listed, not 1 to ${ACTIONS_PER_STAGE}`,
      );
    }
    await close(session);
  }),
  repeating('does not move while an action is put together', async ({ subject, env, script }) => {
    const staged = await open(env, script);
    const straight = await open(subject.createEnv(), script);
    const rng = Rng.fromSeed(script.seed);
    for (const move of script.moves) {
      const listed = staged.actions();
      const action = actionOf(move, staged);
      const answer = await step(staged, action);
      let typed = action;
      let result = answer;
      if (answer.kind === 'mid' && answer.partial) {
        // A whole action, typed in the middle of another: as good as without the stage.
        typed = rng.pick(listed);
        result = await step(staged, typed);
      }
      const plain = await step(straight, typed);
      if (plain.kind === 'mid' && plain.partial) break; // a stage itself: what it means depends on the one before
      requireThat(
        isDeepStrictEqual(result, plain),
        () =>
          `${quoteText(typed)} is answered with ${formatValue(result)} after the stage ${quoteText(action)}, else with ${formatValue(plain)}`,
      );
      if (result.kind === 'terminated') break;
    }
    await close(staged);
    await close(straight);
  }),
  law('observes in text that can be sent and is no longer than it says', async ({ env, script }) => {
    const { trace, actions } = await play(env, script);
    const wellFormed = actions.every(isWellFormed); // an echo of a broken action may be broken too
    trace.forEach((one, t) => {
      const { length } = one.observation;
      const after = t === 0 ? 'the first observation' : `the observation after ${quoteText(actions[t - 1]!)}`;
      requireThat(
        length <= env.maxObservationChars,
        () => `${after} has ${length} characters; the env states at most ${env.maxObservationChars}`,
      );
      requireThat(
        isDeepStrictEqual(JSON.parse(JSON.stringify(one)), { ...one }),
        () => `${after} came in a step that JSON does not give back: ${formatValue(one)}`,
      );
      requireThat(!wellFormed || isWellFormed(one.observation), () => `${after} holds a lone surrogate`);
    });
  }),
  repeating('lists the same actions however often it is asked, none twice', async ({ subject, env, script }) => {
    const session = await open(env, script);
    const twin = await open(subject.createEnv(), script);
    for (const move of script.moves) {
      const listed = [...session.actions()];
      requireThat(isDeepStrictEqual([...session.actions()], listed), () => 'asked again, it lists other actions');
      const twice = listed.find((text, i) => listed.indexOf(text) !== i);
      requireThat(twice === undefined, () => `${quoteText(twice!)} is listed twice`);
      const action = actionOf(move, session);
      const [answer, unasked] = [await step(session, action), await step(twin, action)]; // the twin is never asked
      requireThat(
        isDeepStrictEqual(unasked, answer),
        () => `${quoteText(action)} is answered otherwise where nobody asked for the list`,
      );
      if (answer.kind === 'terminated') break;
      requireThat(
        isDeepStrictEqual([...twin.actions()], [...session.actions()]),
        () => 'whether the list was asked for changes the next one',
      );
    }
    await close(session);
    await close(twin);
  }),
  law('renders and draws every episode the same twice', async ({ subject, env, script }) => {
    const { view, draw } = subject.module ?? {};
    if (!view && !draw) return;
    const { trace, actions } = await play(env, script);
    const [first] = trace;
    if (first?.kind !== 'first') return;
    const turns = actions.map((action, t): SeenTurn => ({ action, observation: trace[t + 1]!.observation }));
    const session = await open(env, script);
    const listed = session.actions();
    await close(session);
    const picture = () => ({
      drawn: draw?.(taskOf(env, script), first, turns),
      read: view && readThrough(view, first.observation, turns, listed),
    });
    requireThat(
      isDeepStrictEqual(picture(), picture()),
      () => 'drawn or rendered again, the same episode looks different',
    );
  }),
  createEnvLaw('has a sound description', async ({ env }) => {
    const [least, most] = env.rewardRange;
    requireThat(/^[a-z][a-z0-9-]*$/.test(env.id), () => `id ${quoteText(env.id)} is not like ^[a-z][a-z0-9-]*$`);
    requireThat(env.description.trim() !== '', () => 'the description is empty');
    requireThat(
      Number.isFinite(least) && Number.isFinite(most) && least <= most,
      () => `rewardRange is [${least}, ${most}]`,
    );
    requireThat(
      Number.isSafeInteger(env.maxObservationChars) && env.maxObservationChars > 0,
      () => `maxObservationChars is ${env.maxObservationChars}`,
    );
  }),
  createEnvLaw('has a sound task table', async ({ env: { tasks } }) => {
    const named = { train: tasks.split('train'), test: tasks.split('test'), ...tasks.sets };
    for (const [name, indices] of Object.entries(named)) {
      indices.forEach((index, i) => {
        requireThat(i === 0 || indices[i - 1]! < index, () => `${name} is not ascending at ${index}`);
        requireThat(
          tasks.labels.includes(tasks.label(index)),
          () => `task ${index} has a label that labels does not have`,
        );
      });
    }
    const test = new Set(named.test);
    const shared = named.train.find((index) => test.has(index));
    requireThat(shared === undefined, () => `task ${shared} is in both train and test`);
    requireThat(Number.isInteger(tasks.evalSeed), () => `evalSeed is ${tasks.evalSeed}`);
    for (const index of [-1, tasks.count, 0.5, Number.NaN]) {
      const thrown = await settle(() => tasks.label(index));
      requireThat(thrown instanceof RangeError, () => `label(${index}) gave ${formatValue(thrown)}, not a RangeError`);
    }
  }),
  createEnvLaw('opens no task outside its table', async ({ env }) => {
    for (const index of [-1, env.tasks.count, 0.5, Number.NaN]) {
      const thrown = await settle(() => env.open({ env: env.id, index, seed: 0 }));
      requireThat(
        thrown instanceof RangeError,
        () => `task ${index} was answered with ${formatValue(thrown)}, not a RangeError`,
      );
    }
  }),
];

/** Law that holds of every script. */
function law(name: string, holds: Law['holds']): Law {
  return { name, scripted: true, repeats: false, holds };
}

/** Law that holds of every script and is checked by playing it more than once. */
function repeating(name: string, holds: Law['holds']): Law {
  return { name, scripted: true, repeats: true, holds };
}

/** Law on the env as such; the script it is given is not used. */
function createEnvLaw(name: string, holds: Law['holds']): Law {
  return { name, scripted: false, repeats: false, holds };
}

/** Draws a case of a law from a seed. */
export function drawCase(subject: Subject, rng: Rng): Case {
  const env = subject.createEnv();
  return { subject, env, script: drawScript(rng, env, subject.texts) };
}

interface Seat {
  readonly script: Script;
  session: Session | undefined;
  /** Actions taken in the running session. */
  turn: number;
}

function seat(script: Script): Seat {
  return { script, session: undefined, turn: 0 };
}

function isEnvStep(answer: unknown): boolean {
  if (typeof answer !== 'object' || answer === null) return false;
  const { kind, observation, reward, success } = answer as Record<string, unknown>;
  const ended = kind === 'terminated';
  return (
    (ended || kind === 'mid') &&
    typeof observation === 'string' &&
    typeof reward === 'number' &&
    (!ended || typeof success === 'boolean')
  );
}

function requireSame(
  expected: readonly TimeStep[],
  found: readonly TimeStep[],
  actions: readonly string[],
  where = 'played again',
): void {
  const t = Array.from({ length: Math.max(expected.length, found.length) }).findIndex(
    (_, at) => !isDeepStrictEqual(expected[at], found[at]),
  );
  requireThat(
    t < 0,
    () =>
      `${where}, ${expected[t]?.kind === 'first' ? 'the first step' : `the answer to ${quoteText(actions[Math.max(0, t - 1)] ?? '')}`} is ${formatValue(found[t])} instead of ${formatValue(expected[t])}`,
  );
}

/** Segments as rendered, and where the listed actions are mentioned. @throws {BrokenLaw} for a mention of nothing */
function readThrough(view: View, opening: string, turns: readonly SeenTurn[], listed: readonly string[]) {
  const codec = new ViewCodec(view); // anew each time: a codec may keep what it has rendered
  const actions = Int32Array.from(listed, (_, i) => i);
  const transcript = codec.open({ observation: opening, actions, newActions: listed });
  const readSeen = () => {
    const { prompt, tokens } = transcript;
    const places = listed.map((action) => prompt.mentions(action));
    for (const [i, place] of places.entries()) {
      requireThat(
        place.every((at, k) => at >= 0 && at < prompt.tokens.length && (k === 0 || place[k - 1]! <= at)),
        () => `the view mentions ${quoteText(listed[i]!)} in segments it does not have`,
      );
    }
    const candidates = listed.map((action) => transcript.candidate(action));
    return { prompt: [...prompt.tokens], focus: [...prompt.focus], tokens: [...tokens], places, candidates };
  };
  const read = [readSeen()];
  for (const { action, observation } of turns) {
    transcript.observe(action, { observation, actions, newActions: [] });
    read.push(readSeen());
  }
  return read;
}

/** Settles a call: the value that came back, or the error that was thrown. */
async function settle(work: () => unknown): Promise<unknown> {
  try {
    return await work();
  } catch (thrown) {
    return thrown;
  }
}

function isWellFormed(text: string): boolean {
  return !/\p{Surrogate}/u.test(text);
}

function formatValue(value: unknown): string {
  if (value instanceof Error) return `${value.name}: ${messageOf(value)}`;
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch {
    // a cycle, or a value that JSON has no word for
  }
  return quoteText(text ?? String(value))
    .replace(/^"|"$/g, '')
    .replaceAll('\\"', '"');
}
