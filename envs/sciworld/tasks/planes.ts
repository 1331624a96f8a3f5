/** Inclined planes: which of two is steeper, or has more friction. */
import * as goals from '../goal-types.ts';
import type { Goal } from '../goals.ts';
import { JavaRandom } from '../java-random.ts';
import { MATERIALS, UNKNOWN_FRICTION } from '../materials.ts';
import { describeName } from '../text.ts';
import type { Thing } from '../thing.ts';
import { type Site, task } from './task.ts';

/** Surface or letter of a plane, as its text shows it, and what is compared. */
interface Row {
  readonly letter: string;
  readonly surface: string;
  readonly angle: number;
  readonly friction: number;
  /** Position before the list was shuffled; ids go by it. */
  readonly at: number;
}

const SURFACES: readonly string[] = [
  ...['Aluminum', 'Brass', 'Bronze', 'Caesium', 'Copper', 'Iron', 'Lead', 'Platinum', 'Steel', 'Tin', 'Titanium'],
  ...['Zinc', 'Glass', 'Plastic', 'Ceramic', 'Wood', 'Paper', 'Sandpaper', 'CottonCloth', 'Rubber', 'Chocolate'],
  ...['SoapyWater', 'green paint'],
];
const ANGLES = { B: 70, C: 80, D: 20, E: 10, F: 60, G: 40, H: 30, J: 50 };
const LETTERS = Object.keys(ANGLES) as (keyof typeof ANGLES)[];
const BLOCKS = ['wood block', 'steel block', 'brick'];
const DEFAULT_ANGLE = 45;
const DEFAULT_FRICTION = 0.5;
const MIN_FRICTION_GAP = 0.05;
const MIN_ANGLE_GAP = 5;

const listNamed = (): Row[] =>
  SURFACES.map((id, at) => {
    const material = MATERIALS.get(id)!;
    return { letter: '', surface: material.substance, angle: DEFAULT_ANGLE, friction: material.friction, at };
  });
const listUnnamed = (): Row[] =>
  LETTERS.map((letter, at) => ({
    letter: '',
    surface: `unknown material ${letter}`,
    angle: DEFAULT_ANGLE,
    friction: UNKNOWN_FRICTION[letter]!,
    at,
  }));
const angles = (): Row[] =>
  LETTERS.map((letter, at) => ({ letter, surface: '', angle: ANGLES[letter], friction: DEFAULT_FRICTION, at }));

interface Variation {
  readonly one: number;
  readonly two: number;
  readonly block: number;
}

/** Pairs that differ enough, each with the three blocks. */
function pairs(rows: readonly Row[], gap: (a: Row, b: Row) => boolean): Variation[] {
  const all: Variation[] = [];
  for (let one = 0; one < rows.length; one++) {
    for (let two = 0; two < rows.length; two++) {
      for (let block = 0; block < BLOCKS.length; block++)
        if (gap(rows[one]!, rows[two]!)) all.push({ one, two, block });
    }
  }
  return all;
}

const frictionGap = (a: Row, b: Row) => Math.abs(a.friction - b.friction) > MIN_FRICTION_GAP;
const angleGap = (a: Row, b: Row) => Math.abs(a.angle - b.angle) > MIN_ANGLE_GAP;

function makePlane(site: Site, row: Row, offset: number): Thing {
  const thing = site.make('inclined plane', offset);
  const { letter, surface, angle, friction } = row;
  thing.plane = { letter, surface, angle, friction, heights: new Map() };
  return thing;
}

/** Timing goals, for plane 1 and then for plane 2. */
function timing(planes: readonly Thing[], block: string, note: boolean): Goal[] {
  return planes.flatMap((plane, i) => {
    const n = i + 1;
    const of = note ? ` (plane ${n})` : '';
    const device = 'time keeping device';
    return [
      goals.holds(describeName(plane), [block], `move block to plane ${n}`, { key: `b${n}` }),
      goals.deviceIs(true, 'stopwatch', `activate ${device}${of}`, { after: [`b${n}`], key: `aTime${n}` }),
      goals.deviceIs(false, 'stopwatch', `deactivate ${device}${of}`, { after: [`aTime${n}`], key: `dTime${n}` }),
      goals.requireExamined('stopwatch', `read ${device}${of}`, { after: [`dTime${n}`], key: `readTime${n}` }),
    ];
  });
}

