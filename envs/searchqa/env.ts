import {
  type Env,
  type EnvStep,
  type First,
  type MaybePromise,
  mid,
  type Session,
  terminated,
} from '../../src/core/env.ts';
import type { Task, TaskTable } from '../../src/core/task.ts';
import type { Hit, Retriever } from '../../src/retrieval/retriever.ts';
import { listActions, type Memory, remember, startMemory } from './actions.ts';
import { type Command, cutAtAction, extractAnswer, parse, stripThoughts } from './grammar.ts';
import type { Rules } from './options.ts';
import type { Question, Questions } from './questions.ts';
import { exactMatch, formatScore, subMatch, tokenOverlap } from './scoring.ts';
import * as text from './text.ts';

/** Topk of the original, whatever a request sets. */
const ORIGINAL_TOPK = 3;

/**
 * SearchQA: answer a question after searching a corpus.
 *
 * Observation  The first is the task and the question; then three passages for a search, a sentence for anything else.
 * Action       The first closed `<search>query</search>` or `<answer>answer</answer>` of the text; else a turn is lost.
 * Reward       1 for the right answer after normalisation (`reward: f1`: the overlap), else 0, when the episode ends.
 * Terminates   with the answer. Truncation belongs to the horizon.
 * Randomness   none: a task is its question. A live retriever may answer differently tomorrow (`replay: never`).
 * Source       AgentGym, agentenv-searchqa at 3ef9235d, after Search-R1 (Jin et al. 2025), https://arxiv.org/abs/2503.09516
 * Differs      see the table in README.md; `fidelity: 'original'` differs nowhere the golden traces reach.
 */
export class SearchQA implements Env {
  readonly id = 'searchqa';
  readonly description = 'Answer questions of one to four hops by searching a corpus of passages.';
  readonly tasks: TaskTable;
  readonly rewardRange: readonly [number, number];
  readonly maxObservationChars: number;
  readonly replay: 'exact' | 'never';
  readonly rules: Rules;
  readonly #questions: Questions;
  readonly #retriever: Retriever | undefined;

  /** @param retriever needed by what opens a session */
  constructor(rules: Rules, questions: Questions, retriever?: Retriever) {
    this.rules = rules;
    this.#questions = questions;
    this.#retriever = retriever;
    this.tasks = questions.tasks;
    this.replay = retriever?.isRepeatable === false ? 'never' : 'exact';
    const { structure = 0, retrieval = 0 } = rules.format ?? {};
    this.rewardRange = [0, Math.max(1, structure + retrieval)];
    // The original bounds nothing, so only the engine's longest string does.
    this.maxObservationChars =
      rules.fidelity === 'original'
        ? 2 ** 29
        : Math.max(text.longestInformation(rules.topk, rules.passageChars), 1200 + questions.longest);
  }

  /** @throws {RangeError} for a task index outside the table */
  open(task: Task): SearchSession {
    const question = this.#questions.at(task.index);
    if (!this.#retriever) throw new Error('searchqa: a session needs a retriever: start() makes one');
    return new SearchSession(this.rules, question, this.#retriever);
  }
}

/** Session of SearchQA: one question, its searches and its answer. */
export class SearchSession implements Session {
  readonly first: First;
  readonly #rules: Rules;
  readonly #question: Question;
  readonly #retriever: Retriever;
  readonly #memory: Memory;
  readonly #original: boolean;
  /** Conversation so far, responses and observations, where the form is scored. */
  #conversation = '';
  #tries = 0;
  #over = false;

  constructor(rules: Rules, question: Question, retriever: Retriever) {
    this.#rules = rules;
    this.#question = question;
    this.#retriever = retriever;
    this.#original = rules.fidelity === 'original';
    this.#memory = startMemory(question.question);
    this.first = { kind: 'first', observation: text.opening(rules.dialect, question.question) };
  }

  step(action: string): MaybePromise<EnvStep> {
    if (this.#over && !this.#original) return terminated(text.OVER, 0);
    const { dialect, ignoreThink } = this.#rules;
    const response = dialect === 'search-r1' ? cutAtAction(action) : action;
    const read = ignoreThink ? stripThoughts(response) : response;
    const command = parse(read);
    this.#append(response);
    if (command?.type === 'answer') return this.#answer(command, read);
    if (command && (this.#original || command.content !== '')) return this.#search(command.content);
    return this.#reply(text.invalid(dialect));
  }

  actions(): readonly string[] {
    if (this.#over) return [];
    return listActions(this.#memory, this.#rules.candidates);
  }

  close(): void {}

  #search(query: string): MaybePromise<EnvStep> {
    const hits = this.#retriever.search(query, this.#original ? ORIGINAL_TOPK : this.#rules.topk);
    return hits instanceof Promise
      ? hits.then((found) => this.#answerSearch(query, found))
      : this.#answerSearch(query, hits);
  }

  #answerSearch(query: string, hits: readonly Hit[]): EnvStep {
    const { dialect, passageChars } = this.#rules;
    const contents = hits.map(({ document }) => document.contents);
    const shown = this.#original ? contents : contents.map((passage) => text.tame(passage, passageChars));
    const observation = text.information(dialect, text.listPassages(shown));
    remember(this.#memory, query, shown);
    return this.#reply(observation);
  }

  #answer(command: Command, read: string): EnvStep {
    // The original parses the first tag and scores the last.
    const answer = this.#original ? extractAnswer(read)! : command.content;
    const right = exactMatch(answer, this.#question.answers);
    if (this.#rules.dialect === 'search-r1') return this.#end('', this.#score(answer), right);
    if (right) return this.#end(text.RIGHT, this.#score(answer), true);
    if (!this.#original && ++this.#tries === this.#rules.answers) {
      return this.#end(text.WRONG_AND_OVER, this.#score(answer), false);
    }
    return this.#reply(text.WRONG);
  }

  /** Scores the whole conversation where the form has weights, else the answer alone. */
  #score(answer: string): number {
    const { reward, format } = this.#rules;
    const { question, answers } = this.#question;
    if (format) {
      const prompt = this.#original ? question : undefined;
      const minAnswers = this.#original ? 2 : 1; // the original's prompt holds one
      return formatScore(text.conversation(this.#conversation, prompt), answers, format, {
        minAnswers,
        original: this.#original,
      });
    }
    if (reward === 'f1') return tokenOverlap(answer, answers).f1;
    return (reward === 'sub-em' ? subMatch : exactMatch)(answer, answers) ? 1 : 0;
  }

  #append(response: string): void {
    if (this.#rules.format) this.#conversation += response;
  }

  #reply(observation: string): EnvStep {
    this.#append(observation);
    return mid(observation);
  }

  #end(observation: string, reward: number, success: boolean): EnvStep {
    this.#over = true;
    return terminated(observation, reward, success);
  }
}
