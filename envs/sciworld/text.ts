/** Texts of things: names, cursory and detailed descriptions, lists. */
import { describeTrait } from './genes.ts';
import { stageName } from './life-tables.ts';
import type { Form, Thing } from './thing.ts';

/** Name as shown, with what fire did to it; animals by their stage, planes with letter and surface. */
export function describeName(thing: Thing): string {
  let name = thing.name;
  if (thing.kind.form === 'animal' || thing.kind.form === 'bee')
    name = stageName(thing.life!.species, thing.life!.stage);
  if (thing.plane) name = planeName(thing);
  // A drain too is a door to it.
  if (thing.portal) name = `door between ${thing.portal.from.name} and ${thing.portal.to.name}`;
  return describeFire(thing, name);
}

/** Name of a thing with its colour, as shown: "red apple"; '' for kinds that have none. */
export function describeColored(thing: Thing): string {
  const { color, id } = thing.kind;
  return color && describeFire(thing, `${color} ${id}`);
}

/** Any name of a thing with what fire did to it. */
function describeFire({ matter }: Thing, name: string): string {
  if (matter?.burning) return `${name} (on fire)`;
  if (matter?.burned) return `burned ${name}`;
  return name;
}

/** Thing of this raw or described name; for goals, only life, planes and matter are described otherwise than named. */
export function isNamed(thing: Thing, name: string): boolean {
  if (thing.name === name) return true;
  return (thing.life !== null || thing.plane !== null || thing.matter !== null) && describeName(thing) === name;
}

function planeName(thing: Thing): string {
  const { letter, surface } = thing.plane!;
  return `${thing.name}${letter && ` ${letter}`}${surface && ` with a ${surface} surface`}`;
}

/** Short text, as shown in lists. @param viewer container it is seen from; only doors look at it */
export function cursory(thing: Thing, viewer: Thing | null): string {
  return TEXTS[thing.kind.form](thing, false, viewer);
}

/** Long text, as shown when looked at. */
export function describeDetails(thing: Thing, viewer: Thing | null): string {
  return TEXTS[thing.kind.form](thing, true, viewer);
}

/** Things in the order of lists: by name, then id; hidden ones are left out. */
function sortThings(things: readonly Thing[]): Thing[] {
  const out: Thing[] = [];
  for (const thing of things) if (!thing.hidden) out.push(thing);
  return out.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : a.id - b.id));
}

/** "a, b, c", or "nothing". */
function inline(things: readonly Thing[], viewer: Thing | null): string {
  const texts = sortThings(things).map((thing) => cursory(thing, viewer));
  return texts.length === 0 ? 'nothing' : texts.join(', ');
}

/** One line a thing, each after a tab. */
export function lines(things: readonly Thing[], viewer: Thing | null, long = false): string {
  const texts = sortThings(things).map((thing) => (long ? describeDetails(thing, viewer) : cursory(thing, viewer)));
  return texts.length === 0 ? '\tnothing' : texts.map((text) => `\t${text}\n`).join('');
}

/** Contents and portals: what containers show. */
function holdings(thing: Thing): readonly Thing[] {
  return thing.portals.length === 0 ? thing.contents : [...thing.contents, ...thing.portals];
}

/** Degrees without decimals, as Java prints them. */
export function degrees(celsius: number): string {
  return celsius.toFixed(0);
}

/** A number as Java prints a double: "50.0". */
export function double(x: number): string {
  return Number.isInteger(x) ? `${x}.0` : `${x}`;
}

/** Connection of a contact as text: the other one, or "nothing". */
function connection(contact: Thing): string {
  const other = contact.contact!.connection;
  return other ? cursory(other, null) : 'nothing';
}

function contacts(thing: Thing): string {
  return thing.terminals!.map((end) => `its ${end.name} is connected to: ${connection(end)}. `).join('');
}

/** Place behind a door, seen from `viewer` or from something in which `viewer` is. */
export function findBehind(portal: Thing, viewer: Thing | null): Thing | null {
  const { from, to } = portal.portal!;
  if (!viewer) return null;
  if (viewer === from) return to;
  if (viewer === to) return from;
  if (from.parent === viewer) return to;
  if (to.parent === viewer) return from;
  return null;
}

/** Text of the doors of a place: each text once, sorted. */
function doors(place: Thing): string {
  const texts = new Set(place.portals.filter((portal) => !portal.hidden).map((portal) => cursory(portal, place)));
  return [...texts]
    .sort()
    .map((text) => `\t${text}\n`)
    .join('');
}

/**
 * Name that a plant gets with its tick: "apple seed" while a seed, then "apple tree" or "pea plant", with what fire did
 * to it. So the described name of a plant that burned says so twice.
 */
