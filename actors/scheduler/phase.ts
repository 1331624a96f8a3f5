/**
 * Phase of a run: what the scheduler may do now, and what each command changes. Pure; the scheduler carries out the
 * effects.
 *
 *             train (fresh)                        snapshot (serial)
 *     idle ─────────────────────────► running ◄──────────────────────► barrier: stopping → writing → quiet
 *       └─ train (checkpoint) ─► restoring ┘  resume                          (any of them)
 *                                     └───────────────── end ─────────────────────┴──────────► ended
 *
 * In asynchronous mode training goes on during a checkpoint. Only no group starts until the rollouts have reported
 * their state. In serial mode it is a *barrier*: training pauses until every episode awaits a decision, then the
 * checkpoint is written. After a silence longer than any timer the policy's cache is cleared and training resumes, just
 * as in a run that starts from that checkpoint. So a resumed serial run equals one that was never stopped.
 */

/** Phase that a run is in. */
export type Phase =
  /** Idle: training has not begun. */
  | { readonly name: 'idle'; readonly snapshot: boolean }
  /**
   * Restoring: the episodes of a checkpoint are brought back to their last turn. `quiet`: they are there; the silence
   * runs.
   */
  | { readonly name: 'restoring'; readonly quiet: boolean }
  /** Running: groups start, are played and go to the learner. */
  | { readonly name: 'running'; readonly snapshot: boolean }
  | { readonly name: 'barrier'; readonly step: BarrierStep }
  /** Ended: training is over; episodes in flight stay as they were, so that a checkpoint keeps them. */
  | { readonly name: 'ended'; readonly snapshot: boolean };

/**
 * Step of a barrier. `stopping`: the rollouts come to rest. `overdue`: they still do, and the learner has given the
 * checkpoint up. `writing`: the learner has the state. `quiet`: it has reported the result; the silence runs.
 */
export type BarrierStep = 'stopping' | 'overdue' | 'writing' | 'quiet';

export type PhaseEvent =
  /**
   * Start of training. @property checkpoint the run begins with the state of one @property done the stop condition
   * holds already
   */
  | { readonly type: 'train'; readonly checkpoint: boolean; readonly done: boolean }
  /** End of training: the stop condition holds, or the user asked for it. */
  | { readonly type: 'end' }
  /**
   * Request of the learner for the state of the run. @property checkpoint the one that it began with still is that
   * state
   */
  | { readonly type: 'snapshot'; readonly checkpoint: boolean }
  /** Captured state of the rollouts. @property evaluating an evaluation is under way */
  | { readonly type: 'captured'; readonly evaluating: boolean }
  /** Result of the checkpoint, from the learner. */
  | { readonly type: 'saved' }
  /** End of the silence. */
  | { readonly type: 'resume' };

/** Effects of an event, which the scheduler carries out in this order. */
export type PhaseEffect =
  /** Gives the rollouts the episodes of the checkpoint. */
  | 'restore'
  /** Training groups ask for no more decisions. */
  | 'pause'
  /** Asks the rollouts for their state: in a barrier once they are at rest. */
  | 'capture'
  /** Gives the learner the state of the run. */
  | 'answer'
  /** Gives the learner the checkpoint that the run began with. */
  | 'answerCheckpoint'
  /** Starts the silence anew. */
  | 'awaitQuiet'
  /** Hands every finished group to the learner again, which has dropped what it had. */
  | 'handOver'
  /** Clears the policy's cache and goes on. */
  | 'resume'
  /** Starts what may start: evaluations, and training groups as admission allows. */
  | 'launch'
  /** Pauses the rollouts for good and answers `train`. */
  | 'end';

/** Start phase of a run that has just been made. */
export const START: Phase = { name: 'idle', snapshot: false };

