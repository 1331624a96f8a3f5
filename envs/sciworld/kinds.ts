/** Kinds of things as a table: names, materials, properties and the names each answers to. */
import { PAINTS } from './materials.ts';
import { type Kind, makeKind } from './thing.ts';

const table = new Map<string, Kind>();

function add(id: string, row: Partial<Kind>): void {
  table.set(id, makeKind(id, { ...row, index: table.size }));
}

/** Kind by its id. @throws {Error} for a kind that the table has not: a mistake in this world */
export function kind(id: string): Kind {
  const found = table.get(id);
  if (!found) throw new Error(`sciworld: no kind "${id}"`);
  return found;
}

/** All kinds by their index. */
export function listKinds(): Kind[] {
  return [...table.values()];
}

// Places, and the agent.
add('universe', { form: 'universe', container: 'open', fixed: true, location: true, references: ['universe'] });
add('sewer', { form: 'holding', material: 'Steel', container: 'open' });
for (const id of [
  'kitchen',
  'living room',
  'bedroom',
  'bathroom',
  'workshop',
  'greenhouse',
  'art studio',
  'hallway',
  'foundry',
]) {
  add(id, { form: 'room', container: 'open', fixed: true, location: true, references: ['room'] });
}
add('outside', { form: 'outside', container: 'open', fixed: true, location: true, references: ['outside'] });
add('agent', { form: 'agent', fixed: true, references: ['agent', 'self'] });
add('inventory', { form: 'holding', container: 'open', fixed: true, references: ['inventory'] });
add('door', { form: 'door', fixed: true });
add('drain', { form: 'drain', fixed: true });

// Vessels.
const vessels: [string, string, string[]][] = [
  ['metal pot', 'Steel', ['pot', 'metal pot']],
  ['glass cup', 'Glass', ['cup', 'glass cup']],
  ['plastic cup', 'Plastic', ['cup', 'plastic cup']],
  ['wood cup', 'Wood', ['cup', 'wood cup']],
  ['tin cup', 'Tin', ['cup', 'tin cup']],
  ['paper cup', 'Paper', ['cup', 'paper cup']],
  ['ceramic cup', 'Ceramic', ['cup', 'ceramic cup']],
  ['bowl', 'Wood', ['bowl', 'wood bowl']],
  ['jug', 'Plastic', ['jug']],
  ['flower pot', 'Ceramic', ['pot', 'flower pot']],
  ['book shelf', 'Wood', ['shelf', 'book shelf']],
];
for (const [id, material, references] of vessels) {
  add(id, { form: 'holding', material, container: 'open', references, containing: true });
}
add('glass jar', {
  form: 'holding',
  material: 'Glass',
  container: 'closed',
  references: ['jar', 'glass jar'],
  containing: true,
});
add('self watering flower pot', {
  form: 'holding',
  material: 'Ceramic',
  container: 'open',
  references: ['pot', 'flower pot'],
  containing: true,
});
for (const color of ['red', 'green', 'blue', 'orange', 'yellow', 'purple']) {
  add(`${color} box`, { form: 'holding', material: 'Ceramic', container: 'open' });
}
add('fire pit', { form: 'holding', material: 'Ceramic', container: 'open' });
add('fountain', { form: 'holding', material: 'Ceramic', container: 'open' });
add('ground', { form: 'the', material: 'Soil', container: 'open', references: ['ground'] });
add('hole', { form: 'holding', container: 'open' });

// Furniture.
for (const [id, material, name] of [
  ['chair', 'Wood', 'wood'],
  ['couch', 'CottonCloth', 'cloth'],
  ['bed', 'Wood', 'wood'],
  ['mattress', 'CottonCloth', 'cloth'],
] as const) {
  add(id, { form: 'seat', material, container: 'open', references: ['sittable', `${name} sittable`] });
}
add('wood table', {
  name: 'table',
  form: 'table',
  material: 'Wood',
  container: 'open',
  references: ['table', 'wood table'],
});
add('steel table', {
  name: 'table',
  form: 'table',
  material: 'Steel',
  container: 'open',
  references: ['table', 'steel table'],
});
add('desk', { form: 'table', material: 'Wood', container: 'open', references: ['desk', 'wood desk'] });
add('counter', { form: 'table', material: 'Wood', container: 'open', references: ['counter', 'wood counter'] });
add('cupboard', { form: 'cupboard', material: 'Wood', container: 'closed', references: ['cupboard', 'wood cupboard'] });
add('closet', { form: 'cupboard', material: 'Wood', container: 'closed', references: ['closet', 'wood closet'] });
add('drawer', { form: 'drawer', material: 'Wood', container: 'closed', references: ['drawer', 'wood table'] });
add('bee hive', {
  form: 'cupboard',
  material: 'Wood',
  container: 'closed',
  references: ['bee hive', 'hive', 'beehive'],
});
add('pillow', { form: 'white', material: 'CottonCloth', references: ['object'] });

