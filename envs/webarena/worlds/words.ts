/**
 * Word lists that names and sentences of the sites are drawn from; ours, chosen to be short and easy to distinguish.
 */
const split = (text: string): readonly string[] => text.trim().split(/\s+/);

export const FIRST_NAMES = split(`Ada Bruno Clara Dario Elif Farid Greta Hugo Ines Jonas Kira Liam Mona Nils Olga Pavel
Quinn Rosa Sven Tara Umar Vera Wim Xenia Yusuf Zoe Amir Bea Cem Dora Emil Fay Gus Hana Ivo June Karl Lena Milo Nora`);
export const LAST_NAMES =
  split(`Abbot Becker Castro Dahl Ekman Fischer Garcia Hansen Ito Jensen Keller Lopez Moreau Novak
Okafor Park Quist Rossi Silva Tanaka Ueda Vargas Weber Xu Young Ziegler Alden Brandt Conti Duval`);
export const COLOURS = split('black white red blue green grey yellow purple');
export const ADJECTIVES = split(
  'Compact Sturdy Classic Slim Bright Quiet Rapid Smooth Solid Gentle Prime Nordic Urban Alpine',
);
export const MATERIALS = split('Steel Oak Cotton Glass Copper Bamboo Linen Ceramic Leather Rubber');
/** Shop categories and the things sold in each. */
export const CATEGORIES: readonly { readonly name: string; readonly things: readonly string[] }[] = [
  { name: 'Kitchen', things: split('Kettle Pan Grater Whisk Toaster Ladle') },
  { name: 'Office', things: split('Stapler Lamp Notebook Pen Binder Clock') },
  { name: 'Garden', things: split('Spade Hose Rake Planter Bench Shears') },
  { name: 'Audio', things: split('Speaker Headset Radio Microphone Amplifier Turntable') },
  { name: 'Games', things: split('Controller Console Puzzle Cardcase Dice Joystick') },
  { name: 'Sports', things: split('Racket Helmet Dumbbell Mat Bottle Whistle') },
  { name: 'Beauty', things: split('Comb Mirror Brush Soap Lotion Razor') },
  { name: 'Clothing', things: split('Jacket Scarf Gloves Shirt Belt Cap') },
  { name: 'Tools', things: split('Hammer Drill Wrench Saw Pliers Chisel') },
  { name: 'Travel', things: split('Suitcase Backpack Umbrella Wallet Tent Flask') },
  { name: 'Pets', things: split('Leash Collar Bowl Basket Carrier Toy') },
  { name: 'Photo', things: split('Camera Tripod Lens Flash Album Filter') },
];
/** Words that reviews are made of: a complaint or praise each, so that "mentions X" can be counted. */
export const PRAISE = split('durable elegant comfortable reliable affordable lightweight spotless practical');
export const COMPLAINTS = split('fragile noisy scratched leaking overpriced bulky faded wobbly');
export const FORUMS = split(`books gardening movies fitness travel cooking music photography gaming science history
coffee cycling running chess woodworking astronomy languages`);
export const TOPICS = split(`beginner weekly favourite budget vintage winter summer local secret modern honest quick
advanced forgotten seasonal practical`);
export const SUBJECTS = split(`guide question review story mistake routine setup collection challenge tip comparison
discovery project meetup recommendation experiment`);
export const REMARKS = [
  'I tried this last year and it worked well.',
  'Not sure I agree with the first part.',
  'Thanks for writing this down.',
  'Has anyone done it in the rain?',
  'This saved me a whole weekend.',
  'The second option is better in my view.',
  'Please post an update next month.',
  'I would not pay for that.',
  'Same here, and it still holds up.',
  'Could you share more details?',
] as const;
export const PROJECT_NAMES = split(`kettle lantern harbour beacon quartz willow ember compass meadow anvil saffron orbit
thimble canyon`);
export const COMPONENTS = split(
  'parser cache login search export layout editor payment upload scheduler report importer',
);
export const PROBLEMS = split('crashes hangs leaks flickers duplicates ignores truncates rejects forgets overflows');
export const WHENS = split('startup resize logout import midnight reload rotation timeout');
export const LABELS = split('bug feature documentation performance security accessibility');
export const COMMIT_VERBS = split('Fix Add Remove Rename Document Test Simplify Update');
export const STREETS = split(`Harbour Mill Station Church Garden River Market Castle Bridge Forest Meadow Orchard Quarry
Summit Willow Chapel`);
export const CITIES = split('Northport Ashford Larkhill Stonebridge Eastvale Millbrook');
/** Kinds of places, and words that their names end in. */
export const PLACE_KINDS: readonly { readonly kind: string; readonly ends: readonly string[] }[] = [
  { kind: 'cafe', ends: split('Cafe Coffeehouse') },
  { kind: 'museum', ends: split('Museum Gallery') },
  { kind: 'hotel', ends: split('Hotel Inn') },
  { kind: 'pharmacy', ends: split('Pharmacy Apothecary') },
  { kind: 'park', ends: split('Park Gardens') },
  { kind: 'library', ends: split('Library Archive') },
  { kind: 'university', ends: split('University College') },
  { kind: 'station', ends: split('Station Terminal') },
  { kind: 'theatre', ends: split('Theatre Playhouse') },
  { kind: 'bakery', ends: split('Bakery Patisserie') },
];
export const PLACE_NAMES =
  split(`Aurora Beacon Cedar Dolphin Elm Falcon Granite Heron Ivory Juniper Kestrel Linden Maple
Nettle Onyx Poplar Quill Raven Sorrel Thistle`);
export const SEARCH_TERMS = split('kettle lamp tent racket drill camera scarf leash puzzle speaker soap rake');