/** Next phase, after one event. @param barrier whether a checkpoint is a barrier (serial mode) */
export function nextPhase(
  phase: Phase,
  event: PhaseEvent,
  barrier: boolean,
): { readonly phase: Phase; readonly effects: readonly PhaseEffect[] } {
  const stay = (...effects: PhaseEffect[]) => ({ phase, effects });
  const go = (next: Phase, ...effects: PhaseEffect[]) => ({ phase: next, effects });
  switch (event.type) {
    case 'train':
      if (phase.name !== 'idle') return stay(); // a run trains once: the scheduler refuses
      if (event.done) return go({ name: 'ended', snapshot: phase.snapshot }, 'end');
      if (event.checkpoint) return go({ name: 'restoring', quiet: false }, 'restore', 'capture');
      return go({ name: 'running', snapshot: phase.snapshot }, 'launch');
    case 'end':
      if (phase.name === 'idle' || phase.name === 'ended') return stay();
      // Evaluations that a silence held back start now: a checkpoint under way waits for them.
      return go({ name: 'ended', snapshot: awaitsSnapshot(phase) }, 'end', 'launch');
    case 'snapshot':
      return snapshot(phase, event.checkpoint, barrier);
    case 'captured':
      return handleCaptured(phase, event.evaluating, barrier);
    case 'saved':
      if (phase.name === 'running' && barrier) return stay('handOver');
      if (phase.name !== 'barrier') return stay();
      if (phase.step === 'stopping') return go({ name: 'barrier', step: 'overdue' });
      if (phase.step === 'writing') return go({ name: 'barrier', step: 'quiet' }, 'awaitQuiet');
      return stay();
    case 'resume':
      return isQuiet(phase) ? go({ name: 'running', snapshot: false }, 'resume', 'handOver', 'launch') : stay();
  }
}

function snapshot(phase: Phase, checkpoint: boolean, barrier: boolean): ReturnType<typeof nextPhase> {
  if (checkpoint) return { phase, effects: ['answerCheckpoint'] };
  switch (phase.name) {
    case 'running':
      if (!barrier) return { phase: { ...phase, snapshot: true }, effects: ['capture'] };
      return { phase: { name: 'barrier', step: 'stopping' }, effects: ['pause', 'capture'] };
    case 'barrier': {
      const under = phase.step === 'stopping' || phase.step === 'overdue';
      // Evaluations that came in the silence start now: this barrier waits for them.
      return { phase: { name: 'barrier', step: 'stopping' }, effects: under ? [] : ['launch', 'capture'] };
    }
    case 'idle':
    case 'ended':
      return { phase: { ...phase, snapshot: true }, effects: ['capture'] };
    case 'restoring':
      return { phase, effects: ['answerCheckpoint'] };
  }
}

function handleCaptured(phase: Phase, evaluating: boolean, barrier: boolean): ReturnType<typeof nextPhase> {
  const awaited = awaitsSnapshot(phase) || (phase.name === 'restoring' && !phase.quiet);
  if (!awaited) return { phase, effects: [] };
  // At rest but for an evaluation, whose episodes no checkpoint keeps: they are played to their end first.
  if (evaluating && (barrier || phase.name === 'restoring')) return { phase, effects: ['capture'] };
  switch (phase.name) {
    case 'restoring':
      return { phase: { name: 'restoring', quiet: true }, effects: ['awaitQuiet'] };
    case 'barrier':
      return phase.step === 'overdue'
        ? { phase: { name: 'barrier', step: 'quiet' }, effects: ['answer', 'awaitQuiet'] }
        : { phase: { name: 'barrier', step: 'writing' }, effects: ['answer'] };
    case 'running':
      return { phase: { ...phase, snapshot: false }, effects: ['answer', 'launch'] };
    case 'idle':
    case 'ended':
      return { phase: { ...phase, snapshot: false }, effects: ['answer'] };
  }
}

function awaitsSnapshot(phase: Phase): boolean {
  if (phase.name === 'barrier') return phase.step === 'stopping' || phase.step === 'overdue';
  return phase.name !== 'restoring' && phase.snapshot;
}

/** True while the silence before training resumes is running. */
export function isQuiet(phase: Phase): boolean {
  return (phase.name === 'restoring' && phase.quiet) || (phase.name === 'barrier' && phase.step === 'quiet');
}

/** True while training is under way, paused or not. */
export function isTraining({ name }: Phase): boolean {
  return name === 'restoring' || name === 'running' || name === 'barrier';
}

/**
 * True when training groups may start. While the rollouts report their state none does, so that the state holds every
 * group.
 */
export function mayLaunch(phase: Phase): boolean {
  return phase.name === 'running' && !phase.snapshot;
}

/**
 * True when evaluations may start: not from the moment everything is at rest until the policy's cache is cleared, or
 * their requests would be lost with it.
 */
export function mayEvaluate(phase: Phase): boolean {
  return !isQuiet(phase) && !(phase.name === 'barrier' && phase.step === 'writing');
}

/** True while finished groups go to the learner. */
export function handsOver({ name }: Phase): boolean {
  return name === 'running';
}
