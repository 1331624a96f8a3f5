/**
 * Prompts: a world's instructions for language models, as data. One table makes the instructions and the parsers of
 * `src/text/prompts/formats.ts`, so that they cannot drift apart.
 */

/** Form of an action: prompts list it, and function calls are made of it. */
export interface ActionForm {
  /** A function name, `^[a-z_]+$`. */
  readonly name: string;
  /** The action's text with `{parameters}`, e.g. `craft {makes} using {uses}`. */
  readonly template: string;
  /** The occasion to use it, in a few words. */
  readonly meaning: string;
}

/** Format in which a language model answers; `src/text/prompts/formats.ts` writes and reads each. */
export type FormatId = 'action' | 'react' | 'think' | 'function-calling' | 'code' | 'fenced';

/** Prompt of a world: what a language model reads about the world, and the forms of its actions. */
export interface WorldPrompt {
  /** Role and aim of the model, two or three sentences. */
  readonly role: string;
  /**
   * The same in short, for models whose time goes into reading: role, actions and rules in 110 tokens at the most. It names
   * every form. Instructions are made of the other fields where it is absent.
   */
  readonly short?: string;
  /** Every form an action can take; an action that fits none is still passed on word for word. */
  readonly forms: readonly ActionForm[];
  /** Hints about common mistakes, one sentence each. */
  readonly hints: readonly string[];
  /** Format that the original asks for. */
  readonly format: FormatId;
  /** Characters that no action of this world has; they are removed from an answer, as the original does. */
  readonly foreign?: RegExp;
  /** True for a world of tools (`World.tools`): it has no instructions of this kind, and is read by the model's own template. */
  readonly tools?: true;
}
