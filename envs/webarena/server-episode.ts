/**
 * One environment of AgentGym's WebArena server, as far as text decides it: reply → action, description of what was
 * done, exceptions as observations, score at `stop`. Pages are read through `ServerPage`, so a recording can
 * answer as well as a browser.
 *
 * Source  AgentGym `agentenv-webarena` at 3ef9235d, `environment.py`; its defects are kept (an error inside an
 *         evaluator leaves the episode open and is the whole observation)
 */
import { reprText, strip } from '../../src/core/python-text.ts';
import { blocksOf, describeAction, turnText } from './describe.ts';
import { type Evaluation, type EvaluationPage, evaluate, type Judge } from './evaluate.ts';
import { type Action, parseAction } from './grammar.ts';
import type { Lines } from './tree.ts';
import { type SiteBases, toLocal } from './urls.ts';

/** A task as a configuration file holds it. */
export interface TaskConfig {
  readonly task_id: number;
  readonly sites: readonly string[];
  readonly intent: string;
  readonly start_url: string;
  readonly eval: Evaluation;
}

/** The page after an action, as the browser's side answers. */
export interface Acted {
  readonly observation: string;
  readonly url: string;
  /** Line of each printed element by id. */
  readonly lines: Lines;
  /** Empty where the action was carried out. */
  readonly failError: string;
}

/** Browser side of an episode, as the server asks for it. */
export interface ServerPage {
  act(action: Action): Acted | Promise<Acted>;
  readonly evaluation: EvaluationPage;
}

/** Answer of the server to one step. */
export interface ServerStep {
  readonly observation: string;
  readonly reward: number;
  readonly terminated: boolean;
  /** False after an exception: the original's `info` is null then. */
  readonly informed: boolean;
}

/** An exception's text in the words of Python's `str(e)`. */
function createRefusal(message: string): ServerStep {
  return { observation: message, reward: 0, terminated: false, informed: false };
}

/** Episode of AgentGym's WebArena server: one task, its steps and its score. */
export class ServerEpisode {
  readonly #config: TaskConfig;
  readonly #bases: SiteBases;
  readonly #judge: Judge;
  #at: Omit<Acted, 'failError'>;
  #previous = 'None';

  constructor(config: TaskConfig, bases: SiteBases, judge: Judge, start: Omit<Acted, 'failError'>) {
    this.#config = config;
    this.#bases = bases;
    this.#judge = judge;
    this.#at = start;
  }

  /** Answer to `GET /observation`. */
  get text(): string {
    const { observation, url } = this.#at;
    return turnText({ observation, url, objective: this.#config.intent, previousAction: this.#previous }, this.#bases);
  }

  /** @param reply a model's whole reply; its first block between triple backticks is the action */
  async step(reply: string, page: ServerPage): Promise<ServerStep> {
    const block = blocksOf(reply)[0];
    if (block === undefined) return createRefusal(`Cannot parse action from response ${reply}`);
    const parsed = parseAction(toLocal(strip(block), this.#bases), 'original');
    if ('error' in parsed) return createRefusal(parsed.error.message);
    const action = parsed.ok;
    const described = describeAction(action, this.#at.lines);
    const acted = await page.act(action);
    this.#at = acted;
    this.#previous = described;
    const stopped = action.type === 'STOP';
    let reward = Number(acted.failError === '');
    if (stopped) {
      const outcome = { intent: this.#config.intent, answer: action.answer, page: page.evaluation, judge: this.#judge };
      try {
        reward = await evaluate(this.#config.eval, outcome, 'original');
      } catch (thrown) {
        return createRefusal(thrown instanceof Error ? thrown.message : String(thrown));
      }
    }
    return { observation: this.text, reward, terminated: stopped, informed: true };
  }
}

/** Reason why an action fails before a browser is used: the original's `fail_error`, empty where it does not. */
export function failsBeforehand(action: Action, lines: Lines, tabs: number): string {
  switch (action.type) {
    case 'CLICK':
    case 'HOVER':
    case 'TYPE':
      return lines.has(action.id) ? '' : reprText(action.id);
    case 'PAGE_FOCUS':
      return action.page < tabs ? '' : 'list index out of range';
    case 'STOP':
      return 'Unknown action type: ACTION_TYPES.STOP';
    default:
      return '';
  }
}
