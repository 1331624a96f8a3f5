/**
 * The phase machine inside a model of a run: rollouts, learner and scheduler as little queues of messages that arrive in
 * any order between senders, with commands, evaluations, timers, lost asks and crashes in between. The machine decides;
 * the model keeps its own account of every group and holds the machine to it.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  handsOver,
  isQuiet,
  isTraining,
  mayEvaluate,
  mayLaunch,
  nextPhase,
  type Phase,
  type PhaseEffect,
  type PhaseEvent,
  START,
} from '../../../actors/scheduler/phase.ts';

type Next = typeof nextPhase;

/** State that a checkpoint keeps: the groups under way, those finished and not consumed, and the next one's number. */
interface State {
  readonly running: readonly number[];
  readonly delivered: readonly number[];
  readonly next: number;
}

/** A group of the rollouts. `moving`: it waits for something else than a decision that a pause holds back. */
interface Playing {
  readonly evaluation: boolean;
  moving: boolean;
}

/** Most training groups under way at once. */
const SLOTS = 3;

type ToRollouts =
  | { readonly type: 'play'; readonly group: number; readonly evaluation: boolean }
  | { readonly type: 'restore'; readonly groups: readonly number[] }
  | { readonly type: 'pause'; readonly ended: boolean }
  | { readonly type: 'resume' }
  | { readonly type: 'capture'; readonly id: number; readonly atRest: boolean };
type ToScheduler =
  | { readonly type: 'played'; readonly group: number; readonly evaluation: boolean }
  | { readonly type: 'captured'; readonly id: number; readonly running: readonly number[] };
type ToLearner =
  | { readonly type: 'group'; readonly group: number; readonly barrier: number }
  | { readonly type: 'save' };
type FromLearner =
  | { readonly type: 'snapshot'; readonly ask: number }
  | { readonly type: 'saved' }
  | { readonly type: 'consumed'; readonly group: number };

class BrokenRun extends Error {}
const need: (holds: boolean, what: string) => asserts holds = (holds, what) => {
  if (!holds) throw new BrokenRun(what);
};

/** One process: everything here is lost when it crashes, but for the last checkpoint. */
class Process {
  phase: Phase = START;
  readonly #next: Next;
  readonly #barrier: boolean;
  // The scheduler's books.
  #checkpoint: State | undefined;
  readonly #outstanding = new Map<number, boolean>(); // group → evaluation
  readonly #delivered: number[] = [];
  #nextGroup: number;
  #evaluations = 0; // waiting to be launched
  #barriers = 0;
  #captured: readonly number[] = [];
  #captures = 0;
  #ask: number | undefined;
  #timer = false;
  /** Everything is at rest, from the state that a barrier's checkpoint keeps to the clearing of the policy's cache. */
  #still = false;
  #trained = 0; // answers to `train`
  #requested = false;
  // The rollouts.
  readonly #playing = new Map<number, Playing>();
  #paused = false;
  #frozen = false;
  #capture: { readonly id: number; readonly atRest: boolean } | undefined;
  // The learner.
  #learnerBarriers = 0;
  #waiting: number[] = [];
  #saving: number | undefined;
  #asks = 0;
  // Messages under way, in the order sent by each sender.
  readonly toRollouts: ToRollouts[] = [];
  readonly toScheduler: ToScheduler[] = [];
  readonly toLearner: ToLearner[] = [];
  readonly fromLearner: FromLearner[] = [];
  /** The last checkpoint written. */
  written: State | undefined;
  /** Groups trained on, with what the checkpoint that the process began with had consumed. */
  readonly consumed = new Set<number>();

  constructor(next: Next, barrier: boolean, checkpoint: State | undefined) {
    this.#next = next;
    this.#barrier = barrier;
    this.#checkpoint = this.written = checkpoint;
    this.#nextGroup = checkpoint?.next ?? 0;
  }

  // --- commands ---

  train(done: boolean): void {
    this.#requested = true;
    this.#on({ type: 'train', checkpoint: this.#checkpoint !== undefined, done });
  }

