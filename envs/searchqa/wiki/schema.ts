/**
 * Relations of the embedded world and how they are worded: in passages (`{S}` the subject, `{O}` the object), inside a
 * question (`{X}` its subject), and as the end of one. The third wording of each is a paraphrase that shares no
 * word with the passages but the names.
 */

/** Kinds of things; `person` to `university` are made up, the others real. */
export type Kind = 'person' | 'town' | 'work' | 'company' | 'university' | 'realm' | 'country' | 'zone' | 'element';

/** Kinds of values that are no things of their own. */
export type Literal = 'year' | 'number' | 'word' | 'name';

/** Relation between a kind of things and another kind or a plain value, with the sentences that state and ask it. */
export interface Relation {
  /** One word; the view's. */
  readonly name: string;
  readonly of: Kind;
  readonly to: Kind | Literal;
  /** Sentences that state it. */
  readonly statements: readonly string[];
  /** Noun phrases, for questions that go further. */
  readonly nouns: readonly string[];
  /** Questions, without their mark. */
  readonly asks: readonly string[];
}

const rows: readonly (readonly [string, Kind, Kind | Literal, string, string, string])[] = [
  [
    'birthplace',
    'person',
    'town',
    '{S} was born in {O}|{O} is the birthplace of {S}|{S} came into the world at {O}',
    'the birthplace of {X}|the town where {X} was born|the place that {X} first called home',
    'In which town was {X} born|Where was {X} born|Which place did {X} first call home',
  ],
  [
    'birthyear',
    'person',
    'year',
    'the birth year of {S} is {O}|{S} has the birth year {O}|the birth of {S} fell in {O}',
    'the birth year of {X}|the year when {X} was born|the year that first saw {X}',
    'In which year was {X} born|When was {X} born|How early did {X} start breathing',
  ],
  [
    'job',
    'person',
    'word',
    '{S} is a {O}|{S} works as a {O}|{S} is a {O} by trade',
    'the profession of {X}|the job of {X}|the calling of {X}',
    'What is the profession of {X}|As what does {X} work|How does {X} earn a living',
  ],
  [
    'school',
    'person',
    'university',
    '{S} studied at {O}|{S} graduated from {O}|the school of {S} is {O}',
    'the school of {X}|the university where {X} studied|the alma mater of {X}',
    'At which university did {X} study|Where did {X} study|What is the alma mater of {X}',
  ],
  [
    'spouse',
    'person',
    'person',
    '{S} is married to {O}|the spouse of {S} is {O}|{S} has the spouse {O}',
    'the spouse of {X}|the person married to {X}|the better half of {X}',
    'Who is the spouse of {X}|To whom is {X} married|Who is the better half of {X}',
  ],
  [
    'father',
    'person',
    'person',
    'the father of {S} is {O}|{S} has the father {O}|{S} calls {O} father',
    'the father of {X}|the man who is the father of {X}|the dad of {X}',
    'Who is the father of {X}|Who is named as the father of {X}|Who is the dad of {X}',
  ],
  [
    'employer',
    'person',
    'company',
    '{S} works for {O}|the employer of {S} is {O}|{S} has the employer {O}',
    'the employer of {X}|the company that {X} works for|the firm that pays {X}',
    'For which company does {X} work|What is the employer of {X}|Which firm pays {X}',
  ],
  [
    'maker',
    'work',
    'person',
    'the maker of {S} is {O}|{S} was made by {O}|{S} has the maker {O}',
    'the maker of {X}|the person who made {X}|the creator of {X}',
    'Who is the maker of {X}|Who made {X}|Who is the creator of {X}',
  ],
  [
    'release',
    'work',
    'year',
    '{S} was released in {O}|the release of {S} came in {O}|{S} has the release year {O}',
    'the release year of {X}|the year when {X} was released|the year that brought {X}',
    'In which year was {X} released|When was {X} released|How long ago did {X} come out',
  ],
  [
    'publisher',
    'work',
    'company',
    '{S} was published by {O}|the publisher of {S} is {O}|{S} has the publisher {O}',
    'the publisher of {X}|the company that published {X}|the firm that issued {X}',
    'Which company published {X}|What is the publisher of {X}|Which firm issued {X}',
  ],
  [
    'setting',
    'work',
    'town',
    '{S} is set in {O}|the setting of {S} is {O}|{S} has the setting {O}',
    'the setting of {X}|the town where {X} is set|the place where {X} unfolds',
    'In which town is {X} set|What is the setting of {X}|Where does {X} unfold',
  ],
  [
    'kind',
    'work',
    'word',
    '{S} is a {O} for the public|as a {O} {S} is well known|{S} counts as a {O}',
    'the kind of {X}|the genre of {X}|the form of {X}',
    'What kind of work is {X}|What is the genre of {X}|What form does {X} have',
  ],
  [
    'realm',
    'town',
    'realm',
    '{S} lies in {O}|{S} is a town in {O}|{S} belongs to {O}',
    'the country of {X}|the country where {X} lies|the nation around {X}',
    'In which country is {X}|In which country does {X} lie|Which nation surrounds {X}',
  ],
  [
    'mayor',
    'town',
    'person',
    'the mayor of {S} is {O}|{S} has the mayor {O}|{O} is mayor of {S}',
    'the mayor of {X}|the person who is mayor of {X}|the head of the council in {X}',
    'Who is the mayor of {X}|Who is mayor in {X}|Who heads the council in {X}',
  ],
  [
    'founding',
    'town',
    'year',
    '{S} was founded in {O}|the founding of {S} took place in {O}|{S} has the founding year {O}',
    'the founding year of {X}|the year when {X} was founded|the year that began {X}',
    'In which year was {X} founded|When was {X} founded|How old is {X}, by its first year',
  ],
  [
    'river',
    'town',
    'name',
    '{S} stands on the river {O}|the river of {S} is the {O}|{S} has the river {O}',
    'the river of {X}|the river on which {X} stands|the stream through {X}',
    'Which river flows through {X}|On which river does {X} stand|Which stream runs past {X}',
  ],
  [
    'capital',
    'realm',
    'town',
    'the capital of {S} is {O}|{S} has the capital {O}|{S} is ruled from the capital {O}',
    'the capital of {X}|the town that is capital of {X}|the seat of government in {X}',
    'What is the capital of {X}|Which town is the capital of {X}|Where does the government of {X} meet',
  ],
  [
    'currency',
    'realm',
    'name',
    'the currency of {S} is the {O}|{S} has the currency {O}|people of {S} trade in the currency {O}',
    'the currency of {X}|the currency used in {X}|the money of {X}',
    'What is the currency of {X}|Which currency has {X}|With what money does one pay in {X}',
  ],
  [
    'language',
    'realm',
    'name',
    'the language of {S} is {O}|{S} has the language {O}|in {S} the language is {O}',
    'the language of {X}|the language used in {X}|the tongue of {X}',
    'What is the language of {X}|Which language has {X}|In what tongue do people of {X} talk',
  ],
  [
    'leader',
    'realm',
    'person',
    'the leader of {S} is {O}|{S} has the leader {O}|{O} is leader of {S}',
    'the leader of {X}|the person who leads {X}|the head of state in {X}',
    'Who is the leader of {X}|Who leads {X}|Who is head of state in {X}',
  ],
  [
    'founder',
    'company',
    'person',
    'the founder of {S} is {O}|{S} has the founder {O}|{S} was started by the founder {O}',
    'the founder of {X}|the person who founded {X}|the one behind the beginnings of {X}',
    'Who is the founder of {X}|Who founded {X}|Who stood behind the beginnings of {X}',
  ],
  [
    'seat',
    'company',
    'town',
    'the seat of {S} is {O}|{S} has the seat {O}|{S} keeps a seat at {O}',
    'the seat of {X}|the town where {X} has its seat|the home base of {X}',
    'In which town is the seat of {X}|Where has {X} its seat|What is the home base of {X}',
  ],
  [
    'chief',
    'company',
    'person',
    'the chief of {S} is {O}|{S} has the chief {O}|{O} is chief of {S}',
    'the chief of {X}|the person who is chief of {X}|the boss of {X}',
    'Who is the chief of {X}|Who is chief at {X}|Who is the boss of {X}',
  ],
  [
    'industry',
    'company',
    'word',
    'the industry of {S} is {O}|{S} is in the industry of {O}|{S} lives from {O}',
    'the industry of {X}|the industry that {X} is in|the line of business of {X}',
    'In which industry is {X}|What is the industry of {X}|What line of business has {X}',
  ],
  [
    'city',
    'university',
    'town',
    'the city of {S} is {O}|{S} is in the city of {O}|{S} has buildings in the city of {O}',
    'the city of {X}|the city where {X} is|the place around the campus of {X}',
    'In which city is {X}|What is the city of {X}|Where does one find the campus of {X}',
  ],
  [
    'opening',
    'university',
    'year',
    '{S} opened in {O}|the opening of {S} was in {O}|{S} has the opening year {O}',
    'the opening year of {X}|the year when {X} opened|the year of the first lectures at {X}',
    'In which year did {X} open|When did {X} open|How early were lectures held at {X}',
  ],
  [
    'rector',
    'university',
    'person',
    'the rector of {S} is {O}|{S} has the rector {O}|{O} is rector of {S}',
    'the rector of {X}|the person who is rector of {X}|the scholar in charge of {X}',
    'Who is the rector of {X}|Who is rector at {X}|Which scholar is in charge of {X}',
  ],
  [
    'metropolis',
    'country',
    'name',
    'the capital city of {S} is {O}|{S} has the capital city {O}|{S} is governed from {O}',
    'the capital city of {X}|the city that is the capital of {X}|the seat of power in {X}',
    'What is the capital city of {X}|Which city is the capital of {X}|Where is the seat of power in {X}',
  ],
  [
    'continent',
    'country',
    'name',
    '{S} is a country of {O}|the continent of {S} is {O}|{S} is on the continent {O}',
    'the continent of {X}|the continent that holds {X}|the part of the world around {X}',
    'On which continent is {X}|What is the continent of {X}|In which part of the world is {X}',
  ],
  [
    'tender',
    'country',
    'name',
    'the currency code of {S} is {O}|{S} uses the currency code {O}|banks write {O} for the money of {S}',
    'the currency code of {X}|the currency code used in {X}|the three letters for cash in {X}',
    'What is the currency code of {X}|Which currency code has {X}|Which three letters stand for cash in {X}',
  ],
  [
    'prefix',
    'country',
    'number',
    'the calling code of {S} is {O}|{S} has the calling code {O}|one dials {O} to reach {S}',
    'the calling code of {X}|the number dialled for {X}|the telephone prefix of {X}',
    'What is the calling code of {X}|Which calling code has {X}|With which digits do telephone numbers of {X} begin',
  ],
  [
    'speech',
    'country',
    'name',
    'the first language of {S} is {O}|people in {S} speak {O}|{S} has the first language {O}',
    'the first language of {X}|the language people speak in {X}|the main tongue of {X}',
    'What is the first language of {X}|Which language do people speak in {X}|What is the main tongue of {X}',
  ],
  [
    'land',
    'zone',
    'country',
    'the time zone {S} is used in {O}|{S} is a time zone of {O}|clocks of {O} follow {S}',
    'the country of the time zone {X}|the country that uses {X}|the nation whose hours are {X}',
    'In which country is the time zone {X}|Which country uses the time zone {X}|Which nation has its hours from {X}',
  ],
  [
    'offset',
    'zone',
    'name',
    'the time zone {S} stands at {O}|clocks of {S} show {O}|{S} keeps {O}',
    'the offset of the time zone {X}|the offset of {X}|the distance of {X} from Greenwich',
    'What is the offset of the time zone {X}|Which offset has {X}|How far is {X} from Greenwich',
  ],
  [
    'symbol',
    'element',
    'name',
    'the symbol of {S} is {O}|{S} has the symbol {O}|chemists write {O} for {S}',
    'the symbol of {X}|the chemical symbol of {X}|the letters for {X}',
    'What is the symbol of {X}|Which symbol has {X}|Which letters stand for {X}',
  ],
  [
    'atomic',
    'element',
    'number',
    'the atomic number of {S} is {O}|{S} has the atomic number {O}|{S} carries {O} protons',
    'the atomic number of {X}|the number that {X} has among the elements|the charge of a nucleus of {X}',
    'What is the atomic number of {X}|Which atomic number has {X}|What charge has a nucleus of {X}',
  ],
];

