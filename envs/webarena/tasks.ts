/**
 * Table of tasks on the sites of our own, in the paper's columns: 372 to train on, 50 to test with, held-out ones
 * for intervals, and short ones to practise with. An index names a template, (index, seed) its slots and world; the worlds of held-out tasks are never
 * those of training.
 */
import { Rng, seedFrom } from '../../src/core/rng.ts';
import type { Split, Task, TaskTable } from '../../src/core/task.ts';
import { accepts, acceptsOriginal } from './answers.ts';
import type { Fidelity } from './grammar.ts';
import { BASES, type Changes, HOSTS } from './sites/site.ts';
import { admin } from './templates/admin.ts';
import { code } from './templates/code.ts';
import { forum } from './templates/forum.ts';
import { map } from './templates/map.ts';
import { pairs } from './templates/pairs.ts';
import { practice } from './templates/practice.ts';
import { shopping } from './templates/shopping.ts';
import { type Instance, LABELS, type Label, type Template } from './templates/template.ts';
import { type Embedded, worldOf } from './worlds/embedded.ts';

export const templates: readonly Template[] = [...shopping, ...admin, ...map, ...code, ...forum, ...pairs];

/** Worlds of each side; a world is drawn once and shared. */
const WORLDS = 12;
const TRAIN: Readonly<Record<Label, number>> = { shopping: 109, shopping_admin: 80, map: 113, gitlab: 65, reddit: 5 };
/** Test tasks in order; a column's list is gone through again for the held-out ones. */
const TEST: Readonly<Record<Label, readonly string[]>> = {
  shopping: [
    ...['buy', 'order-total', 'review', 'contact-draft', 'dearest-sku', 'address', 'cheapest-rated', 'last-order'],
    ...['newsletter-address', 'show-sorted', 'option-ordered', 'buy', 'spent-in-month', 'warranty', 'review'],
  ],
  shopping_admin: [
    ...['order-status', 'price-and-stock', 'approve-review', 'comment-on-order', 'set-stock', 'orders-of-month'],
    ...[
      'set-price',
      'order-total',
      'delete-review',
      'show-orders',
      'order-status',
      'most-canceled',
      'comment-on-order',
    ],
    ...['birthday', 'approve-review'],
  ],
  map: [
    'distance',
    'nearest-distance',
    'wiki-time',
    'show-route',
    'nearest',
    'within',
    'how-many',
    'compare',
    'fee',
    'wiki-postcode',
  ],
  gitlab: ['create-issue', 'newest-assignee', 'close-issue', 'invite', 'create-issue'],
  reddit: ['create-post', 'downvote-top', 'newest-author', 'upvote-newest', 'block-author'],
};
const HELD_OUT = 200;
/** Labels of the held-out tasks' sets, then the set of templates that training lacks. */
const SETS = [...LABELS, 'unseen'] as const;

/** Practice tasks of each template. */
const PRACTISED = 8;

const byId = new Map(templates.map((template) => [template.id, template]));

function findTemplate(label: Label, name: string): Template {
  return byId.get(`${label}/${name}`)!;
}

/** Templates whose answer is `N/A`. */
const UNACHIEVABLE = ['shopping/warranty', 'shopping_admin/birthday', 'map/fee', 'gitlab/phone', 'reddit/email'];

/** Training templates of a column: each twice, the unachievable ones once. */
function trainingCycle(label: Label): Template[] {
  const seen = templates.filter((template) => template.label === label && !template.unseen);
  const possible = seen.filter(({ id }) => !UNACHIEVABLE.includes(id));
  return [...possible, ...possible, ...seen.filter((template) => !possible.includes(template))];
}

const TABLE: readonly Template[] = makeTable();

function makeTable(): Template[] {
  const table: Template[] = [];
  for (const label of LABELS) {
    const cycle = trainingCycle(label);
    for (let i = 0; i < TRAIN[label]; i++) table.push(cycle[i % cycle.length]!);
  }
  for (const label of LABELS) for (const name of TEST[label]) table.push(findTemplate(label, name));
  const unseen = templates.filter((template) => template.unseen);
  for (const set of SETS) {
    for (let i = 0; i < HELD_OUT; i++) {
      table.push(set === 'unseen' ? unseen[i % unseen.length]! : findTemplate(set, TEST[set][i % TEST[set].length]!));
    }
  }
  for (const template of practice) for (let i = 0; i < PRACTISED; i++) table.push(template);
  return table;
}

const TRAIN_COUNT = Object.values(TRAIN).reduce((sum, n) => sum + n, 0);
const TEST_COUNT = Object.values(TEST).reduce((sum, names) => sum + names.length, 0);
const range = (from: number, count: number) => Array.from({ length: count }, (_, i) => from + i);
const train = range(0, TRAIN_COUNT);
const test = range(TRAIN_COUNT, TEST_COUNT);
/** Templates that training has. */
const trained = new Set(train.map((index) => TABLE[index]!.id));
/** First index of the practice tasks; they end the table. */
const PRACTICE = TRAIN_COUNT + TEST_COUNT + SETS.length * HELD_OUT;
const practised = range(PRACTICE, practice.length * PRACTISED);
const heldOut = Object.fromEntries(
  SETS.map((set, i) => [
    set === 'unseen' ? 'unseen' : `more_${set}`,
    range(TRAIN_COUNT + TEST_COUNT + i * HELD_OUT, HELD_OUT),
  ]),
);

