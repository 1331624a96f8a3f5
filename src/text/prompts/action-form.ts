/** Action forms in use: parameters, filling, and taking an action's text apart. */
import type { ActionForm } from '../../core/prompt.ts';

/** Form for texts that fit no other one, so that every text can be written as a call. */
export const OTHER: ActionForm = { name: 'other', template: '{action}', meaning: 'any other action, word for word' };

const PARAMETER = /\{([a-z_]+)\}/g;

/** Names of the parameters, in order. */
export function parametersOf({ template }: ActionForm): readonly string[] {
  return [...template.matchAll(PARAMETER)].map(([, name]) => name!);
}

/** Fills a form: the action's text. @param args a value for each parameter */
export function fill({ template }: ActionForm, args: Readonly<Record<string, string>>): string {
  return template.replace(PARAMETER, (_, name: string) => args[name] ?? '');
}

export interface Call {
  readonly form: ActionForm;
  readonly args: Readonly<Record<string, string>>;
}

/** Call of the first form that a text fits, taken apart; `fill(form, args)` gives the text back. */
export function callOf(forms: readonly ActionForm[], action: string): Call {
  for (const form of forms) {
    const names = parametersOf(form);
    const match = patternOf(form.template).exec(action);
    if (match) return { form, args: Object.fromEntries(names.map((name, i) => [name, match[i + 1]!])) };
  }
  return { form: OTHER, args: { action } };
}

const patterns = new Map<string, RegExp>();

function patternOf(template: string): RegExp {
  let pattern = patterns.get(template);
  if (!pattern) {
    const literals = template.split(PARAMETER).filter((_, i) => i % 2 === 0);
    const source = literals.map((text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('([\\s\\S]+?)');
    patterns.set(template, (pattern = new RegExp(`^${source}$`)));
  }
  return pattern;
}