export function plantName(thing: Thing): string {
  const { species, stage, genes } = thing.life!;
  return describeFire(thing, `${species} ${stage === 'seed' ? 'seed' : genes ? 'plant' : 'tree'}`);
}

/** Traits of a seed that can be seen: "round green". */
export function seedTraits(thing: Thing): string {
  const genes = thing.life!.genes;
  if (!genes) return '';
  return ['seed shape', 'seed color']
    .map((trait) => describeTrait(genes, trait))
    .filter((text) => text !== '')
    .join(' ');
}

/** Traits of a grown plant that can be seen: height ("tall height") and leaves ("medium pointed leaves"). */
export function describeGrownTraits(thing: Thing): { height: string; leaves: string } {
  const genes = thing.life!.genes;
  if (!genes) return { height: '', leaves: '' };
  const height = describeTrait(genes, 'plant height');
  const leaves = ['leaf size', 'leaf shape'].map((trait) => describeTrait(genes, trait)).filter((text) => text !== '');
  return { height: height && `${height} height`, leaves: leaves.length > 0 ? `${leaves.join(' ')} leaves` : '' };
}

/** True for a living thing that is grown up: an adult, or a plant that reproduces. */
export function isGrown(thing: Thing): boolean {
  return thing.life!.stage === 'adult' || thing.life!.stage === 'reproducing';
}

function plantText(thing: Thing): string {
  const life = thing.life!;
  const name = plantName(thing);
  if (life.dead) return `a dead ${name}`;
  if (life.stage === 'seed') return seedText(thing, name);
  let text = `a ${name} in the ${life.stage} stage`;
  if (isGrown(thing)) {
    const { height, leaves } = describeGrownTraits(thing);
    if (height) text += ` with a ${height}${leaves && ` and ${leaves}`}`;
    else if (leaves) text += ` with ${leaves}`;
  }
  if (life.sickly) text += ' (that looks unwell)';
  const on = thing.visible();
  if (on.length > 0) text += `. On the ${name} you see: ${inline(on, thing)}. `;
  return text;
}

function seedText(thing: Thing, name: string): string {
  const { genes, species } = thing.life!;
  if (!genes) return `a ${name}`;
  return species === 'pea' ? `a ${seedTraits(thing)}  ${name}` : `a ${seedTraits(thing)} ${name}`;
}

function flowerText(thing: Thing, long: boolean): string {
  const genes = thing.bloom!.plant.life!.genes;
  const traits = genes ? `${describeTrait(genes, 'flower size')} ${describeTrait(genes, 'flower color')}` : '';
  const wilting = thing.bloom!.step > 0 ? 'wilting' : '';
  const text = `a ${wilting} ${traits} ${describeName(thing)}`;
  const inside = long ? `. Inside the flower is: ${inline(thing.contents, thing)}` : '';
  return (text + inside).replace(/\s+/g, ' ').trim();
}

function planeText(thing: Thing): string {
  const text = `an ${describeName(thing)}`;
  const on = thing.visible();
  if (on.length === 0) return text;
  const parts = on.map((block) => {
    const height = thing.plane!.heights.get(block);
    if (height === undefined) return `a ${describeName(block)}`;
    const where =
      height >= Math.fround(0.99)
        ? 'at the top of the plane'
        : height <= 0
          ? 'at the bottom of the plane'
          : `approximately ${(100 - 100 * height).toFixed(0)}% down the plane`;
    return `a ${describeName(block)} ${where}`;
  });
  return `${text}, with:  ${parts.join(', ')}`;
}

function cupboardText(thing: Thing, long: boolean, head: string): string {
  const name = describeName(thing);
  if (!thing.isOpen) return `${head}. The ${name} door is closed. `;
  const inside = long ? `\n${lines(thing.contents, thing)}` : `${inline(thing.contents, thing)}.`;
  return `${head}. The ${name} door is open. In the ${name} is: ${inside}`;
}

const on = (thing: Thing) => (thing.device!.on ? 'on' : 'off');

