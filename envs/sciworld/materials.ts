/** Materials as a table, and the substance a thing is made of: the part of it that warms, melts, burns and conducts. */

/** State of matter: solid. */
export const SOLID = 0;
/** State of matter: liquid. */
export const LIQUID = 1;
/** State of matter: gas. */
export const GAS = 2;
/** State of matter, by its number. */
export type State = typeof SOLID | typeof LIQUID | typeof GAS;
/** Words for the states of matter, by their number. */
export const STATE_NAMES = ['solid', 'liquid', 'gas'] as const;

/** One row of the table. Temperatures in °C. */
export interface Material {
  readonly substance: string;
  /** Name of the whole thing in each state, or null where it keeps its name. */
  readonly names: readonly [string, string, string] | null;
  readonly color: string;
  readonly start: number;
  /** Thermal conductivity in [0, 1]. */
  readonly conductivity: number;
  readonly state: State;
  readonly melt: number;
  readonly boil: number;
  readonly burn: number;
  readonly electric: boolean;
  readonly friction: number;
}

/**
 * Columns: class, substance, names, colour, start, conductivity, state, melting, boiling and combustion point,
 * electric, friction. Names: A = X, liquid X, gaseous X; B = solid X, liquid X, gaseous X; C = solid X, X, gaseous X;
 * - = the name stays; or all three.
 */
const TABLE = `
Air, air, solid air/liquid air/air, clear, 10, 0.01, G, -215, -194, 100000, n, 0
Sodium, sodium, A, grey, 10, 0.2, S, 98, 881, 100000, y, 0
Metal, metal, A, grey, 10, 1, S, 1000, 2000, 100000, y, 0.5
Aluminum, aluminum, A, grey, 10, 1, S, 660, 2470, 100000, y, 0.45
Brass, brass, A, brown, 10, 1, S, 900, 1100, 100000, y, 0.5
Bronze, bronze, A, brown, 10, 1, S, 910, 2300, 100000, y, 0.4
Caesium, caesium, B, gold, 10, 1, S, 29, 671, 100000, y, 0.5
Copper, copper, A, brown, 10, 1, S, 1083, 2500, 100000, y, 0.6
Gallium, gallium, A, silver, 10, 1, L, 30, 2400, 100000, y, 0
Gold, gold, A, brown, 10, 1, S, 1063, 2700, 100000, y, 0
Iron, iron, A, grey, 10, 1, S, 1538, 2862, 100000, y, 0.7
Lead, lead, A, grey, 10, 1, S, 327, 1740, 100000, y, 0.43
Mercury, mercury, B, silver, 10, 1, L, -39, 357, 100000, y, 0.1
Platinum, platinum, A, grey, 10, 1, S, 1770, 4400, 100000, y, 0.8
Silicon, silicon, A, grey, 10, 1, S, 1420, 2600, 100000, y, 0
Steel, steel, A, grey, 10, 1, S, 1400, 2900, 100000, y, 0.6
Tin, tin, A, grey, 10, 1, S, 232, 2602, 100000, y, 0.3
Titanium, titanium, A, grey, 10, 1, S, 1670, 3200, 100000, y, 0
Zinc, zinc, A, brown, 10, 1, S, 419, 906, 100000, y, 0.62
Glass, glass, A, clear, 10, 1, S, 1400, 2200, 100000, n, 0.2
Rust, rust, -, red, 10, 0.9, S, 100000, 100001, 100000, n, 0.7
Plastic, plastic, A, white, 10, 1, S, 200, 300, 100000, n, 0.1
Ceramic, ceramic, A, white, 10, 0.02, S, 2000, 10001, 10000, n, 0.65
Wood, wood, -, brown, 10, 0.5, S, 10000, 10001, 350, n, 0.2
Paper, paper, -, white, 10, 0.5, S, 10000, 10001, 210, n, 0.2
Sandpaper, sandpaper, -, brown, 10, 0.5, S, 10000, 10001, 230, n, 0.98
CottonCloth, cloth, -, white, 10, 0.1, S, 10000, 10001, 300, n, 0.3
Rubber, rubber, A, black, 10, 0.5, S, 180, 10001, 260, n, 0.95
Water, water, ice/water/steam, clear, 10, 0.5, L, 0, 100, 100000, n, 0.1
OrangeJuice, orange juice, C, orange, 10, 0.5, L, 0, 100, 100000, n, 0.1
AppleJuice, apple juice, C, yellow, 10, 0.5, L, -2, 160, 100000, n, 0.1
Soil, soil, -, brown, 10, 0.5, S, 10000, 10001, 10000, n, 0.3
PlantMatter, plant matter, -, green, 10, 0.5, S, 10000, 10001, 200, n, 0.3
FlowerMatter, flower matter, -, purple, 10, 0.5, S, 10000, 10001, 200, n, 0.3
PollenMatter, pollen matter, -, yellow, 10, 0.5, S, 10000, 10001, 200, n, 0.5
Chocolate, chocolate, B, brown, 10, 0.5, S, 30, 100000, 95, n, 0.32
Sugar, sugar, -, white, 10, 0.5, S, 186, 100000, 350, n, 0.7
Marshmallow, marshmallow, A, white, 10, 0.5, S, 36, 100000, 350, n, 0.7
Soap, soap, A, white, 10, 0.5, S, 140, 100000, 537, n, 0.05
IceCream, ice cream, A, white, -15, 0.5, S, -10, 101, 100000, n, 0.1
Flour, flour, -, white, 10, 0.5, S, 10000, 10001, 380, n, 0.5
Jam, jam, -, red, 10, 0.5, S, 10000, 10001, 400, n, 0.5
Dough, dough, -, white, 10, 0.5, S, 10000, 10001, 380, n, 0.5
Nut, nut, -, brown, 10, 0.5, S, 10000, 10001, 400, n, 0.5
Ash, ash, -, grey, 10, 0.5, S, 10000, 10001, 10002, n, 0.9
SodiumChloride, sodium chloride, A, white, 10, 0.2, S, 801, 1465, 100000, n, 0.73
AceticAcid, acetic acid, C, clear, 10, 0.2, S, 17, 119, 100000, n, 0.1
SodiumBicarbonate, sodium bicarbonate, -, white, 10, 0.2, S, 10000, 10001, 100, n, 0.73
SodiumAcetate, sodium acetate, sodium bicarbonate/sodium bicarbonate/sodium bicarbonate, clear, 10, 0.5, S, 324, 881, 100000, n, 0.5
SaltWater, salt water, C, white, 10, 0.2, S, -2, 110, 100000, y, 0.15
SoapyWater, soapy water, C, white, 10, 0.2, S, -1, 105, 100000, n, 0.06
SugarWater, sugar water, C, white, 10, 0.2, S, -3, 112, 100000, n, 0.06
Brick, brick, -, red, 10, 0.1, S, 1500, 100001, 100000, n, 0.9
`;