// Appliances.
for (const [id, cool, reference] of [
  ['fridge', 2, 'fridge'],
  ['freezer', -18, 'freezer'],
  ['ultra low temperature freezer', -86, 'freezer'],
] as const) {
  add(id, { form: 'cooler', container: 'closed', device: 'activable-on', fixed: true, cool, references: [reference] });
}
for (const id of ['stove', 'hot plate']) {
  add(id, { form: 'stove', container: 'open', device: 'activable-off', fixed: true, heat: 260, references: [id] });
}
for (const [id, heat, reference] of [
  ['oven', 540, 'oven'],
  ['blast furnace', 3000, 'furnace'],
] as const) {
  add(id, { form: 'oven', container: 'closed', device: 'activable-off', fixed: true, heat, references: [reference] });
}
for (const [id, material] of [
  ['sink', 'Steel'],
  ['bathtub', 'Ceramic'],
] as const) {
  add(id, { form: 'sink', material, container: 'open', device: 'activable-off', fixed: true });
}
add('toilet', {
  form: 'toilet',
  material: 'Steel',
  container: 'open',
  device: 'activable-off',
  fixed: true,
});

// Tools.
add('lighter', { material: 'Metal', container: 'not', device: 'usable', heat: 2200 });
add('shovel', { material: 'Steel', container: 'not', device: 'usable' });
add('axe', { form: 'an', material: 'Steel', container: 'not', device: 'usable' });
add('thermometer', { form: 'thermometer', material: 'Glass', container: 'not', device: 'usable' });
add('stopwatch', {
  form: 'stopwatch',
  container: 'not',
  device: 'activable-off',
  references: ['stopwatch', 'watch', 'timer'],
});

// Electrical components.
for (const [id, device, form] of [
  ['battery', 'fixed-on', 'battery'],
  ['generator', 'activable-on', 'electric'],
  ['gas generator', 'activable-off', 'electric'],
  ['nuclear generator', 'activable-off', 'electric'],
  ['solar panel', 'fixed-off', 'electric'],
  ['wind generator', 'fixed-off', 'electric'],
] as const) {
  add(id, {
    form,
    device,
    circuit: 'generator',
    references: ['generator'],
  });
}
for (const color of ['red', 'green', 'blue', 'yellow', 'orange', 'violet']) {
  add(`${color} light bulb`, {
    form: 'electric',
    device: 'fixed-off',
    circuit: 'user',
    references: ['light', 'light bulb'],
  });
}
add('electric buzzer', { form: 'electric', device: 'fixed-off', circuit: 'user', references: ['buzzer'] });
add('electric motor', { form: 'electric', device: 'fixed-off', circuit: 'user', references: ['motor'] });
add('switch', { form: 'electric', device: 'activable-off', circuit: 'switch', references: ['component'] });
for (const color of ['', 'red', 'green', 'blue', 'yellow', 'orange', 'black']) {
  const id = color ? `${color} wire` : 'wire';
  add(id, { form: 'wire', material: 'Metal', device: 'fixed-off', circuit: 'wire', references: ['component'] });
}

// Paper.
for (const id of ['picture', 'drawing', 'painting', 'finger painting']) {
  add(id, { form: 'picture', material: 'Paper', container: 'not' });
}
for (const id of [
  'book',
  'recipe',
  'paper',
  'red paper',
  'green paper',
  'blue paper',
  'orange paper',
  'yellow paper',
  'violet paper',
]) {
  add(id, { form: 'document', material: 'Paper', container: 'not' });
}

