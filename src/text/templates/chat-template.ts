/** Chat templates: conversations → text by a model's own Jinja template, as transformers renders it. */
import { Template } from '@huggingface/jinja';
import { messageOf, UserError } from '../../core/errors.ts';
import { callWithin } from './deadline.ts';
import type { Json } from './model-text.ts';

/** Message of a conversation; templates may read more fields than these. */
export interface ChatMessage {
  readonly role: string;
  readonly content: unknown;
  readonly [field: string]: unknown;
}

export interface RenderOptions {
  readonly tools?: readonly unknown[] | null;
  /** True to end with the opening of an assistant's turn. */
  readonly addGenerationPrompt?: boolean;
  /** Variables, further names that the template may read. */
  readonly variables?: Json;
}

/** Longest parse and longest rendering, milliseconds; a conversation of twenty messages takes one. */
const RENDER_MS = 700;

/**
 * Date that a template is given as today's, the one that Llama 3.1's own states: what is rendered again on another day has
 * to be the same text.
 */
const TODAY: Readonly<Record<string, string>> = {
  ...{ Y: '2024', y: '24', m: '07', d: '26', j: '208', b: 'Jul', B: 'July', a: 'Fri', A: 'Friday' },
  ...{ H: '12', I: '12', M: '00', S: '00', p: 'PM' },
};

/** Statement that gives a template this date. */
const PIN_DATE = '{%- set strftime_now = formatToday %}';

/** Formats the date as Python's `strftime`. */
function formatToday(format: string): string {
  return format.replace(/%-?([A-Za-z%])/g, (_, letter: string) => TODAY[letter] ?? letter);
}

export class ChatTemplate {
  /** Text of the Jinja template. */
  readonly text: string;
  readonly #template: Template;
  readonly #source: string;
  readonly #tokens: Json;
  /** True where it writes a date. */
  readonly #isDated: boolean;

  /**
   * @param text   the Jinja text
   * @param tokens `bos_token`, `eos_token` and the like, as the template sees them
   * @param source named in errors
   * @throws {UserError} BAD_CHECKPOINT for a template that cannot be read
   */
  constructor(text: string, tokens: Json, source: string) {
    this.text = text;
    this.#source = source;
    this.#isDated = text.includes('strftime_now');
    this.#tokens = tokens;
    try {
      this.#template = callWithin(RENDER_MS, () => new Template(this.#isDated ? PIN_DATE + text : text));
    } catch (thrown) {
      // The parser runs off the end of a template that is cut off, into a TypeError of its own.
      const why = thrown instanceof TypeError ? 'it ends in the middle of an expression or block' : messageOf(thrown);
      throw new UserError('BAD_CHECKPOINT', `${source}: the chat template cannot be read: ${why}`, { cause: thrown });
    }
  }

  /**
   * Renders a conversation.
   * @throws {UserError} BAD_CHECKPOINT with what the template itself raises, or where it does not end
   */
  render(
    messages: readonly ChatMessage[],
    { tools = null, addGenerationPrompt = false, variables = {} }: RenderOptions = {},
  ): string {
    try {
      return callWithin(RENDER_MS, () =>
        this.#template.render({
          messages,
          tools,
          add_generation_prompt: addGenerationPrompt,
          ...(this.#isDated ? { formatToday } : {}),
          ...this.#tokens,
          ...variables,
        }),
      );
    } catch (thrown) {
      throw new UserError('BAD_CHECKPOINT', `${this.#source}: the chat template fails: ${messageOf(thrown)}`, {
        cause: thrown,
      });
    }
  }
}

/**
 * Text of the template in a `tokenizer_config.json`: a string, or a list of named ones of which `default` is taken
 * (`tool_use` for conversations with tools, where there is one).
 * @returns `undefined` where there is none
 */
export function templateText(value: unknown, withTools = false): string | undefined {
  if (typeof value === 'string') return value;
  if (!Array.isArray(value)) return undefined;
  const named = new Map(value.map((one: { name?: string; template?: string }) => [one?.name, one?.template]));
  return (withTools ? named.get('tool_use') : undefined) ?? named.get('default');
}

/** Special tokens that templates read, as text, from a `tokenizer_config.json`. */
export function templateTokens(config: Json): Json {
  const tokens: Record<string, string> = {};
  for (const [name, value] of Object.entries(config)) {
    if (!/^(bos|eos|pad|unk|sep|cls|mask)_token$/.test(name)) continue;
    const text = typeof value === 'string' ? value : (value as { content?: unknown } | null)?.content;
    if (typeof text === 'string') tokens[name] = text;
  }
  return tokens;
}
