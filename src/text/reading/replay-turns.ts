/** Follows running episodes, whose transcripts advance turn by turn, and replays finished ones from the start. */
import type { Trajectory } from '../../core/trajectory.ts';
import type { Codec } from './codec.ts';
import type { Observed, PastTurn, Transcript } from './transcript.ts';

/** Turn of a running episode. */
export interface NextTurn extends Observed {
  /** Turn, 0 for the first decision of the episode. */
  readonly turn: number;
  /** Answer of the policy to the turn before; absent on turn 0. */
  readonly lastAction?: string;
  /** World of the episode (`Task.env`), with its first turn and with its history. */
  readonly world?: string | undefined;
  /** Finished turns, sent with an episode whose beginning the reader has not seen (a restart, a resume). */
  readonly history?: readonly PastTurn[];
}

const NOTHING_LISTED = new Int32Array(0);
const NO_TEXTS: readonly string[] = [];

/**
 * Follows an episode by one turn. One that is not known yet begins with its history, if it has any: its text is
 * rendered again, the sampled ids are kept as they were, and nothing of it counts as new.
 * @param known the episode's transcript, advanced in place
 */
export function advanceTranscript(codec: Codec, known: Transcript | undefined, next: NextTurn): Transcript {
  if (known) {
    if (next.lastAction !== undefined) known.observe(next.lastAction, next);
    return known;
  }
  const { history = [], newActions, world } = next;
  const [opening] = history;
  if (!opening) return codec.open(next, world);
  const { observation, actions = NOTHING_LISTED } = opening;
  const stop = next.stop === undefined ? {} : { stop: next.stop };
  const transcript = codec.open({ observation, actions, newActions, ...stop }, world);
  history.forEach((turn, i) => {
    if (turn.decision?.kind === 'tokens') transcript.write(turn.decision.tokens);
    const after = history[i + 1];
    if (after) transcript.observe(turn.action, answerTo(turn, after));
  });
  transcript.takeContext();
  transcript.observe(next.lastAction ?? history.at(-1)!.action, { ...next, newActions: NO_TEXTS });
  return transcript;
}

/** Answer of the world to a turn's action. */
function answerTo(
  { partial }: Pick<PastTurn, 'partial'>,
  { observation, actions = NOTHING_LISTED }: Pick<PastTurn, 'observation' | 'actions'>,
): Observed {
  const observed = { observation, actions, newActions: NO_TEXTS };
  return partial ? { ...observed, partial } : observed;
}

/**
 * Reads a finished episode again, decision by decision. Before each turn `visit` finds the transcript where the policy
 * decided; after the last one it stands at the final observation.
 * @param visit called with the number of the turn; sampled ids are written after it
 */
export function replayTurns(
  codec: Codec,
  {
    task,
    turns,
    actionTable,
    finalObservation,
  }: Pick<Trajectory, 'task' | 'turns' | 'actionTable' | 'finalObservation'>,
  visit: (transcript: Transcript, turn: number) => void = () => {},
): Transcript {
  const [first] = turns;
  const opening = { observation: first?.observation ?? '', actions: first?.actions ?? NOTHING_LISTED };
  const transcript = codec.open({ ...opening, newActions: actionTable }, task.env);
  turns.forEach((turn, t) => {
    visit(transcript, t);
    if (turn.decision?.kind === 'tokens') transcript.write(turn.decision.tokens);
    transcript.observe(turn.action, answerTo(turn, turns[t + 1] ?? { observation: finalObservation }));
  });
  return transcript;
}
