/** Random play of WebArena's sites by two drivers at once, compared after every action. */
import type { Driver } from '../../envs/webarena/drivers/driver.ts';
import { browseOptions, objectiveOf } from '../../envs/webarena/env.ts';
import { oracle } from '../../envs/webarena/oracle.ts';
import { WebSession } from '../../envs/webarena/session.ts';
import { Episode } from '../../envs/webarena/sites/episode.ts';
import { drawTask } from '../../envs/webarena/tasks.ts';
import type { TimeStep } from '../../src/core/env.ts';
import { Rng } from '../../src/core/rng.ts';

const TURNS = 22;
const KEYS =
  'Tab,Shift+Tab,Enter,Space,ArrowDown,ArrowUp,ArrowLeft,ArrowRight,Home,End,PageDown,PageUp,Backspace,Delete,Ctrl+a,Escape,x,Q,7,F5'.split(
    ',',
  );
const WORDS = ['kettle', 'Ann  Bee', '5', '2023-03', `it's "q" \\`, 'd\u00e9j\u00e0 \u6f22', 'books', 'marlow', ' '];
const ADDRESSES = [
  'http://homepage.com',
  'http://reddit.com/f/books?sort=Top',
  'http://onestopmarket.com/nowhere',
  'http://luma.com/admin/orders?page=2',
  'file:///etc/passwd',
  'http://gitlab.com/#x',
  'http://wikipedia.org',
  'http://wikipedia.org/search?q=garden',
  'http://wikipedia.org/wiki/history-of-gardening',
  'http://onestopmarket.com/category/kitchen?sort=Name',
];

/** Any action: on elements in view mostly, keys, typing, scrolling, history, tabs, addresses, an answer now and then. */
function anyAction(observation: string, rng: Rng): string {
  const inView = Array.from(observation.matchAll(/^\t*\[(\d+)\] (\S+)/gm), ([, id, role]) => ({
    id: id!,
    role: role!,
  }));
  const one = (...roles: string[]) => {
    const found = inView.filter(({ role }) => roles.length === 0 || roles.includes(role));
    return found.length === 0 ? '9999' : rng.pick(found).id;
  };
  const kinds = [
    () => `click [${one('link', 'button', 'checkbox', 'combobox', 'option', 'radio')}]`,
    () => `click [${one('link', 'button', 'checkbox', 'combobox', 'option', 'radio')}]`,
    () => `click [${one('combobox', 'option', 'checkbox', 'radio')}]`,
    () => `click [${one()}]`,
    () => `type [${one('textbox', 'searchbox')}] [${rng.pick(WORDS)}] [${rng.int(2)}]`,
    () => `press [${rng.pick(KEYS)}]`,
    () => `press [${rng.pick(KEYS)}]`,
    () => `scroll [${rng.pick(['down', 'up'])}]`,
    () => rng.pick(['go_back', 'go_forward', 'go_back']),
    () => rng.pick(['new_tab', 'close_tab', `tab_focus [${rng.int(3)}]`]),
    () => `goto [${rng.pick(ADDRESSES)}]`,
    () => `hover [${one()}]`,
    () => (rng.int(12) === 0 ? `stop [${rng.int(20)}]` : `click [${one('link', 'button')}]`),
  ];
  return rng.pick(kinds)();
}

export interface Side {
  readonly session: WebSession;
  readonly episode: Episode;
}

export type MakeDriver = (episode: Episode) => Driver | Promise<Driver>;

/** One side of a task; the dialect goes by its seed. */
export async function openSide(task: { index: number; seed: number }, make: MakeDriver): Promise<Side> {
  const drawn = drawTask(task);
  const options = { fidelity: 'corrected', dialect: task.seed % 2 === 0 ? '2023' : 'chromium' } as const;
  const episode = new Episode(drawn.world);
  const objective = objectiveOf(drawn, episode, 'corrected');
  return { session: await WebSession.open(await make(episode), browseOptions(options), objective), episode };
}

/** What came of an episode: its steps, and the first thing that differed. */
export interface Compared {
  readonly steps: number;
  /** Task and actions up to the difference, with both texts; undefined where there is none. */
  readonly difference: string | undefined;
}

/** A random whole episode by two drivers: observation, reward, address after every action, changes at the end. */
export async function compareEpisode(seed: number, a: MakeDriver, b: MakeDriver): Promise<Compared> {
  const rng = Rng.fromSeed(seed);
  const task = { env: 'webarena', index: rng.int(422), seed: rng.int(40) };
  const [one, two] = [await openSide(task, a), await openSide(task, b)];
  const solver = rng.int(3) === 0 ? oracle(task) : undefined;
  const trace: string[] = [];
  const differs = (what: string, mine: unknown, other: unknown) => {
    if (JSON.stringify(mine) === JSON.stringify(other)) return undefined;
    return `${what}, task ${task.index}/${task.seed}\n${trace.join('\n')}\n${printOf(mine)}\n--- and ---\n${printOf(other)}`;
  };
  try {
    let step: TimeStep = one.session.first;
    let difference = differs('opening', step, two.session.first);
    while (difference === undefined && trace.length < TURNS && step.kind !== 'terminated') {
      const action = (solver && rng.int(4) > 0 ? solver(step) : undefined) ?? anyAction(step.observation, rng);
      trace.push(action);
      step = await one.session.step(action);
      difference =
        differs('step', step, await two.session.step(action)) ??
        differs('address', one.session.url, two.session.url) ??
        differs('actions', one.session.actions(), two.session.actions());
    }
    difference ??= differs('changes', sorted(one.episode.changes), sorted(two.episode.changes));
    return { steps: trace.length, difference };
  } finally {
    await one.session.close();
    await two.session.close();
  }
}

function printOf(value: unknown): string {
  return typeof value === 'object' && value !== null && 'observation' in value
    ? String(value.observation)
    : JSON.stringify(value);
}

function sorted(changes: Readonly<Record<string, string>>): [string, string][] {
  return Object.entries(changes).sort(([a], [b]) => (a < b ? -1 : 1));
}
