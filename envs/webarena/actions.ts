/**
 * Actions as lists, for a policy that chooses: at most 64 texts a stage. First what can be clicked, what a field may be
 * given (the objective's slots, and links followed on another site), scrolling and ending. Stages hold the rest: `rows`
 * the links of a long table whose rows name nothing of the objective, `more` what is seldom needed (long navigations,
 * texts in fields that the objective calls otherwise, going back, home, tabs). An objective that asks something has its
 * answers in a stage of their own: the texts in view that are of the type it asks for. Nothing is left out that can be
 * done; words are compared for equality, and nothing else.
 */
import { ACTIONS_PER_STAGE } from '../../src/core/env.ts';
import { append } from '../../src/core/extremes.ts';
import type { Snapshot } from './drivers/driver.ts';
import { isCalled, slotsOf } from './objective.ts';
import { type AxNode, type PrintedTree, placeOf, type Rect } from './tree.ts';
import { PUBLIC } from './urls.ts';

const CLICKABLE = new Set(['link', 'button', 'checkbox', 'radio', 'combobox', 'option', 'tab', 'menuitem', 'switch']);
const TYPABLE = new Set(['textbox', 'searchbox', 'spinbutton']);
/** Stage texts that are no actions of the grammar. */
const ANSWER = 'answer';
const ROWS = 'rows';
const MORE = 'more';
const CANCEL = 'cancel';
const FIELD = /^type \[(\d+)\]$/;
/** Stages in a row at most. */
const MAX_STAGES = 4;
/** Typings listed beside the clicks; with more of them each field is a stage. */
const MAX_TYPINGS = 32;
const HOME = `goto [${PUBLIC.homepage}]`;

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
  /** The page is the one that the episode began with: one ends elsewhere. */
  readonly isStart: boolean;
}

/** Position of an episode in the stages. */
export class Stage {
  /** Stage text that was chosen last; undefined at the first stage. */
  #chosen: string | undefined;
  #partials = 0;

