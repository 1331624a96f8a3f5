/**
 * Actions as lists, for a policy that chooses: at most 64 texts a stage. First what can be clicked, what a field may be
 * given (the objective's slots, and links followed on another site), scrolling and ending; `more` lists what is left: long
 * navigations, going back, home, tabs. An objective that asks something has its answers in a stage of their own: the texts
 * in view that are of the type it asks for.
 */
import { ACTIONS_PER_STAGE, MAX_PARTIAL_STEPS } from '../../src/core/env.ts';
import type { Snapshot } from './drivers/driver.ts';
import { type AxNode, type PrintedTree, placeOf, type Rect } from './tree.ts';
import { PUBLIC } from './urls.ts';

const CLICKABLE = new Set(['link', 'button', 'checkbox', 'radio', 'combobox', 'option', 'tab', 'menuitem', 'switch']);
const TYPABLE = new Set(['textbox', 'searchbox', 'spinbutton']);
/** Stage texts that are no actions of the grammar. */
const ANSWER = 'answer';
const MORE = 'more';
const CANCEL = 'cancel';
const FIELD = /^type \[(\d+)\]$/;
/** Typings listed beside the clicks; with more of them each field is a stage. */
const MAX_TYPINGS = 32;
const HOME = `goto [${PUBLIC.homepage}]`;
const NUMBER = /\b\d+(?:[-.:]\d+)*\b/g;

/** All that the lists are made of: the objective and the page as it is. */
export interface Choices {
  readonly intent: string;
  readonly tree: PrintedTree;
  readonly snapshot: Snapshot;
  readonly screen: readonly [width: number, height: number];
  /** Node id of the select whose options are listed. */
  readonly expanded: string | undefined;
  /** Names of links followed on other sites, which the page before may have been about. */
  readonly followed: readonly string[];
  /** There is a home page, with links to all sites. */
  readonly hasHome: boolean;
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
    const { near, far } = onPage(choices);
    const rest = [...scrolls(choices), ...ends(choices, mayStage)];
    const room = mayStage ? ACTIONS_PER_STAGE - rest.length - 1 : ACTIONS_PER_STAGE;
    const later = [...near.slice(room), ...far, ...others(choices)];
    if (this.#chosen === MORE) return [...later.slice(0, ACTIONS_PER_STAGE - 1), ...back];
    const first = [...near.slice(0, room), ...(mayStage ? [MORE] : others(choices)), ...rest];
    return mayStage ? first : first.filter((text) => !FIELD.test(text));
  }
}

function isStage(text: string): boolean {
  return text === ANSWER || text === MORE || text === CANCEL || FIELD.test(text);
}

/** A navigation with more links than this is listed under `more`. */
const LONG_NAVIGATION = 8;

/** Clicks and typings in the page's order; of an opened select its options, and the select that closes it. */
function onPage(choices: Choices): { near: string[]; far: string[] } {
  const { tree, expanded } = choices;
  const { ids, nodes } = tree;
  if (expanded !== undefined && nodes.some(({ role }) => role === 'option')) {
    const listed = ids.filter((_, i) => nodes[i]!.role === 'option' || nodes[i]!.id === expanded);
    return { near: listed.map((id) => `click [${id}]`), far: [] };
  }
  const typable = nodes.reduce((sum, { role = '' }) => sum + Number(TYPABLE.has(role)), 0);
  const given = typable === 0 ? [] : typed(choices);
  const inStages = typable * given.length > MAX_TYPINGS;
  const long = longNavigations(nodes);
  const [near, far]: [string[], string[]] = [[], []];
  for (let i = 0; i < nodes.length; i++) {
    const role = nodes[i]!.role ?? '';
    if (CLICKABLE.has(role))
      (long.some((place) => isInside(nodes[i]!.rect, place)) ? far : near).push(`click [${ids[i]}]`);
    else if (!TYPABLE.has(role)) continue;
    else if (inStages) near.push(`type [${ids[i]}]`);
    else {
      const enter = role === 'searchbox' || isBeforeButton(nodes, i) ? 1 : 0;
      for (const text of given) near.push(`type [${ids[i]}] [${text}] [${enter}]`);
    }
  }
  return { near, far };
}

/** Places of navigations with many links. */
function longNavigations(nodes: readonly AxNode[]): Rect[] {
  const places = nodes.flatMap(({ role, rect }) => (role === 'navigation' && rect ? [rect] : []));
  return places.filter(
    (place) => nodes.filter(({ role, rect }) => role === 'link' && isInside(rect, place)).length > LONG_NAVIGATION,
  );
}

function isInside(rect: Rect | null, [x, y, width, height]: Rect): boolean {
  return (
    rect !== null &&
    rect[0] >= x &&
    rect[1] >= y &&
    rect[0] + rect[2] <= x + width + 1 &&
    rect[1] + rect[3] <= y + height + 1
  );
}

/** True for a field with a button right of it in the same line: Enter there presses that button. */
function isBeforeButton(nodes: readonly AxNode[], at: number): boolean {
  const { rect } = nodes[at]!;
  const next = nodes.find(({ role = '' }, i) => i > at && (CLICKABLE.has(role) || TYPABLE.has(role)));
  return next?.role === 'button' && rect !== null && next.rect?.[1] === rect[1];
}