/** Template of a task. @throws {RangeError} for an index outside the table */
export function templateOf(index: number): Template {
  const template = TABLE[index];
  if (!template) throw new RangeError(`webarena: task index must be in [0, ${TABLE.length}), got ${index}`);
  return template;
}

export const tasks: TaskTable = {
  count: TABLE.length,
  labels: LABELS,
  label: (index) => templateOf(index).label,
  split: (split: Split) => (split === 'train' ? train : test),
  sets: {
    ...heldOut,
    practice: practised,
    'train-and-practice': [...train, ...practised],
    'held-out': range(TRAIN_COUNT, TEST_COUNT + SETS.length * HELD_OUT),
    test_seen: test.filter((index) => trained.has(TABLE[index]!.id)),
    test_unseen: test.filter((index) => !trained.has(TABLE[index]!.id)),
  },
  evalSeed: 0,
};

/** A task with its world and slots. */
export interface Drawn {
  readonly template: Template;
  readonly world: Embedded;
  readonly instance: Instance;
}

const DRAWS_PER_WORLD = 60;
/** Other tasks of the same world whose right end must be wrong here. */
const DECOYS = 2;

/** Tasks drawn last: episode and solver of a group ask for the same one. */
const drawn = new Map<string, Drawn>();
const MAX_DRAWN = 64;

/** Fills a task's template: a pure function of index and seed. */
export function drawTask({ index, seed }: Pick<Task, 'index' | 'seed'>): Drawn {
  const key = `${index}/${seed}`;
  const known = drawn.get(key);
  if (known) return known;
  const made = draw(index, seed);
  drawn.set(key, made);
  if (drawn.size > MAX_DRAWN) drawn.delete(drawn.keys().next().value!);
  return made;
}

function draw(index: number, seed: number): Drawn {
  const template = templateOf(index);
  const held = index >= TRAIN_COUNT && index < PRACTICE ? WORLDS : 0;
  const first = seedFrom('world', index, seed);
  for (let attempt = 0; attempt < WORLDS * DRAWS_PER_WORLD; attempt++) {
    // Some worlds have nothing for a template (every bestseller shares its place): the next one may.
    const world = worldOf(held + ((first + Math.floor(attempt / DRAWS_PER_WORLD)) % WORLDS));
    const rng = Rng.fromSeed(seedFrom('task', index, seed, attempt));
    const instance = template.draw(world, rng);
    if (instance && !decoysPass(template, instance, world, rng.split('decoys'))) return { template, world, instance };
  }
  throw new Error(`webarena: no world has slots for ${template.id}`);
}

/** True if the end of another task, drawn in the same world, would pass here. */
function decoysPass(template: Template, instance: Instance, world: Embedded, rng: Rng): boolean {
  const others = templates.filter(({ id, label }) => label === template.label && id !== template.id);
  return rng
    .shuffle(others)
    .slice(0, DECOYS)
    .some((other) => {
      const decoy = other.draw(world, rng);
      if (!decoy) return false;
      const answer = decoy.answer && 'value' in decoy.answer ? String(decoy.answer.value) : 'N/A';
      const url = new URL(decoy.url ?? '/', BASES[template.sites[0]!]).href;
      return judge(instance, { answer, changes: decoy.changes ?? {}, url }, 'corrected');
    });
}

/** An episode's end. */
export interface Ending {
  readonly answer: string;
  readonly changes: Changes;
  /** Address of the current page. */
  readonly url: string;
}

/**
 * True if the end is the one the task asks for: the answer, the page, and exactly the changes. `original` judges answers
 * by inclusion, addresses by substring, and does not see what else was changed.
 */
export function judge(instance: Instance, ending: Ending, fidelity: Fidelity): boolean {
  const { answer, url, changes = {} } = instance;
  if (answer && !(fidelity === 'original' ? acceptsOriginal : accepts)(answer, ending.answer)) return false;
  // `N/A` pays where one has looked; under `original` it pays anywhere.
  const isAnywhere = fidelity === 'original' && answer?.type === 'none';
  if (url !== undefined && !isAnywhere && !isAt(url, ending.url, fidelity)) return false;
  const wanted = Object.entries(changes);
  if (fidelity === 'corrected' && Object.keys(ending.changes).length !== wanted.length) return false;
  return wanted.every(([key, value]) => ending.changes[key] === value);
}

function isAt(wanted: string, url: string, fidelity: Fidelity): boolean {
  if (!URL.canParse(url)) return false;
  const [expected, actual] = [new URL(wanted, 'http://any.test'), new URL(url)];
  if (!HOSTS.has(actual.host)) return false;
  const samePath =
    fidelity === 'original' ? actual.pathname.includes(expected.pathname) : actual.pathname === expected.pathname;
  return samePath && [...expected.searchParams].every(([key, value]) => actual.searchParams.get(key) === value);
}
