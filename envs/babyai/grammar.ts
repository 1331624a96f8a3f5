/**
 * Grammar: action text ⇄ command. One table for what is listed, what is understood and what is refused, so the three
 * agree.
 */

/** Actions that need no object. */
export const PLAIN = ['turn left', 'turn right', 'move forward', 'drop', 'toggle', 'check available actions'] as const;
/** Actions on a thing in sight. */
export const VERBS = ['toggle and go through', 'go through', 'go to', 'pickup'] as const;

export type PlainAction = (typeof PLAIN)[number];
export type Verb = (typeof VERBS)[number];

/** Parsed action text. */
export type Command =
  | { readonly type: 'plain'; readonly action: PlainAction }
  /** `name` and `number` as observations give them, e.g. `red ball` 1. */
  | { readonly type: 'thing'; readonly verb: Verb; readonly name: string; readonly number: number }
  | { readonly type: 'unparsed' };

const THING =
  /^(toggle and go through|go through|go to|pickup) ((?:red|green|blue|purple|yellow|grey) (?:key|ball|box|(?:open|closed|locked) door))(?: ([1-9]\d{0,3}))?$/;

/**
 * Reads an action. Case, surplus blanks and a final full stop do not matter, `pick up` is `pickup`, and a missing
 * number is 1: what the original's prompt taught and its parser refused.
 */
export function parse(action: string): Command {
  const words = action
    .trim()
    .toLowerCase()
    .replace(/\s+/g, ' ')
    .replace(/\.$/, '')
    .replace(/^pick up /, 'pickup ');
  const plain = PLAIN.find((known) => known === words);
  if (plain) return { type: 'plain', action: plain };
  const match = THING.exec(words);
  if (!match) return { type: 'unparsed' };
  return { type: 'thing', verb: match[1] as Verb, name: match[2]!, number: match[3] ? Number(match[3]) : 1 };
}

/** Prints the exact text that is listed for a command; empty for one that was not understood. */
export function print(command: Command): string {
  if (command.type === 'unparsed') return '';
  return command.type === 'plain' ? command.action : `${command.verb} ${command.name} ${command.number}`;
}