// Substances.
for (const [id, material] of [
  ['air', 'Air'],
  ['water', 'Water'],
  ['sodium', 'Sodium'],
  ['sodium chloride', 'SodiumChloride'],
  ['sodium bicarbonate', 'SodiumBicarbonate'],
  ['sodium acetate', 'SodiumAcetate'],
  ['acetic acid', 'AceticAcid'],
  ['salt water', 'SaltWater'],
  ['soapy water', 'SoapyWater'],
  ['sugar water', 'Sugar'],
  ['soap', 'Soap'],
  ['sugar', 'Sugar'],
  ['wood', 'Wood'],
  ['rubber', 'Rubber'],
  ['ash', 'Ash'],
  ['rust', 'Rust'],
  ['gallium', 'Gallium'],
  ['caesium', 'Caesium'],
  ['mercury', 'Mercury'],
  ['lead', 'Lead'],
  ['tin', 'Tin'],
] as const) {
  add(id, { form: 'substance', material, references: ['substance'] });
}
// Frozen water is no kind of water: a tap fills a sink that holds it.
add('ice', { name: 'water', form: 'substance', material: 'Water', references: ['substance'] });
add('unknown substance', { form: 'name', material: 'Metal', references: ['unknown substance'] });
add('soil', { form: 'bare', material: 'Soil' });
for (const [id, material] of [
  ['wood block', 'Wood'],
  ['steel block', 'Steel'],
  ['iron block', 'Iron'],
] as const) {
  add(id, { form: 'a', material, references: ['block'] });
}
add('brick', { form: 'a', material: 'Brick', references: ['substance'] });
for (const [id, material, reference] of [
  ['metal fork', 'Steel', 'steel fork'],
  ['plastic fork', 'Plastic', 'plastic fork'],
  ['paper clip', 'Steel', 'steel paper clip'],
  ['aluminum foil', 'Aluminum', 'aluminum foil'],
] as const) {
  add(id, { form: 'A', material, references: [reference] });
}
for (const color of PAINTS) add(`${color} paint`, { form: 'bare', material: `${color} paint`, references: ['paint'] });

// Food.
for (const [id, form, color] of [
  ['apple', 'colored', 'red'],
  ['apricot', 'colored', 'orange'],
  ['onion', 'colored', 'red'],
  ['avocado', 'an', ''],
  ['orange', 'an', ''],
  ['grapefruit', 'an', ''],
  ['banana', 'a', ''],
  ['cherry', 'a', ''],
  ['lemon', 'a', ''],
  ['peach', 'a', ''],
  ['pear', 'a', ''],
  ['potato', 'a', ''],
  ['garlic', 'bare', ''],
] as const) {
  const material = id === 'apricot' ? 'PlantMatter' : null;
  add(id, { form, material, color, edible: true, references: color ? [id, `${color} ${id}`] : [id] });
}
for (const [id, material] of [
  ['orange juice', 'OrangeJuice'],
  ['apple juice', 'AppleJuice'],
  ['chocolate', 'Chocolate'],
  ['marshmallow', 'Marshmallow'],
  ['ice cream', 'IceCream'],
  ['peanut', 'Nut'],
  ['almond', 'Nut'],
  ['cashew', 'Nut'],
  ['mixed nuts', 'Nut'],
  ['fruit salad', 'PlantMatter'],
  ['smores', 'Marshmallow'],
] as const) {
  add(id, { form: 'bare', material, edible: true, references: [id] });
}
for (const id of ['flour', 'dough', 'bread']) {
  add(id, { form: 'bare', material: 'Flour', color: 'white', edible: true, references: [id] });
}
for (const filling of ['peanut butter', 'jam', 'banana', 'peanut butter with jam', 'peanut butter with banana']) {
  add(`${filling} sandwich`, { form: 'bare', material: 'Flour', edible: true, references: ['sandwich'] });
}
add('jam', { form: 'canonical', material: 'Jam', color: 'red', edible: true, references: ['jam'] });

// Life.
add('bee', { form: 'bee', references: ['living thing', 'organism', 'bee'] });
add('animal', { form: 'animal', references: ['living thing', 'organism'] });
add('plant', {
  form: 'plant',
  material: 'PlantMatter',
  container: 'open',
  edible: true,
  references: ['living thing', 'organism'],
});
add('flower', { form: 'flower', material: 'FlowerMatter', container: 'open' });
add('pollen', { form: 'pollen', material: 'PollenMatter', container: 'not' });
add('inclined plane', { form: 'plane', material: 'Steel', container: 'open' });