function scrolls({ snapshot, screen }: Choices): string[] {
  const texts: string[] = [];
  let [top, bottom] = [0, 0];
  for (const node of snapshot.nodes) {
    const place = node.role === 'RootWebArea' ? null : placeOf(node, snapshot.scrolled);
    if (place === null || place[3] <= 0) continue;
    top = Math.min(top, place[1]);
    bottom = Math.max(bottom, place[1] + place[3]);
  }
  if (bottom > screen[1] + 1) texts.push('scroll [down]');
  if (top < -1) texts.push('scroll [up]');
  return texts;
}

function others({ snapshot, hasHome }: Choices): string[] {
  const tabs = snapshot.titles.flatMap((_, i) => (i === snapshot.current ? [] : [`tab_focus [${i}]`]));
  return ['go_back', ...(hasHome ? [HOME] : []), ...tabs, ...(tabs.length > 0 ? ['close_tab'] : [])];
}

/** Types of answers that an objective may ask for; `nothing` where it tells to do something. */
type Asked = 'nothing' | 'yesno' | 'minutes' | 'distance' | 'number' | 'money' | 'date' | 'text';

const ASKS = /\?\s*$|^(?:tell|list|get|give|find|name|count|compare|identify|provide|what|who|which|how|when|where)\b/i;

function askedBy(intent: string): Asked {
  const words = intent.replace(/"[^"]*"/g, ' ');
  if (!ASKS.test(words)) return 'nothing';
  if (/^(?:can|is|are|does|do|did|has|have|was|were|will)\b/i.test(words)) return 'yesno';
  if (/\bhow long\b|\bminutes\b/i.test(words)) return 'minutes';
  if (/\bhow far\b|\bdistance\b/i.test(words)) return 'distance';
  if (/\bhow many\b|\bhow often\b/i.test(words)) return 'number';
  if (/\bprice\b|\bcosts?\b|\bspen[dt]\b|\btotal\b|\bhow much\b/i.test(words)) return 'money';
  return /\bdate\b|\bwhen\b/i.test(words) ? 'date' : 'text';
}

/** Ways to end: at once where nothing is asked, else by the stage of the answers. */
function ends({ intent }: Choices, mayStage: boolean): string[] {
  if (askedBy(intent) === 'nothing') return ['stop []'];
  return mayStage ? [ANSWER] : ['stop [N/A]'];
}

/** Texts of the intent that fill a slot: what stands in quotes, then numbers. */
function slotsOf(intent: string): string[] {
  const quoted = Array.from(intent.matchAll(/"([^"]+)"/g), ([, text]) => text!);
  return [...new Set([...quoted, ...(intent.replace(/"[^"]*"/g, ' ').match(NUMBER) ?? [])])];
}

/** Texts that a field may be given. */
function typed({ intent, followed }: Choices): string[] {
  return [...new Set([...slotsOf(intent), ...followed])].filter((text) => !/[[\]`\n]/.test(text));
}

/** Texts that one field may be given, each with and without Enter. */
function typings(field: string, choices: Choices): string[] {
  const texts = [...new Set([...typed(choices), ...values(choices)])].slice(0, (ACTIONS_PER_STAGE - 2) / 2);
  return texts.flatMap((text) => [`type [${field}] [${text}] [1]`, `type [${field}] [${text}] [0]`]);
}

const PARTS: Readonly<Partial<Record<Asked, RegExp>>> = {
  minutes: /\d+ (?:hours?|minutes?)\b/g,
  distance: /\d[\d.,]* k?m\b/g,
  number: /(?<![\w.$-])\d+(?![\w.:-])/g,
  money: /\$\d[\d,]*(?:\.\d+)?/g,
  date: /\d{4}-\d{2}-\d{2}/g,
};

/** Answers that may be given: `N/A`, then those that the page shows, of the type asked for. */
function answers(choices: Choices): string[] {
  const asked = askedBy(choices.intent);
  if (asked === 'yesno') return ['stop [Yes]', 'stop [No]', 'stop [N/A]'];
  const part = PARTS[asked];
  const shown = part ? values(choices).flatMap((text) => text.match(part) ?? []) : values(choices);
  return [...new Set(['stop [N/A]', ...shown.map((text) => `stop [${text}]`)])];
}

/** Short texts of the page's main part, in order. */
function values({ tree }: Choices): string[] {
  const found = new Set<string>();
  for (const { role, name = '' } of mainPart(tree)) {
    if (role !== 'StaticText' && role !== 'cell' && role !== 'link' && role !== 'heading') continue;
    if (name.length > 0 && name.length <= 80 && !/[[\]`\n]/.test(name)) found.add(name);
  }
  return [...found];
}

function mainPart({ nodes }: PrintedTree): readonly AxNode[] {
  const start = nodes.findIndex(({ role }) => role === 'main' || role === 'heading');
  return start < 0 ? nodes : nodes.slice(start);
}
