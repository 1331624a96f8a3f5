/**
 * Task tables: AgentGym's 4,639 ids with the lists the paper trains and tests on, and ScienceWorld's own 30 tasks with
 * its split of variations.
 *
 * @see AgentGym-RL-Data-ID (the paper's lists) and ScienceWorld, https://arxiv.org/abs/2203.07540 (split rule)
 */
import type { TaskTable } from '../../src/core/task.ts';
import { REGISTRY, type Registered } from './tasks/index.ts';

/** Tasks in ScienceWorld's order, topic by topic; AgentGym leaves out those marked false. */
const ORDER: readonly (readonly [name: string, label: string, inAgentGym: boolean])[] = [
  ['boil', 'Change-State', true],
  ['melt', 'Change-State', true],
  ['freeze', 'Change-State', true],
  ['change-the-state-of-matter-of', 'Change-State', true],
  ['use-thermometer', 'Measure', true],
  ['measure-melting-point-known-substance', 'Measure', true],
  ['measure-melting-point-unknown-substance', 'Measure', true],
  ['power-component', 'Power', true],
  ['power-component-renewable-vs-nonrenewable-energy', 'Power', true],
  ['test-conductivity', 'Test-Conductivity', true],
  ['test-conductivity-of-unknown-substances', 'Test-Conductivity', true],
  ['find-living-thing', 'Find', true],
  ['find-non-living-thing', 'Find', true],
  ['find-plant', 'Find', true],
  ['find-animal', 'Find', true],
  ['grow-plant', 'Grow', false],
  ['grow-fruit', 'Grow', false],
  ['chemistry-mix', 'Chem-Mix', true],
  ['chemistry-mix-paint-secondary-color', 'Chem-Mix', true],
  ['chemistry-mix-paint-tertiary-color', 'Chem-Mix', true],
  ['lifespan-longest-lived', 'Lifespan', true],
  ['lifespan-shortest-lived', 'Lifespan', true],
  ['lifespan-longest-lived-then-shortest-lived', 'Lifespan', true],
  ['identify-life-stages-1', 'Life-Stages', true],
  ['identify-life-stages-2', 'Life-Stages', true],
  ['inclined-plane-determine-angle', 'Plane', false],
  ['inclined-plane-friction-named-surfaces', 'Plane', false],
  ['inclined-plane-friction-unnamed-surfaces', 'Plane', false],
  ['mendelian-genetics-known-plant', 'Genetics', false],
  ['mendelian-genetics-unknown-plant', 'Genetics', false],
];

/** Ids the paper tests on: 200. */
const TEST = `
  536-538 543-544 547 557 559 565 569 572-573 581 584 606 609-610 616 620 624 631 635 641 652 657 995 1002-1003
  1006 1017 1020 1023-1024 1026 1028-1029 1032-1033 1052 1055 1058 1065-1066 1068 1074 1088 1093 1095 1111-1112
  1131 1134-1135 1816 1821-1822 1824 1831 1835 1838 1844 1873 1879 1882 1897 1912 1914-1915 1919 1931 1934 1938
  1940 1949 1953-1955 1969 1988 1994 2008 2015-2016 2029 2487-2488 2496-2498 2500 2503-2504 2506 2511-2513 2521
  2527 2531 2546 2548 2552 2555 2559 2563 2569 2573 2577 2581-2582 2589 2619 2621 2625 2631 2633 2862 2864 2866
  2871 2875-2876 2887-2888 2893 2896 2899 2901 2904 2910 2912 2915 2917 2924 2931-2932 3168 3174 3191 3195 3197
  3200 3207 3210 3216 3223 3231 3464-3465 3471 3482-3483 3485 3488 3490-3491 3494 3496 3515 3518-3519 3523-3524
  3533 3766 3782 3789 3794 3811 3813-3815 3828 3861 3867 3895 3931 4048 4050 4059 4159 4170 4175-4176 4178
  4283-4284 4287-4288 4292 4294-4297 4299 4307 4312 4327 4335-4336
`;
/** Ids the paper trains on: 2120, 61 of them tested on too. */
const TRAIN = `
  0-10 30-43 60-64 66-73 90-103 120-389 660-670 673-674 676-678 680-686 688-690 692-701 703-708 710-723 726-738
  740-744 746 748 750 754-758 760-762 764-769 772-777 779-786 788 790-796 798-802 804-816 818-824 826-841 844
  846-847 849-851 853-862 864-870 872-877 1396-1405 1416-1425 1436-1885 2336-2635 2936-3085 3236-3385 3536-3685
  3836-3985 4136-4140 4142-4143 4146-4151 4168-4185 4204-4221 4240-4301 4365-4426 4490-4551 4615-4620 4629-4632
`;