function names(code: string, substance: string): readonly [string, string, string] | null {
  if (code === '-') return null;
  if (code === 'A') return [substance, `liquid ${substance}`, `gaseous ${substance}`];
  if (code === 'B') return [`solid ${substance}`, `liquid ${substance}`, `gaseous ${substance}`];
  if (code === 'C') return [`solid ${substance}`, substance, `gaseous ${substance}`];
  const [solid, liquid, gas] = code.split('/');
  return [solid!, liquid!, gas!];
}

function parse(): Map<string, Material> {
  const materials = new Map<string, Material>();
  for (const line of TABLE.trim().split('\n')) {
    const [id, substance, code, color, start, k, state, melt, boil, burn, electric, friction] = line.split(', ');
    materials.set(id!, {
      substance: substance!,
      names: names(code!, substance!),
      color: color!,
      start: Number(start),
      conductivity: Number(k),
      state: 'SLG'.indexOf(state!) as State,
      melt: Number(melt),
      boil: Number(boil),
      burn: Number(burn),
      electric: electric === 'y',
      friction: Number(friction),
    });
  }
  for (const color of PAINTS) {
    materials.set(`${color} paint`, {
      substance: `${color}paint`,
      names: [`dried ${color} paint`, `${color} paint`, `gaseous ${color} paint`],
      color,
      start: 10,
      conductivity: 0.2,
      state: LIQUID,
      melt: 0,
      boil: 10000,
      burn: 293,
      electric: false,
      friction: 0.3,
    });
  }
  return materials;
}

/** Colours of paint, in the order of the table of materials. */
export const PAINTS = [
  'white',
  'black',
  'red',
  'blue',
  'yellow',
  'violet',
  'green',
  'orange',
  'brown',
  'yellow-orange',
  'red-orange',
  'violet-red',
  'blue-violet',
  'green-blue',
  'yellow-green',
] as const;

/** Materials by name. */
export const MATERIALS: ReadonlyMap<string, Material> = parse();

/** Friction of the unknown materials A to J, by letter. */
export const UNKNOWN_FRICTION: Readonly<Record<string, number>> = {
  A: 0.1,
  B: 0.7,
  C: 0.4,
  D: 0.6,
  E: 0.2,
  F: 0.8,
  G: 0.3,
  H: 0.9,
  J: 0.9,
};

/** Melting points of the unknown substances, in °C, by letter. */
export const UNKNOWN_MELTING: Readonly<Record<string, number>> = Object.fromEntries(
  `A 25 B 75 C 115 D -30 E -10 F 275 G 30 H 225 I 75 J -75 K 520 L 325 M -25 N 175 O 25 P 75 Q 425 R 30 S 15 T -2
  U 625 V -220 W 575 X -175 Y 675 Z 775`
    .match(/[A-Z] -?\d+/g)!
    .map((pair) => [pair[0], Number(pair.slice(2))]),
);

/** The matter of one thing; changes while the episode runs. */
export class Substance {
  material: Material;
  temperature: number;
  state: State;
  names: readonly [string, string, string] | null;
  melt: number;
  electric: boolean;
  burning = false;
  /** True when it has burned, or was put out. */
  burned: boolean;
  /** Ticks of fire left. */
  burnTicks: number;

  constructor(material: Material) {
    this.material = material;
    this.temperature = material.start;
    this.state = material.state;
    this.names = material.names;
    this.melt = material.melt;
    this.electric = material.electric;
    this.burned = material.substance === 'ash';
    this.burnTicks = this.burned ? 0 : 100;
  }

  get name(): string {
    return this.material.substance;
  }
}
