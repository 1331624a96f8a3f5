/**
 * Token prompting: episodes as the token ids that a policy behind `serve-policy` reads: the same codec, the same draw.
 * Decision for decision, it decides as the policy in this process would.
 */
import type { OpenAIConfig } from '../../config/run-config.ts';
import { seedFrom } from '../../core/rng.ts';
import type { Decision } from '../../core/trajectory.ts';
import { excerpt } from '../../http/http-client.ts';
import { RemoteError } from '../../http/retry.ts';
import type { Codec } from '../../text/reading/codec.ts';
import { renderPrompt } from '../../text/reading/received-transcript.ts';
import { advanceTranscript } from '../../text/reading/replay-turns.ts';
import type { Transcript } from '../../text/reading/transcript.ts';
import type { Acted, ActRequest } from '../policy.ts';
import type { Completion } from './openai-client.ts';
import type { Prompt, Prompting } from './prompting.ts';

export class TokenPrompting implements Prompting {
  readonly #config: OpenAIConfig;
  readonly #model: string;
  readonly #codec: Codec;
  readonly #transcripts = new Map<number, Transcript>();

  constructor(config: OpenAIConfig, model: string, codec: Codec) {
    this.#config = config;
    this.#model = model;
    this.#codec = codec;
  }

  ask(request: ActRequest): Prompt {
    const transcript = advanceTranscript(this.#codec, this.#transcripts.get(request.episode), request);
    this.#transcripts.set(request.episode, transcript);
    const choices = Array.from(request.actions, (index) => transcript.table[index]!);
    const { prompt, after, focus, mentions, candidates } = renderPrompt(transcript, choices);
    const body = {
      model: this.#model,
      prompt: [...prompt, ...after],
      temperature: request.temperature,
      max_tokens: this.#config.maxTokens,
      seed: seedFrom(request.samplingSeed, request.turn),
      logprobs: 1,
      return_token_ids: true,
      ...(choices.length > 0 ? { guided_choice: choices } : {}),
      // The rest of the transcript, beside its tokens; see serve/policy-prompts.ts.
      longplay: {
        prompt_length: prompt.length,
        focus,
        ...(choices.length > 0 ? { mentions: choices.map((action) => mentions.get(action)) } : {}),
        ...(candidates ? { candidates: choices.map((action) => candidates.get(action) ?? action) } : {}),
      },
      ...this.#config.body,
    };
    const kept = Object.entries(body).filter(([key]) => !this.#config.omit.includes(key));
    return { api: 'completions', body: Object.fromEntries(kept) };
  }

  read(request: ActRequest, completion: Completion): Acted {
    const { episode, turn } = request;
    const transcript = this.#transcripts.get(episode)!;
    const { text, tokens, logprobs, longplay, promptTokens, completionTokens } = completion;
    const context = transcript.takeContext();
    const from = { version: longplay?.version ?? 0, context, value: longplay?.value ?? 0 };
    let decision: Decision;
    if (tokens && logprobs && tokens.length === logprobs.length) {
      decision = { kind: 'tokens', ...from, tokens, logprobs, masked: request.actions.length > 0 };
      transcript.write(tokens);
    } else {
      const choice = request.actions.findIndex((index) => transcript.table[index] === text);
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
    for (const episode of episodes) this.#transcripts.delete(episode);
  }

  forget(): void {
    this.#transcripts.clear();
  }
}