/** A variation of a task. */
export interface Variation {
  readonly registered: Registered;
  readonly variation: number;
}

/** Task table that also maps an index to a task and its variation. */
export interface SciWorldTasks extends TaskTable {
  /** Variation an index stands for. @throws {RangeError} for an index outside the table */
  at(index: number): Variation;
}

interface Block {
  readonly registered: Registered;
  readonly label: string;
  readonly from: number;
  readonly count: number;
}

function blocksOf(rows: typeof ORDER): Block[] {
  let from = 0;
  return rows.map(([name, label]) => {
    const registered = REGISTRY.get(name)!;
    const block = { registered, label, from, count: registered.task.variations };
    from += block.count;
    return block;
  });
}

function parseIndices(text: string): number[] {
  return text
    .trim()
    .split(/\s+/)
    .flatMap((range) => {
      const [first, last = first] = range.split('-').map(Number) as [number, number?];
      return Array.from({ length: last - first + 1 }, (_, i) => first + i);
    });
}

function table(
  blocks: readonly Block[],
  split: Readonly<Record<'train' | 'test', readonly number[]>>,
  sets: Readonly<Record<string, readonly number[]>>,
): SciWorldTasks {
  const last = blocks.at(-1)!;
  const count = last.from + last.count;
  const blockOf = (index: number) => {
    if (!(Number.isInteger(index) && index >= 0 && index < count)) {
      throw new RangeError(`task ${index}: there are 0 … ${count - 1}`);
    }
    return blocks.findLast((block) => block.from <= index)!;
  };
  return {
    count,
    labels: [...new Set(blocks.map(({ label }) => label))],
    label: (index) => blockOf(index).label,
    split: (name) => split[name],
    sets,
    evalSeed: 0,
    at(index) {
      const block = blockOf(index);
      return { registered: block.registered, variation: index - block.from };
    },
  };
}

/**
 * AgentGym's ids. Training leaves out what is tested on; `paper-train` is the paper's whole list, and `unseen-test` the
 * part of its test list that is not in it.
 */
function agentGymTasks(): SciWorldTasks {
  const test = parseIndices(TEST);
  const all = parseIndices(TRAIN);
  const [tested, trained] = [new Set(test), new Set(all)];
  const train = all.filter((index) => !tested.has(index));
  const unseen = test.filter((index) => !trained.has(index));
  const blocks = blocksOf(ORDER.filter(([, , inAgentGym]) => inAgentGym));
  return table(blocks, { train, test }, { 'paper-train': all, 'unseen-test': unseen });
}

/** Test variations of each task in the set `test-even`: the least that any task has. */
const PER_TASK = 4;

/** ScienceWorld's own: of each task the first half of the variations is for training, a quarter each for dev and test. */
function scienceWorldTasks(): SciWorldTasks {
  const blocks = blocksOf(ORDER);
  const part = (from: number, to: number) =>
    blocks.flatMap((block) => {
      const group = Math.floor(block.count / 4);
      const end = to === 4 ? block.count : to * group;
      return Array.from({ length: end - from * group }, (_, i) => block.from + from * group + i);
    });
  // As many of each task, so that a mean over them is a mean over the 30 tasks.
  const even = blocks.flatMap(({ from, count }) => {
    const first = 3 * Math.floor(count / 4);
    return Array.from({ length: PER_TASK }, (_, i) => from + first + Math.floor((i * (count - first)) / PER_TASK));
  });
  return table(blocks, { train: part(0, 2), test: part(3, 4) }, { dev: part(2, 3), 'test-even': even });
}

/** Task tables by the name that the option `tasks` takes. */
export const TABLES = {
  agentgym: { ...agentGymTasks(), numbering: 'agentgym' },
  scienceworld: { ...scienceWorldTasks(), numbering: 'scienceworld' },
} as const;