interface Kind {
  readonly name: string;
  readonly topic: string;
  readonly rows: () => Row[];
  readonly all: () => Variation[];
  readonly by: 'friction' | 'angle';
  readonly variations: number;
}

function lazy<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

const namedRows = lazy(() => new JavaRandom(3).shuffle(listNamed()));
const unnamedRows = lazy(() => new JavaRandom(4).shuffle(listUnnamed()));
const angleRows = lazy(angles);

const KINDS: readonly Kind[] = [
  {
    name: 'inclined-plane-friction-named-surfaces',
    topic: '9-2',
    rows: namedRows,
    all: lazy(() => pairs(namedRows(), frictionGap)),
    by: 'friction',
    variations: 1386,
  },
  {
    name: 'inclined-plane-friction-unnamed-surfaces',
    topic: '9-3',
    rows: unnamedRows,
    all: lazy(() => pairs(unnamedRows(), frictionGap)),
    by: 'friction',
    variations: 162,
  },
  {
    name: 'inclined-plane-determine-angle',
    topic: '9-1',
    rows: angleRows,
    all: lazy(() => pairs(angleRows(), angleGap)),
    by: 'angle',
    variations: 168,
  },
];

export const PLANES = KINDS.map(({ name, topic, rows, all, by, variations }) =>
  task({
    name,
    topic,
    variations,
    register: () => null,
    setUp(site, variation) {
      const { one, two, block } = all()[variation]!;
      const list = rows();
      const pair = [list[one]!, list[two]!] as const;
      const planes = [
        makePlane(site, pair[0], 3 * pair[0].at),
        makePlane(site, pair[1], 3 * (list.length + pair[1].at)),
      ];
      for (const plane of planes) site.place(plane, 'workshop', { force: true });
      site.place(site.make(BLOCKS[block]!, 6 * list.length + 3 * block), 'workshop');
      site.place(site.make('stopwatch', 6 * list.length + 9), 'workshop');
      const most = (variation % 2 === 0) === (by === 'friction');
      const [a, b] = by === 'friction' ? [pair[0].friction, pair[1].friction] : [pair[0].angle, pair[1].angle];
      const right = a > b === most ? pair[0] : pair[1];
      const describeSurface = (row: Row) => row.surface || row.letter;
      // Smoothest or steepest first, before the draw.
      const lowFirst = by === 'friction' ? a < b : a > b;
      const names = site.random.shuffle((lowFirst ? [pair[0], pair[1]] : [pair[1], pair[0]]).map(describeSurface));
      const what =
        by === 'friction' ? `${most ? 'most' : 'least'} friction` : `${most ? 'steepest' : 'shallowest'} angle`;
      const isNamed = name.endsWith('-named-surfaces') && !name.includes('unnamed');
      return {
        description: `Your task is to determine which of the two inclined planes (${names.join(', ')}) has the ${what}. After completing your experiment, focus on the inclined plane with the ${what}.`,
        ordered: [
          by === 'angle'
            ? goals.findPlane('GoalFindInclinedPlaneNamed', right.letter, '', 'letter')
            : goals.findPlane(
                'GoalFindInclinedPlane',
                right.surface,
                isNamed ? 'focus on correct inclined plane' : '',
                'surface',
              ),
        ],
        optional: [
          goals.newPlace('move to a new location (unless starting in task location)', 'workshop'),
          goals.inPlace('workshop', 'move to the location asked by the task'),
          ...timing(planes, BLOCKS[block]!, isNamed),
        ],
      };
    },
  }),
);