/** One function a form. */
const TEXTS: Record<Form, (thing: Thing, long: boolean, viewer: Thing | null) => string> = {
  room: (t) =>
    `This room is called the ${describeName(t)}. In it, you see: \n${lines(t.contents, t)}You also see:\n${doors(t)}`,
  outside: (t) =>
    `This outside location is called the ${describeName(t)}. Here you see: \n${lines(t.contents, t)}You also see:\n${doors(t)}`,
  universe: (t) => `A ${describeName(t)}. In this Universe, you see: \n${lines(holdings(t), t)}`,
  agent: () => 'the agent',
  holding: (t) => `a ${describeName(t)} (containing ${inline(holdings(t), t)})`,
  seat: (t) => `a ${describeName(t)}. On the ${describeName(t)} is: ${inline(t.contents, t)}.`,
  table: (t, long) => {
    const name = describeName(t);
    return `a ${name}. On the ${name} is: ${long ? `\n${lines(t.contents, t)}` : `${inline(t.contents, t)}.`}`;
  },
  cupboard: (t, long) => cupboardText(t, long, `a ${describeName(t)}`),
  drawer: (t, long) => {
    const name = describeName(t);
    if (!long) return `a ${name}`;
    return t.isOpen ? `a ${name}. In the ${name} is: \n${lines(t.contents, t)}` : `a ${name}.  The drawer is closed.`;
  },
  cooler: (t) => cupboardText(t, false, `a ${describeName(t)}${t.device!.on ? '' : ', which is turned off'}`),
  stove: (t) => `a ${t.name}, which is turned ${on(t)}. On the ${t.kind.name} is: ${inline(t.contents, t)}.`,
  oven: (t, long) => cupboardText(t, long, `a ${describeName(t)}, which is turned ${on(t)}`),
  sink: (t, long) => {
    const name = describeName(t);
    const text = `a ${name}, which is turned ${on(t)}. In the ${name} is: ${inline(t.contents, t)}.`;
    if (!long) return text;
    return t.portals.reduce((s, p) => `${s} The ${p.name} is ${p.portal!.open ? 'open' : 'closed'}.`, text);
  },
  toilet: (t) => {
    const name = describeName(t);
    return `a ${name}${t.count > 0 ? ', which is flushing' : ''}. In the ${name} is: ${inline(holdings(t), t)}.`;
  },
  switchable: (t) => `a ${describeName(t)}, which is turned ${on(t)}`,
  electric: (t, long) => `a ${describeName(t)}, which is ${on(t)}${long ? `. ${contacts(t)}` : ''}`,
  battery: (t, long) => `a ${describeName(t)}${long ? `. ${contacts(t)}` : ''}`,
  wire: (t, long) => `a ${describeName(t)}${long ? contacts(t) : ''}`,
  terminal: (t, long) => {
    const on = `a ${describeName(t)} on ${t.contact!.owner.name}`;
    return long ? `a ${describeName(t)}.  it is connected to: ${connection(t)}. ` : on;
  },
  door: (t, _long, viewer) => {
    const state = `(that is ${t.portal!.open ? 'open' : 'closed'})`;
    const to = findBehind(t, viewer);
    if (to) return `A ${t.name} to the ${to.name} ${state}`;
    return `A ${t.name} that connects the ${t.portal!.from.name} to the ${t.portal!.to.name} ${state}`;
  },
  drain: (t) => `A drain, which is ${t.portal!.open ? 'open' : 'closed'}`,
  stopwatch: (t, long) =>
    `a ${describeName(t)}, which is ${t.device!.on ? 'activated' : 'deactivated'}. ${long ? `The time reads ${t.count} ticks.` : ''}`,
  thermometer: (t) =>
    `a ${describeName(t)}, currently reading a temperature of ${degrees(t.matter!.temperature)} degrees celsius`,
  picture: (t, long) =>
    long
      ? `a ${describeName(t)} of ${t.print!.title}.  The artist is listed as ${t.print!.author}. `
      : `a ${describeName(t)}`,
  document: (t) => {
    const { title = '', author = '' } = t.print ?? {};
    if (title) return `A ${describeName(t)} titled ${title}${author && ` by ${author}`}`;
    return t.kind.id === 'paper' ? `A blank ${describeName(t)}` : `A ${describeName(t)}`;
  },
  substance: (t) => `a substance called ${describeName(t)}`,
  a: (t) => `a ${describeName(t)}`,
  an: (t) => `an ${describeName(t)}`,
  A: (t) => `A ${describeName(t)}`,
  the: (t) => `the ${describeName(t)}`,
  bare: (t) => describeName(t),
  name: (t) => t.name,
  white: (t) => `a white ${describeName(t)}`,
  canonical: (t) => describeColored(t),
  colored: (t) => `a ${describeColored(t)}`,
  animal: (t) => `a ${describeName(t)}${t.life!.sickly ? ' (that looks unwell)' : ''}`,
  bee: (t, long) => {
    if (t.life!.dead) return `a dead ${describeName(t)}`;
    const pollen = long && t.has('pollen') ? ', that is covered in pollen' : '';
    return `a ${describeName(t)}${pollen}`;
  },
  plant: (t) => plantText(t),
  flower: (t, long) => flowerText(t, long),
  pollen: (t, long) => (long ? `${t.bloom!.species}${describeName(t)}` : describeName(t)),
  plane: (t) => planeText(t),
};
