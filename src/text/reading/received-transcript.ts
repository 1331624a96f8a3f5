/**
 * Transcripts from outside: an episode whose prompt a client rendered and sent, as plain data. Token prompting makes
 * them, the policy server reads them.
 */
import { type AnswerLimits, MAX_MENTIONS, type Observed, type Prompt, type Transcript } from './transcript.ts';

/** Transcript as plain data; one turn of an episode. */
export interface RenderedPrompt {
  /** [P] token ids of the prompt, P ≥ 1. */
  readonly prompt: Int32Array;
  /** [T] token ids after it, up to the position that decides, T ≥ 1. */
  readonly after: Int32Array;
  /** Token ids that carry the focus bit. */
  readonly focus: readonly number[];
  /** Mentions by action text: positions in the prompt; none counts as position 0. */
  readonly mentions: ReadonlyMap<string, readonly number[]>;
  /** Candidates by action text: the text that the policy reads of it, where that differs. */
  readonly candidates?: ReadonlyMap<string, string>;
}

/** Renders a transcript as it stands, for sending. @param actions texts that can be chosen */
export function renderPrompt(transcript: Transcript, actions: readonly string[]): RenderedPrompt {
  const { prompt, tokens } = transcript;
  const candidates = actions
    .map((action) => [action, transcript.candidate(action)] as const)
    .filter(([action, read]) => read !== action);
  return {
    prompt: prompt.tokens,
    after: Int32Array.from(tokens),
    focus: [...prompt.focus],
    mentions: new Map(actions.map((action) => [action, prompt.mentions(action)])),
    ...(candidates.length > 0 ? { candidates: new Map(candidates) } : {}),
  };
}

/** Transcript of what a client sent; it has this one turn. */
export class ReceivedTranscript implements Transcript {
  readonly prompt: Prompt;
  readonly tokens: number[];
  readonly table: string[];
  readonly limits: AnswerLimits | undefined;
  readonly #candidates: RenderedPrompt['candidates'];
  #taken = 0;

  /** @param limits of the answer, besides those of the policy */
  constructor(
    rendered: RenderedPrompt,
    { newActions }: Pick<Observed, 'newActions'> = { newActions: [] },
    limits?: AnswerLimits | undefined,
  ) {
    this.limits = limits;
    const { prompt, after, focus, mentions, candidates } = rendered;
    this.#candidates = candidates;
    this.prompt = {
      tokens: prompt,
      shared: false,
      focus: new Set(focus),
      mentions(action) {
        const places = mentions.get(action)?.slice(0, MAX_MENTIONS) ?? [];
        return places.length > 0 ? places : [0];
      },
    };
    this.tokens = [...after];
    this.table = [...newActions];
  }

  candidate(action: string): string {
    return this.#candidates?.get(action) ?? action;
  }

  takeContext(): Int32Array {
    const head = this.#taken === 0 ? this.prompt.tokens : [];
    const context = Int32Array.from([...head, ...this.tokens.slice(this.#taken)]);
    this.#taken = this.tokens.length;
    return context;
  }

  write(ids: Iterable<number>): void {
    for (const id of ids) this.tokens.push(id);
    this.#taken = this.tokens.length;
  }

  /**
   * Observes nothing.
   * @throws {RangeError} always: the client that rendered the first turn has to render the next one too
   */
  observe(): void {
    throw new RangeError('policy: an episode of given prompts has one turn');
  }
}
