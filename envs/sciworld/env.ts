import type { Env, EnvStep, First, Session } from '../../src/core/env.ts';
import { mid, terminated } from '../../src/core/env.ts';
import type { Task } from '../../src/core/task.ts';
import { type Simplification, Simulator } from './simulator.ts';
import { Stages } from './stages.ts';
import type { Registered } from './tasks/index.ts';
import { type SciWorldTasks, TABLES } from './tasks.ts';
import type { Thing } from './thing.ts';

/** Rules of a session: fidelity, simplifications, and what failing a task costs. */
export interface Rules {
  /** `original` keeps the habits of AgentGym's wrapper (README.md). Default `corrected`. */
  readonly fidelity: 'corrected' | 'original';
  /** Table of tasks: AgentGym's 4,639 ids (default), or all variations of ScienceWorld's 30 tasks. */
  readonly tasks: keyof typeof TABLES;
  /** A failure keeps what was earned (default), or takes it back, so that an episode's return is its final score. */
  readonly failure: 'keeps' | 'forfeits';
  /** Simplifications of ScienceWorld; `easy` stands for those of its paper. */
  readonly simplifications: readonly (Simplification | 'easy')[];
}

/** Moves after which the original ends an episode. */
const MOVE_LIMIT = 100;

/**
 * SciWorld: carry out a science task in a simulated house.
 *
 * Observation  English text; the first states the task and describes the room.
 * Action       `open X`, `move X to Y`, … (26 forms); what is not understood costs a turn and no time.
 * Reward       what the score, in [0, 1], rises above its best so far; `original`: its change in points of 100.
 * Terminates   when the task is done, or failed by a wrong focus or a wrong box. Truncation belongs to the horizon.
 * Randomness   by the variation alone; the task seed changes nothing.
 * Source       ScienceWorld 1.3.0, https://arxiv.org/abs/2203.07540, as AgentGym's agentenv-sciworld plays it
 * Differs      see the table in README.md; `fidelity: 'original'` differs nowhere the golden traces reach.
 */
export class SciWorld implements Env {
  readonly id = 'sciworld';
  readonly description = 'Carry out science tasks, step by step, in a house with laboratory equipment.';
  readonly tasks: SciWorldTasks;
  readonly rewardRange: readonly [number, number];
  /** Ambiguous commands are answered with all they can mean, which may be thousands of lines. */
  readonly maxObservationChars = 2 ** 24;
  readonly #rules: Rules;

  constructor(rules: Rules) {
    this.#rules = rules;
    this.tasks = TABLES[rules.tasks];
    this.rewardRange = rules.fidelity === 'original' ? [-200, 200] : [rules.failure === 'forfeits' ? -1 : 0, 1];
  }

  /** @throws {RangeError} for a task index outside the table */
  open(task: Task): SciWorldSession {
    const { registered, variation } = this.tasks.at(task.index);
    const simulator = new Simulator(
      registered,
      variation,
      resolveSimplifications(this.#rules.simplifications, registered),
    );
    return new SciWorldSession(simulator, this.#rules);
  }
}

/** Simplifications with `easy` spelled out for this task: electrical actions stay where the task needs them. */
function resolveSimplifications(names: Rules['simplifications'], { task }: Registered): Simplification[] {
  const needsCircuits = task.name.includes('power-component') || task.name.includes('conductivity');
  const easy: Simplification[] = ['teleportAction', 'openDoors', 'selfWateringFlowerPots'];
  if (!needsCircuits) easy.push('noElectricalAction');
  return names.flatMap((name) => (name === 'easy' ? easy : [name]));
}

/** Score in points of 100 as the original's wrapper rounds it: halves to even. */
export function points(score: number): number {
  const x = 100 * score;
  const floor = Math.floor(x);
  const part = x - floor;
  if (part !== 0.5) return part > 0.5 ? floor + 1 : floor;
  return floor % 2 === 0 ? floor : floor + 1;
}

/** Session of SciWorld: one episode, its steps and its listed actions. */
export class SciWorldSession implements Session {
  readonly first: First;
  readonly simulator: Simulator;
  readonly #original: boolean;
  readonly #forfeits: boolean;
  readonly #stages: Stages;
  /** Points after the last step; `original`. */
  #score = 0;
  /** Best score so far, in [0, 1]; `corrected`. */
  #best = 0;
  #over: EnvStep | undefined;

  constructor(simulator: Simulator, { fidelity, failure }: Pick<Rules, 'fidelity' | 'failure'>) {
    this.simulator = simulator;
    this.#original = fidelity === 'original';
    this.#forfeits = failure === 'forfeits';
    this.#stages = new Stages(simulator);
    const look = simulator.step('look around');
    this.first = { kind: 'first', observation: `${simulator.description}\n${look}` };
    if (this.#original) simulator.drawValid();
    this.#score = points(simulator.goals.score);
  }

  step(action: string): EnvStep {
    if (this.#over) return this.#over;
    const question = this.#stages.take(action);
    if (question !== undefined) return { kind: 'mid', observation: question, reward: 0, partial: true };
    return this.#original ? this.#stepOriginal(action) : this.#stepCorrected(action);
  }

  /** Name of a thing within reach, as the lists have it. */
  nameOf(thing: Thing): string | undefined {
    return this.#stages.nameOf(thing);
  }

  /** `original`: the whole list of valid actions as the original has it after this step, up to thousands of texts. */
  valid(): string[] {
    return this.simulator.lastValid();
  }

  #stepOriginal(action: string): EnvStep {
    const { simulator } = this;
    const observation = simulator.step(action);
    simulator.drawValid();
    const { score, complete } = simulator.goals;
    const now = points(score);
    const reward = now - this.#score;
    this.#score = now;
    if (!complete && score >= 0 && simulator.moves <= MOVE_LIMIT) return mid(observation, reward);
    this.#over = terminated(observation, 0, now === 100);
    return terminated(observation, reward, now === 100);
  }

  #stepCorrected(action: string): EnvStep {
    const { simulator } = this;
    const observation = simulator.step(action);
    const { score, complete } = simulator.goals;
    const reward = score < 0 && this.#forfeits ? -this.#best : Math.max(0, score - this.#best);
    this.#best += reward;
    if (!complete && score >= 0) return mid(observation, reward);
    this.#over = terminated(observation, 0, complete && score >= 0);
    return terminated(observation, reward, complete && score >= 0);
  }

  /** Texts of the present stage, 64 at most. */
  actions(): readonly string[] {
    return this.#over ? [] : this.#stages.actions();
  }

  close(): void {}
}