/** Relations of the world, in the order in which facts are drawn. */
export const RELATIONS: readonly Relation[] = rows.map(([name, of, to, statements, nouns, asks]) => ({
  name,
  of,
  to,
  statements: statements.split('|'),
  nouns: nouns.split('|'),
  asks: asks.split('|'),
}));

const byName = new Map(RELATIONS.map((relation) => [relation.name, relation]));

/** Finds a relation by name. @throws {RangeError} for an unknown one */
export function relation(name: string): Relation {
  const found = byName.get(name);
  if (!found) throw new RangeError(`no relation "${name}"`);
  return found;
}

/** Relations of a kind of thing, in order. */
export function relationsOf(kind: Kind): readonly Relation[] {
  return RELATIONS.filter(({ of }) => of === kind);
}

const LITERALS: ReadonlySet<string> = new Set(['year', 'number', 'word', 'name']);

/** True of a relation to a thing that further questions can be about. */
export function leadsOn({ to }: Relation): boolean {
  return !LITERALS.has(to);
}

/** Relations whose values can be compared, with the word for the least. */
export const COMPARED: Readonly<Record<string, string>> = {
  birthyear: 'Who was born first',
  release: 'Which was released first',
  founding: 'Which was founded first',
  opening: 'Which opened first',
};

/** Relations that two things can share, each with its question. */
export const SHARED: Readonly<Record<string, string>> = {
  birthplace: 'Were {A} and {B} born in the same town',
  employer: 'Do {A} and {B} work for the same company',
  maker: 'Were {A} and {B} made by the same person',
  realm: 'Are {A} and {B} in the same country',
};

/** Passages of each kind: which relations stand together. A person's job stands in both, to distinguish namesakes. */
export const PASSAGES: Readonly<Record<Kind, readonly (readonly string[])[]>> = {
  person: [
    ['job', 'birthplace', 'birthyear', 'school'],
    ['job', 'spouse', 'father', 'employer'],
  ],
  work: [['kind', 'maker', 'release', 'publisher', 'setting']],
  town: [['realm', 'founding', 'river'], ['mayor']],
  realm: [['capital', 'currency', 'language', 'leader']],
  company: [['founder', 'seat', 'chief', 'industry']],
  university: [['city', 'opening', 'rector']],
  country: [['continent', 'metropolis', 'tender', 'prefix', 'speech']],
  zone: [['land', 'offset']],
  element: [['symbol', 'atomic']],
};