  end(): void {
    this.#on({ type: 'end' });
  }

  save(): void {
    this.toLearner.push({ type: 'save' });
  }

  evaluate(): void {
    if (this.phase.name === 'ended') return; // makes room by abandoning; another story
    this.#evaluations++;
    this.#launch();
  }

  /** The learner was not answered in time: it gives this checkpoint up. */
  timeout(): void {
    if (this.#saving === undefined) return;
    this.#saving = undefined;
    this.#endSave();
  }

  fire(): void {
    if (!this.#timer) return;
    this.#timer = false;
    this.#on({ type: 'resume' });
  }

  // --- one message arrives ---

  rolloutsHear(): void {
    const command = this.toRollouts.shift();
    if (!command) return;
    switch (command.type) {
      case 'play':
        need(!this.#paused || command.evaluation, 'a training group was started in a pause');
        this.#playing.set(command.group, { evaluation: command.evaluation, moving: true });
        break;
      case 'restore':
        need(
          this.#playing.size === 0 || [...this.#playing.values()].every(({ evaluation }) => evaluation),
          'restored over others',
        );
        this.#paused = true;
        for (const group of command.groups) this.#playing.set(group, { evaluation: false, moving: true });
        break;
      case 'pause':
        this.#paused = true;
        if (command.ended && !this.#barrier) this.#frozen = true;
        break;
      case 'resume':
        need(!this.#moves(), 'resumed while episodes moved');
        this.#paused = false;
        for (const one of this.#playing.values()) one.moving = true;
        break;
      case 'capture':
        this.#capture = command;
    }
    this.#report();
  }

  /** A group goes on: a decision comes to rest in a pause, or the group finishes. */
  play(at: number, finishes: boolean): void {
    const moving = [...this.#playing].filter(([, one]) => one.moving && !(this.#frozen && !one.evaluation));
    const [group, one] = moving[at % moving.length] ?? [];
    if (group === undefined || !one) return;
    if (this.#paused && !one.evaluation && !finishes) one.moving = false;
    else if (finishes) {
      this.#playing.delete(group);
      this.toScheduler.push({ type: 'played', group, evaluation: one.evaluation });
    }
    this.#report();
  }

  schedulerHearsRollouts(): void {
    const event = this.toScheduler.shift();
    if (!event) return;
    if (event.type === 'captured') {
      if (event.id !== this.#captures) return; // of a checkpoint that was given up
      this.#captured = event.running;
      this.#on({ type: 'captured', evaluating: this.#evaluating() });
      return;
    }
    need(this.#outstanding.delete(event.group), `group ${event.group} ended twice`);
    if (!event.evaluation) {
      this.#delivered.push(event.group);
      if (handsOver(this.phase)) this.#handOver([event.group]);
    }
    this.#launch();
  }

  schedulerHearsLearner(): void {
    const event = this.fromLearner.shift();
    if (!event) return;
    if (event.type === 'snapshot') {
      this.#ask = event.ask;
      this.#on({ type: 'snapshot', checkpoint: this.#checkpoint !== undefined });
    } else if (event.type === 'saved') {
      if (this.#barrier) this.#barriers++;
      this.#on({ type: 'saved' });
    } else {
      const at = this.#delivered.indexOf(event.group);
      need(at >= 0, `group ${event.group} was consumed, but is not with the learner`);
      this.#delivered.splice(at, 1);
      this.#launch();
    }
  }

  learnerHears(): void {
    if (this.#saving !== undefined) return; // it waits for its answer
    const command = this.toLearner.shift();
    if (!command) return;
    if (command.type === 'save') {
      this.#saving = ++this.#asks;
      this.fromLearner.push({ type: 'snapshot', ask: this.#saving });
      return;
    }
    if (command.barrier < this.#learnerBarriers) return;
    need(!this.#waiting.includes(command.group), `group ${command.group} was handed over twice`);
    this.#waiting.push(command.group);
    if (this.#waiting.length < 2) return;
    for (const group of this.#waiting) {
      need(!this.consumed.has(group), `group ${group} was trained on twice`);
      this.consumed.add(group);
      this.fromLearner.push({ type: 'consumed', group });
    }
    this.#waiting = [];
  }

  /** A while in which messages arrive and episodes are played. */
  flow(rounds: number): void {
    for (let i = 0; i < rounds; i++) {
      this.rolloutsHear();
      this.play(i, i % 3 === 0);
      this.schedulerHearsRollouts();
      this.schedulerHearsLearner();
      this.learnerHears();
    }
  }

  /** Everything under way arrives, every episode comes to rest or ends, every timer fires. */
  settle(): void {
    for (let i = 0; i < 1000; i++) {
      this.rolloutsHear();
      this.schedulerHearsRollouts();
      this.schedulerHearsLearner();
      this.learnerHears();
      this.play(0, [...this.#playing.values()].some(({ evaluation, moving }) => evaluation && moving) || !this.#paused);
      if (this.#nothingUnderWay()) this.fire();
      const calm = this.#nothingUnderWay() && !this.#timer && this.#saving === undefined;
      const { name } = this.phase;
      if (calm && (name === 'idle' || name === 'ended' || (name === 'running' && i > 40))) break;
    }
    need(this.#saving === undefined, `a checkpoint waits for ever in ${JSON.stringify(this.phase)}`);
    need(
      this.phase.name === 'idle' || this.phase.name === 'running' || this.phase.name === 'ended',
      `stuck in ${JSON.stringify(this.phase)}`,
    );
    need(!this.#timer || isQuiet(this.phase), 'a timer without a silence');
    need(
      this.#trained === (this.#requested && this.phase.name === 'ended' ? 1 : 0),
      `train was answered ${this.#trained} times`,
    );
    const lost = this.phase.name === 'running' ? this.#delivered.filter((group) => !this.#waiting.includes(group)) : [];
    need(
      lost.length === 0 || this.toLearner.length + this.fromLearner.length > 0,
      `the learner never gets group ${lost[0]}`,
    );
    const progress = this.consumed.size;
    if (this.phase.name !== 'running') return;
    for (let i = 0; i < 100 && this.consumed.size === progress; i++) {
      this.rolloutsHear();
      this.play(0, true);
      this.schedulerHearsRollouts();
      this.schedulerHearsLearner();
      this.learnerHears();
    }
    need(this.consumed.size > progress, 'training is under way, and nothing is trained on');
  }

  #nothingUnderWay(): boolean {
    return this.toRollouts.length + this.toScheduler.length + this.toLearner.length + this.fromLearner.length === 0;
  }

  // --- the scheduler ---

  #on(event: PhaseEvent): void {
    const { phase, effects } = this.#next(this.phase, event, this.#barrier);
    this.phase = phase;
    if (!isQuiet(phase)) this.#timer = false;
    if (effects.includes('capture') || effects.includes('end')) this.#still = false;
    for (const effect of effects) this.#do(effect);
    need(!mayLaunch(phase) || isTraining(phase), 'groups may start when nothing is trained');
  }

  #do(effect: PhaseEffect): void {
    switch (effect) {
      case 'restore': {
        const { running, delivered } = this.#checkpoint!;
        this.#delivered.push(...delivered);
        for (const group of running) this.#outstanding.set(group, false);
        this.toRollouts.push({ type: 'restore', groups: running });
        return;
      }
      case 'pause':
        this.toRollouts.push({ type: 'pause', ended: false });
        return;
      case 'end':
        this.toRollouts.push({ type: 'pause', ended: true });
        this.#trained++;
        return;
      case 'capture':
        this.toRollouts.push({
          type: 'capture',
          id: ++this.#captures,
          atRest: this.#barrier || this.phase.name === 'restoring',
        });
        return;
      case 'answer': {
        const training = [...this.#outstanding].filter(([, evaluation]) => !evaluation).map(([group]) => group);
        need(
          training.length === this.#captured.length && training.every((group) => this.#captured.includes(group)),
          `the rollouts reported groups ${this.#captured}, outstanding are ${training}`,
        );
        this.#still ||= this.phase.name === 'barrier';
        this.#answer({ running: training, delivered: [...this.#delivered], next: this.#nextGroup });
        return;
      }
      case 'answerCheckpoint':
        need(this.#checkpoint !== undefined, 'there is no checkpoint to answer with');
        this.#answer(this.#checkpoint);
        return;
      case 'awaitQuiet':
        this.#still = true;
        this.#timer = true;
        return;
      case 'handOver':
        this.#handOver(this.#delivered);
        return;
      case 'resume':
        this.#still = false;
        this.#checkpoint = undefined;
        this.toRollouts.push({ type: 'resume' });
        return;
      case 'launch':
        this.#launch();
    }
  }

  #launch(): void {
    for (; this.#evaluations > 0 && mayEvaluate(this.phase); this.#evaluations--) this.#start(true);
    while (mayLaunch(this.phase) && this.#outstanding.size + this.#delivered.length < 2 * SLOTS) this.#start(false);
  }

  #start(evaluation: boolean): void {
    need(!this.#still, 'a group was started between rest and the clearing of the cache, which would lose its requests');
    const group = this.#nextGroup++;
    this.#outstanding.set(group, evaluation);
    this.toRollouts.push({ type: 'play', group, evaluation });
  }

  #handOver(groups: readonly number[]): void {
    for (const group of groups) this.toLearner.push({ type: 'group', group, barrier: this.#barriers });
  }

  #evaluating(): boolean {
    return this.#evaluations > 0 || [...this.#outstanding.values()].includes(true);
  }

  /** An answer to an ask that timed out is dropped. */
  #answer(state: State): void {
    const ask = this.#ask;
    this.#ask = undefined;
    if (ask === undefined || ask !== this.#saving) return;
    const all = [...state.running, ...state.delivered];
    need(new Set(all).size === all.length, 'a checkpoint holds a group twice');
    this.written = state;
    this.#saving = undefined;
    this.#endSave();
  }

  #endSave(): void {
    if (this.#barrier) {
      this.#waiting = [];
      this.#learnerBarriers++;
    }
    this.fromLearner.push({ type: 'saved' });
  }

  // --- the rollouts ---

  #moves(): boolean {
    return [...this.#playing.values()].some(({ moving }) => moving);
  }

  #report(): void {
    if (!this.#capture || (this.#capture.atRest && this.#moves())) return;
    const { id } = this.#capture;
    this.#capture = undefined;
    const running = [...this.#playing].filter(([, { evaluation }]) => !evaluation).map(([group]) => group);
    this.toScheduler.push({ type: 'captured', id, running });
  }
}

type Op = readonly [name: (typeof OPS)[number], at: number];
const OPS = [
  'train',
  'train',
  'end',
  'save',
  'save',
  'checkpoint',
  'evaluate',
  'evaluate',
  'timeout',
  'fire',
  'fire',
  'crash',
  'crash',
  ...Array<'flow'>(4).fill('flow'),
  ...Array<'rollouts'>(3).fill('rollouts'),
  ...Array<'scheduler'>(3).fill('scheduler'),
  ...Array<'fromLearner'>(2).fill('fromLearner'),
  ...Array<'learner'>(3).fill('learner'),
  ...Array<'rest'>(3).fill('rest'),
  ...Array<'finish'>(2).fill('finish'),
] as const;

const history = fc.record({
  barrier: fc.boolean(),
  ops: fc.array(fc.tuple(fc.constantFrom(...OPS), fc.nat({ max: 7 })), {
    minLength: 5,
    maxLength: 120,
  }) as fc.Arbitrary<readonly Op[]>,
});

/** Counts of each phase and effect that was met, against a vacuous test. */
const met = new Map<string, number>();

function live({ barrier, ops }: { readonly barrier: boolean; readonly ops: readonly Op[] }, next: Next): void {
  const counting: Next = (phase, event, mode) => {
    const after = next(phase, event, mode);
    for (const word of [`${phase.name}/${event.type}`, ...after.effects]) met.set(word, (met.get(word) ?? 0) + 1);
    return after;
  };
  let run = new Process(counting, barrier, undefined);
  for (const [op, at] of ops) {
    switch (op) {
      case 'train':
        run.train(at === 7);
        break;
      case 'flow':
        run.flow(at);
        break;
      case 'end':
        if (at < 3) run.end();
        break;
      case 'save':
        run.save();
        break;
      case 'checkpoint': // one that is likely to be written
        run.save();
        run.flow(5 + at);
        break;
      case 'evaluate':
        run.evaluate();
        break;
      case 'timeout':
        if (at < 6) run.timeout();
        break;
      case 'fire':
        run.fire();
        break;
      case 'crash':
        if (at < 4) run = new Process(counting, barrier, run.written);
        if (at < 3) run.train(false);
        break;
      case 'rollouts':
        run.rolloutsHear();
        break;
      case 'scheduler':
        run.schedulerHearsRollouts();
        break;
      case 'fromLearner':
        run.schedulerHearsLearner();
        break;
      case 'learner':
        run.learnerHears();
        break;
      case 'rest':
        run.play(at, false);
        break;
      case 'finish':
        run.play(at, true);
    }
  }
  run.settle();
}

const long = process.env.LONGPLAY_LONG === '1';
const RUNS = long ? 10_000 : 1_000;
/** Of a planted bug; found earlier as a rule. */
const SEARCH = 10_000;

/** Plays random histories. @throws what the model found, with the shortest history that shows it */
function histories(next: Next, seed: number, numRuns: number): void {
  fc.assert(
    fc.property(history, (one) => live(one, next)),
    { numRuns, seed, endOnFailure: true },
  );
}

describe('the phase of a run', () => {
  it(`loses no group, starts none in a pause, answers every checkpoint and gets stuck nowhere in ${RUNS} histories`, () => {
    met.clear();

    histories(nextPhase, 14, RUNS);

    const effects: readonly PhaseEffect[] = [
      'restore',
      'pause',
      'capture',
      'answer',
      'answerCheckpoint',
      'awaitQuiet',
      'handOver',
      'resume',
      'launch',
      'end',
    ];
    for (const effect of effects) expect(met.get(effect) ?? 0, effect).toBeGreaterThan(RUNS / 200);
    for (const name of ['idle', 'restoring', 'running', 'barrier', 'ended']) {
      for (const event of ['end', 'snapshot', 'captured', 'saved', 'train']) {
        expect(met.get(`${name}/${event}`) ?? 0, `${name}/${event}`).toBeGreaterThan(RUNS / 1000);
      }
    }
  }, 120_000);

  /** Each a way in which such a machine could be wrong, and what it does then. */
  const planted: Readonly<Record<string, Next>> = {
    'groups that start while the rollouts report their state': (phase, event, barrier) => {
      const after = nextPhase(phase, event, barrier);
      const early = event.type === 'snapshot' && after.phase.name === 'running' && after.phase.snapshot;
      return early ? { phase: { name: 'running', snapshot: false }, effects: [...after.effects, 'launch'] } : after;
    },
    'a checkpoint given up while episodes move, after which training resumes at once': (phase, event, barrier) =>
      event.type === 'saved' && phase.name === 'barrier' && phase.step === 'stopping'
        ? { phase: { name: 'barrier', step: 'quiet' }, effects: ['awaitQuiet'] }
        : nextPhase(phase, event, barrier),
    'an end in the middle of a barrier that forgets the checkpoint under way': (phase, event, barrier) => {
      const after = nextPhase(phase, event, barrier);
      return after.phase.name === 'ended' && event.type === 'end'
        ? { phase: { name: 'ended', snapshot: false }, effects: after.effects }
        : after;
    },
    'groups that the learner dropped at a barrier and is not given again': (phase, event, barrier) => {
      const after = nextPhase(phase, event, barrier);
      return { phase: after.phase, effects: after.effects.filter((effect) => effect !== 'handOver') };
    },
  };

  it.each(Object.entries(planted))(
    'planted bug found: %s',
    (_, next) => {
      expect(() => histories(next, 14, SEARCH)).toThrow();
    },
    120_000,
  );
});
