/**
 * Actions as lists, for a policy that chooses: at most 64 texts a stage. First what can be clicked, the fields, scrolling
 * and going back; then, for a field or an answer, the texts that may go there.
 */
import { ACTIONS_PER_STAGE, MAX_PARTIAL_STEPS } from '../../src/core/env.ts';
import type { Snapshot } from './drivers/driver.ts';
import type { AxNode, PrintedTree } from './tree.ts';

const CLICKABLE = new Set(['link', 'button', 'checkbox', 'radio', 'combobox', 'option', 'tab', 'menuitem', 'switch']);
const TYPABLE = new Set(['textbox', 'searchbox', 'spinbutton']);
/** Stage texts that are no actions of the grammar. */
const ANSWER = 'answer';
const MORE = 'more';
const CANCEL = 'cancel';
const FIELD = /^type \[(\d+)\]$/;

/** All that the lists are made of: the objective and the page as it is. */
export interface Choices {
  readonly intent: string;
  readonly tree: PrintedTree;
  readonly snapshot: Snapshot;
  readonly screen: readonly [width: number, height: number];
}

/** Position of an episode in the stages. */
export class Stage {
  /** Stage text that was chosen last; undefined at the first stage. */
  #chosen: string | undefined;
  #partials = 0;

  /** @returns true if the text is one of this stage's own texts: the world does not move */
  takes(text: string, choices: Choices): boolean {
    if (!isStage(text) || this.#partials >= MAX_PARTIAL_STEPS || !this.list(choices).includes(text)) return false;
    this.#chosen = text === CANCEL ? undefined : text;
    this.#partials++;
    return true;
  }

  /** Back to the first stage, after a whole action. */
  reset(): void {
    this.#chosen = undefined;
    this.#partials = 0;
  }

  list(choices: Choices): readonly string[] {
    return this.#texts(choices).slice(0, ACTIONS_PER_STAGE);
  }

  #texts(choices: Choices): string[] {
    // One way back, and none where it or what follows would be a step too many.
    const back = this.#partials < MAX_PARTIAL_STEPS - 2 ? [CANCEL] : [];
    const mayStage = this.#partials < MAX_PARTIAL_STEPS;
    if (this.#chosen === ANSWER) return [...answers(choices).slice(0, ACTIONS_PER_STAGE - 1), ...back];
    const field = FIELD.exec(this.#chosen ?? '')?.[1];
    if (field !== undefined) return [...typings(field, choices).slice(0, ACTIONS_PER_STAGE - 1), ...back];
    const all = clicks(choices);
    const rest = [...others(choices), ...(mayStage ? [ANSWER] : [])];
    const room = ACTIONS_PER_STAGE - rest.length - 1;
    const first = mayStage ? all : all.filter((text) => !FIELD.test(text));
    if (this.#chosen === MORE) return [...first.slice(room), ...back];
    return [...first.slice(0, room), ...(first.length > room && mayStage ? [MORE] : []), ...rest];
  }
}

function isStage(text: string): boolean {
  return text === ANSWER || text === MORE || text === CANCEL || FIELD.test(text);
}

function clicks({ tree }: Choices): string[] {
  const texts: string[] = [];
  for (const [id, { role = '' }] of tree.nodes) {
    if (CLICKABLE.has(role)) texts.push(`click [${id}]`);
    else if (TYPABLE.has(role)) texts.push(`type [${id}]`);
  }
  return texts;
}

function others({ snapshot, screen }: Choices): string[] {
  const texts: string[] = [];
  const lies = (test: (top: number, bottom: number) => boolean) => {
    return snapshot.nodes.some(
      ({ rect, role }) => rect !== null && role !== 'RootWebArea' && rect[3] > 0 && test(rect[1], rect[1] + rect[3]),
    );
  };
  if (lies((_top, bottom) => bottom > screen[1] + 1)) texts.push('scroll [down]');
  if (lies((top) => top < -1)) texts.push('scroll [up]');
  texts.push('go_back');
  if (snapshot.titles.length > 1) {
    for (const i of snapshot.titles.keys()) if (i !== snapshot.current) texts.push(`tab_focus [${i}]`);
    texts.push('close_tab');
  }
  return texts;
}

/** Texts of the intent that fill a slot: what stands in quotes, then numbers. */
function slotsOf(intent: string): string[] {
  const quoted = Array.from(intent.matchAll(/"([^"]+)"/g), ([, text]) => text!);
  const numbers = Array.from(intent.replace(/"[^"]*"/g, ' ').matchAll(/\b\d+\b/g), ([digits]) => digits);
  return [...new Set([...quoted, ...numbers])];
}

/** Texts that a field may be given, each with and without Enter. */
function typings(field: string, choices: Choices): string[] {
  const texts = [...new Set([...slotsOf(choices.intent), ...values(choices)])].slice(0, (ACTIONS_PER_STAGE - 2) / 2);
  return texts.flatMap((text) => [`type [${field}] [${text}] [1]`, `type [${field}] [${text}] [0]`]);
}

/** Answers that may be given: nothing, `N/A`, Yes and No, then what the page shows. */
function answers(choices: Choices): string[] {
  const shown = values(choices).map((text) => `stop [${text}]`);
  return [...new Set(['stop []', 'stop [N/A]', 'stop [Yes]', 'stop [No]', ...shown])];
}

/** Short texts of the page's main part, in order; of one with a number in it, the number too. */
function values({ tree }: Choices): string[] {
  const found = new Set<string>();
  const inMain = mainPart(tree);
  for (const { role, name = '' } of inMain) {
    if (role !== 'StaticText' && role !== 'cell' && role !== 'link' && role !== 'heading') continue;
    if (name.length === 0 || name.length > 80 || /[[\]`\n]/.test(name)) continue;
    found.add(name);
    const numbers = name.match(/(?<![\w.$-])\d+(?![\w.:-])/g);
    if (numbers && numbers[0] !== name) found.add(numbers[0]);
  }
  return [...found];
}

function mainPart(tree: PrintedTree): AxNode[] {
  const nodes = [...tree.nodes.values()];
  const start = nodes.findIndex(({ role }) => role === 'main' || role === 'heading');
  return start < 0 ? nodes : nodes.slice(start);
}
