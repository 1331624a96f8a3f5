/** Checks laws over many scripts, and keeps the smallest script that breaks one. */
import { LongplayError, messageOf } from '../../core/errors.ts';
import { Rng, seedFrom } from '../../core/rng.ts';
import { drawCase, type Law, laws, type Subject } from './laws.ts';
import { actionOf, close, open, quoteText, type Script, shrink, step } from './script.ts';

/** Options of a check: how many cases each law is tried on, and their seed. */
export interface CheckOptions {
  /** Scripts each law is tried on. */
  readonly cases: number;
  /** uint32; the same seed tries the same scripts. */
  readonly seed: number;
  /** Called before every case, so that an env that stops answering is noticed. */
  readonly onProgress?: (law: string, done: number) => void;
}

/** Result of trying a law: kept, or broken by a case that is shown. */
export interface LawResult {
  readonly law: string;
  readonly ok: boolean;
  /** Scripts tried, the one that broke it included; 0 where the law is not asked of this world (`Env.replay`). */
  readonly cases: number;
  /** Counterexample, where the law is broken. */
  readonly broken?: Counterexample;
}

/** Counterexample to a law, as small as it was found. */
export interface Counterexample {
  readonly seen: string;
  readonly task: { readonly index: number; readonly seed: number };
  readonly actions: readonly string[];
}

/** Tries one law. Never throws for what the env does. */
export async function checkLaw(law: Law, subject: Subject, options: CheckOptions): Promise<LawResult> {
  const rng = Rng.fromSeed(seedFrom(options.seed, law.name));
  const asked = !(law.repeats && subject.createEnv().replay === 'never');
  const cases = !asked ? 0 : law.scripted ? options.cases : 1;
  for (let n = 0; n < cases; n++) {
    options.onProgress?.(law.name, n);
    let script: Script | undefined;
    try {
      const drawn = drawCase(subject, rng);
      script = drawn.script;
      await law.holds(drawn);
    } catch (thrown) {
      return {
        law: law.name,
        ok: false,
        cases: n + 1,
        broken: await counterexample(law, subject, script, thrown, () => options.onProgress?.(law.name, n)),
      };
    }
  }
  return { law: law.name, ok: true, cases };
}

/** Tries all laws, one after the other. */
export async function checkLaws(subject: Subject, options: CheckOptions): Promise<LawResult[]> {
  const results: LawResult[] = [];
  for (const law of laws) results.push(await checkLaw(law, subject, options));
  return results;
}

/**
 * Laws for tests of any runner: passes, or throws with what was seen, the actions that lead there, and the seed.
 * @example test('my world obeys the laws', () => envLaws(() => createEnv()))
 */
export async function envLaws(
  createEnv: Subject['createEnv'],
  { cases = 1000, seed = 1, ...rest }: Partial<CheckOptions> & Omit<Subject, 'createEnv'> = {},
): Promise<void> {
  const results = await checkLaws({ createEnv, ...rest }, { cases, seed });
  const broken = results.filter(({ ok }) => !ok);
  if (broken.length === 0) return;
  throw new LongplayError('ENV_BROKEN', [`seed ${seed}:`, ...broken.flatMap(formatBroken)].join('\n'));
}

/** Report of a broken law in a few lines. */
export function formatBroken({ law, broken }: LawResult): string[] {
  if (!broken) return [];
  const { seen, task, actions } = broken;
  const after = actions.length === 0 ? [] : [`  after ${actions.map(quoteText).join(', ')}`];
  return [`broken: ${law}`, `  ${seen}`, `  task ${task.index}, seed ${task.seed}`, ...after];
}

async function counterexample(
  law: Law,
  subject: Subject,
  script: Script | undefined,
  thrown: unknown,
  onTry: () => void,
): Promise<Counterexample> {
  if (!script) return { seen: `createEnv: ${messageOf(thrown)}`, task: { index: 0, seed: 0 }, actions: [] };
  const none = { index: script.index, seed: script.seed };
  if (!law.scripted) return { seen: messageOf(thrown), task: none, actions: [] };
  let seen = messageOf(thrown);
  const smallest = await shrink(script, async (candidate) => {
    onTry();
    try {
      await law.holds({ subject, env: subject.createEnv(), script: candidate });
      return false;
    } catch (again) {
      seen = messageOf(again);
      return true;
    }
  });
  return { seen, task: none, actions: await collectTexts(subject, smallest) };
}

/** Actions that a script sends, up to where the env fails. */
async function collectTexts(subject: Subject, script: Script): Promise<string[]> {
  const sent: string[] = [];
  try {
    const env = subject.createEnv();
    const session = await open(env, script);
    for (const move of script.moves) {
      sent.push(actionOf(move, session));
      if ((await step(session, sent.at(-1)!)).kind === 'terminated') break;
    }
    await close(session);
  } catch {
    // the env breaks here: the actions sent so far are the result
  }
  return sent;
}
