/**
 * Episodes as the token ids that the small policy reads, for our own policies behind `serve-policy`: the same view, the
 * same tokenizer, the same draw. Decision for decision, it decides as the policy in this process would.
 */
import type { OpenAIConfig } from '../../config/run-config.ts';
import { seedFrom } from '../../core/rng.ts';
import type { Decision } from '../../core/trajectory.ts';
import type { SeenTurn, View } from '../../core/view.ts';
import type { Acted, ActRequest } from '../../policy/policy.ts';
import { type PromptReading, readRendered, readTurn } from '../../policy/reading.ts';
import { ACT, Tokenizer } from '../../policy/tokenizer.ts';
import { excerpt } from '../http-client.ts';
import { RemoteError } from '../retry.ts';
import type { Completion } from './openai-client.ts';
import type { Prompt, Prompting } from './prompting.ts';

interface Reading {
  readonly table: string[];
  readonly firstObservation: string;
  readonly turns: SeenTurn[];
  prompt: PromptReading;
  /** Tokens after the prompt. */
  tokens: number[];
  /** Of those, already told in a decision's context. */
  told: number;
}

export class TokenPrompting implements Prompting {
  readonly #config: OpenAIConfig;
  readonly #model: string;
  readonly #view: View;
  readonly #tokenizer: Tokenizer;
  readonly #readings = new Map<number, Reading>();

  constructor(config: OpenAIConfig, model: string, view: View) {
    this.#config = config;
    this.#model = model;
    this.#view = view;
    this.#tokenizer = new Tokenizer(view);
  }

  ask(request: ActRequest): Prompt {
    const known = this.#readings.get(request.episode);
    const reading = known ?? this.#open(request);
    for (const text of request.newActions) reading.table.push(text);
    if (request.turn > 0 && request.lastAction !== undefined && (known || request.history))
      this.#append(reading, request);
    const choices = Array.from(request.actions, (index) => reading.table[index]!);
    const { prompt, tokens } = reading;
    const body = {
      model: this.#model,
      prompt: [...prompt.tokens, ...tokens],
      temperature: request.temperature,
      max_tokens: this.#config.maxTokens,
      seed: seedFrom(request.samplingSeed, request.turn),
      logprobs: 1,
      return_token_ids: true,
      ...(choices.length > 0 ? { guided_choice: choices } : {}),
      // What the view knows beside the tokens; see serve/policy-prompts.ts.
      longplay: {
        prompt_length: prompt.tokens.length,
        focus: [...prompt.focus],
        ...(choices.length > 0 ? { mentions: choices.map((action) => prompt.mentions(action)) } : {}),
      },
      ...this.#config.body,
    };
    return { api: 'completions', body };
  }

  read(request: ActRequest, completion: Completion): Acted {
    const { episode, turn } = request;
    const reading = this.#readings.get(episode)!;
    const { text, tokens, logprobs, longplay, promptTokens, completionTokens } = completion;
    const from = { version: longplay?.version ?? 0, context: this.#context(reading), value: longplay?.value ?? 0 };
    let decision: Decision;
    if (tokens && logprobs && tokens.length === logprobs.length) {
      decision = { kind: 'tokens', ...from, tokens, logprobs, masked: request.actions.length > 0 };
      reading.tokens.push(...tokens);
      reading.told = reading.tokens.length;
    } else {
      const choice = request.actions.findIndex((index) => reading.table[index] === text);
      if (choice < 0 || logprobs?.length !== 1) {
        throw new RemoteError(
          'mismatch',
          `the server chose '${excerpt(text, 80)}', which is none of the listed actions`,
        );
      }
      decision = { kind: 'choice', ...from, choice, logprob: logprobs[0]! };
    }
    return { episode, turn, action: text, decision, response: { text, promptTokens, completionTokens } };
  }

  release(episodes: readonly number[]): void {
    for (const episode of episodes) this.#readings.delete(episode);
  }

  #open(request: ActRequest): Reading {
    const history = request.history ?? [];
    const firstObservation = history[0]?.observation ?? request.observation;
    const first = { kind: 'first', observation: firstObservation } as const;
    const rendered = this.#view.mode === 'append' ? this.#view.prompt(first) : this.#view.render(first, []);
    const prompt = readRendered(this.#tokenizer, rendered);
    const reading: Reading = { table: [], firstObservation, turns: [], prompt, tokens: [ACT], told: 0 };
    this.#readings.set(request.episode, reading);
    history.forEach(({ action, decision }, i) => {
      if (decision?.kind === 'tokens') reading.tokens.push(...decision.tokens);
      const after = history[i + 1]?.observation;
      if (after !== undefined) this.#take(reading, { action, observation: after });
    });
    if (history.length > 0) reading.told = reading.tokens.length;
    return reading;
  }

  #append(reading: Reading, { lastAction, observation }: ActRequest): void {
    this.#take(reading, { action: lastAction!, observation });
    if (this.#view.mode === 'append') return;
    const first = { kind: 'first', observation: reading.firstObservation } as const;
    reading.prompt = readRendered(this.#tokenizer, this.#view.render(first, reading.turns));
    reading.tokens = [ACT];
    reading.told = 0;
  }

  #take(reading: Reading, turn: SeenTurn): void {
    reading.turns.push(turn);
    if (this.#view.mode === 'append') reading.tokens.push(...readTurn(this.#tokenizer, this.#view, turn));
  }

  #context(reading: Reading): Int32Array {
    const { told, tokens, prompt } = reading;
    reading.told = tokens.length;
    const fresh = tokens.slice(told);
    return told === 0 ? Int32Array.from([...prompt.tokens, ...fresh]) : Int32Array.from(fresh);
  }
}