  /** @returns true if the text is one of this stage's own texts: the world does not move */
  takes(text: string, choices: Choices): boolean {
    if (!isStage(text) || this.#partials >= MAX_STAGES || !this.list(choices).includes(text)) return false;
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
    const back = this.#partials < MAX_STAGES - 2 ? [CANCEL] : [];
    const mayStage = this.#partials < MAX_STAGES;
    if (this.#chosen === ANSWER) return [...answers(choices).slice(0, ACTIONS_PER_STAGE - 1), ...back];
    const field = FIELD.exec(this.#chosen ?? '')?.[1];
    if (field !== undefined) return [...typings(field, choices).slice(0, ACTIONS_PER_STAGE - 1), ...back];
    const { near, rows, far } = onPage(choices);
    const [scrolling, ending] = [scrolls(choices), ends(choices, mayStage)];
    const rest = isOpened(choices) ? [] : choices.isStart ? scrolling : [...scrolling, ...ending];
    const seldom = [...scrolling, ...ending].filter((text) => !rest.includes(text));
    const room = mayStage ? ACTIONS_PER_STAGE - rest.length - 2 : ACTIONS_PER_STAGE;
    if (!mayStage)
      return [...near, ...far, ...others(choices), ...scrolling, ...ending].filter((text) => !FIELD.test(text));
    if (this.#chosen === ROWS) return [...rows.slice(0, ACTIONS_PER_STAGE - 1), ...back];
    if (this.#chosen === MORE) {
      const later = [...seldom, ...others(choices), ...near.slice(room), ...far];
      return [...later.slice(0, ACTIONS_PER_STAGE - 1), ...back];
    }
    return [...near.slice(0, room), ...(rows.length > 0 ? [ROWS] : []), MORE, ...rest];
  }
}

function isStage(text: string): boolean {
  return text === ANSWER || text === ROWS || text === MORE || text === CANCEL || FIELD.test(text);
}

/** A navigation with more links than this is listed under `more`. */
const LONG_NAVIGATION = 8;
/** A table or list with more links than this has those in `rows` whose row names nothing of the objective. */
const LONG_TABLE = 6;

/** Clicks and typings of a page, in its order: those of the first stage, of `rows`, and of `more`. */
interface OnPage {
  readonly near: string[];
  readonly rows: string[];
  readonly far: string[];
}

/** True while a select shows its options. */
function isOpened({ tree, expanded }: Choices): boolean {
  return expanded !== undefined && tree.nodes.some(({ role }) => role === 'option');
}

function onPage(choices: Choices): OnPage {
  if (isOpened(choices)) return options(choices);
  const { tree, intent } = choices;
  const { ids, nodes } = tree;
  const navigations = longPlaces(nodes, NAVIGATION, LONG_NAVIGATION);
  const tables = longPlaces(nodes, TABLE, LONG_TABLE);
  const named = tables.length === 0 ? new Set<number>() : findNamedRows(nodes, intent);
  const fields = typingsOf(choices);
  const page: OnPage = { near: [], rows: [], far: [] };
  for (let i = 0; i < nodes.length; i++) {
    const { role = '', rect } = nodes[i]!;
    if (CLICKABLE.has(role)) {
      const isIn = (places: readonly Rect[]) => places.some((place) => isInside(rect, place));
      const isLater =
        isIn(navigations) || (role === 'button' ? isAfterField(nodes, i) : leadsHere(nodes[i]!, choices.snapshot.url));
      const inRows = !isLater && role === 'link' && isIn(tables) && !named.has(rect![1]);
      (isLater ? page.far : inRows ? page.rows : page.near).push(`click [${ids[i]}]`);
    } else if (TYPABLE.has(role)) {
      const { first, later } = fields.get(i)!;
      append(page.near, first);
      append(page.far, later);
    }
  }
  return page;
}

/** Options of an opened select: those that the objective quotes first, where it quotes one. */
function options({ tree: { ids, nodes }, expanded, intent }: Choices): OnPage {
  const clicks = (fits: (node: AxNode) => boolean) =>
    ids.filter((_, i) => fits(nodes[i]!)).map((id) => `click [${id}]`);
  const quoted = new Set(slotsOf(intent).map(({ text }) => text.toLowerCase()));
  const isQuoted = ({ name = '' }: AxNode) => quoted.has(name.toLowerCase());
  const first = clicks((node) => node.role === 'option' && isQuoted(node));
  const others = clicks((node) => node.role === 'option' && !isQuoted(node));
  const box = clicks(({ id }) => id === expanded);
  return first.length > 0 ? { near: first, rows: [], far: [...others, ...box] } : { near: others, rows: [], far: box };
}

/** Typings of each field by its place among the nodes: those listed at once, and those under `more`. */
function typingsOf(choices: Choices): Map<number, { first: string[]; later: string[] }> {
  const { intent, tree } = choices;
  const { ids, nodes } = tree;
  const fields = [...nodes.keys()].filter((i) => TYPABLE.has(nodes[i]!.role ?? ''));
  const given = fields.length === 0 ? [] : listTexts(choices);
  const slots = slotsOf(intent);
  const bearers = nodes.filter(({ role = '' }) => TYPABLE.has(role) || role === 'combobox');
  const held = new Set(fields.map((i) => nodes[i]!.value ?? ''));
  const calls = (node: AxNode, text: string) =>
    slots.some((slot) => slot.text === text && isCalled(slot, node.name ?? ''));
  // What the objective calls by a label on this page belongs there, and there belongs nothing else.
  const claimed = new Set(given.filter((text) => bearers.some((node) => calls(node, text))));
  const fits = (node: AxNode, text: string) =>
    !held.has(text) && (calls(node, text) || (!claimed.has(text) && !given.some((other) => calls(node, other))));
  const inStages =
    fields.reduce((sum, i) => sum + given.filter((text) => fits(nodes[i]!, text)).length, 0) > MAX_TYPINGS;
  return new Map(
    fields.map((i) => {
      if (inStages) return [i, { first: [`type [${ids[i]}]`], later: [] }];
      const enter = nodes[i]!.role === 'searchbox' || isBeforeButton(nodes, i) ? 1 : 0;
      const typing = (text: string) => `type [${ids[i]}] [${text}] [${enter}]`;
      const first = given.filter((text) => fits(nodes[i]!, text));
      return [i, { first: first.map(typing), later: given.filter((text) => !first.includes(text)).map(typing) }];
    }),
  );
}

/** Tops of the lines in which a text has one of the objective's slots, in CSS pixels. */
function findNamedRows(nodes: readonly AxNode[], intent: string): Set<number> {
  const slots = slotsOf(intent).map(({ text }) => text.toLowerCase());
  const tops = new Set<number>();
  for (const { rect, name = '', role } of nodes) {
    if (rect === null || role === 'table' || role === 'list') continue;
    const lower = name.toLowerCase();
    if (slots.some((slot) => lower === slot || (slot.length > 2 && lower.includes(slot)))) tops.add(rect[1]);
  }
  return tops;
}

const NAVIGATION = new Set(['navigation']);
const TABLE = new Set(['table', 'list']);

/** Places of what has one of these roles and more links than `max`. */
function longPlaces(nodes: readonly AxNode[], roles: ReadonlySet<string>, max: number): Rect[] {
  const places = nodes.flatMap(({ role = '', rect }) => (roles.has(role) && rect ? [rect] : []));
  return places.filter(
    (place) => nodes.filter(({ role, rect }) => role === 'link' && isInside(rect, place)).length > max,
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

/** True for a link to the page that it stands on. */
function leadsHere({ role, properties }: AxNode, url: string): boolean {
  return role === 'link' && properties.some(([name, value]) => name === 'url' && value === url);
}

/** True for a button whose line has one field and nothing else to fill in: Enter in that field presses it. */
function isAfterField(nodes: readonly AxNode[], at: number): boolean {
  const top = nodes[at]!.rect?.[1];
  const line = nodes.filter(({ role = '', rect }) => rect?.[1] === top && (CLICKABLE.has(role) || TYPABLE.has(role)));
  return line.length === 2 && TYPABLE.has(line[0]!.role ?? '') && line[1] === nodes[at];
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

/** Types of answers that an objective may ask for; `nothing` where it is an order. */
type AnswerType = 'nothing' | 'yesno' | 'minutes' | 'distance' | 'number' | 'money' | 'date' | 'text';

const ASKS = /\?\s*$|^(?:tell|list|get|give|find|name|count|compare|identify|provide|what|who|which|how|when|where)\b/i;

function parseAnswerType(intent: string): AnswerType {
  const words = intent.replace(/"[^"]*"/g, ' ');
  if (!ASKS.test(words)) return 'nothing';
  if (/^(?:can|is|are|does|do|did|has|have|was|were|will)\b/i.test(words)) return 'yesno';
  if (/\bhow long\b|\bminutes\b/i.test(words)) return 'minutes';
  if (/\bhow far\b|\bdistance\b/i.test(words)) return 'distance';
  if (/\bhow many\b|\bhow often\b/i.test(words)) return 'number';
  if (/\bprice\b|\bcosts?\b|\bspen[dt]\b|\btotal\b|\bhow much\b/i.test(words)) return 'money';
  return /\bdate\b|\bwhen\b/i.test(words) ? 'date' : 'text';
}

/** Ways to end: at once where no answer is asked for, else by the stage of the answers. */
function ends({ intent }: Choices, mayStage: boolean): string[] {
  if (parseAnswerType(intent) === 'nothing') return ['stop []'];
  return mayStage ? [ANSWER] : ['stop [N/A]'];
}

/** Texts that a field may be given. */
function listTexts({ intent, followed }: Choices): string[] {
  const slots = slotsOf(intent).map(({ text }) => text);
  return [...new Set([...slots, ...followed])].filter((text) => !/[[\]`\n]/.test(text));
}

/** Texts that one field may be given, each with and without Enter. */
function typings(field: string, choices: Choices): string[] {
  const texts = [...new Set([...listTexts(choices), ...values(choices)])].slice(0, (ACTIONS_PER_STAGE - 2) / 2);
  return texts.flatMap((text) => [`type [${field}] [${text}] [1]`, `type [${field}] [${text}] [0]`]);
}

const PARTS: Readonly<Partial<Record<AnswerType, RegExp>>> = {
  minutes: /\d+ (?:hours?|minutes?)\b/g,
  distance: /\d[\d.,]* k?m\b/g,
  number: /(?<![\w.$-])\d+(?![\w.:-])/g,
  money: /\$\d[\d,]*(?:\.\d+)?/g,
  date: /\d{4}-\d{2}-\d{2}/g,
};

/** Answers that may be given: `N/A`, then those that the page shows, of the type asked for. */
function answers(choices: Choices): string[] {
  const type = parseAnswerType(choices.intent);
  if (type === 'yesno') return ['stop [Yes]', 'stop [No]', 'stop [N/A]'];
  const part = PARTS[type];
  const shown = part ? values(choices).flatMap((text) => text.match(part) ?? []) : values(choices);
  // A text of the objective itself is no answer to it.
  const quoted = new Set(slotsOf(choices.intent).map(({ text }) => text));
  return [...new Set(['stop [N/A]', ...shown.filter((text) => !quoted.has(text)).map((text) => `stop [${text}]`)])];
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
