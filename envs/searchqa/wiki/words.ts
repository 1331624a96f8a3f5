/** Closed lists of the embedded world: values that are common words. */

export const JOBS = [
  'painter', 'botanist', 'architect', 'composer', 'surgeon', 'chemist', 'poet', 'sculptor', 'astronomer', 'geologist',
  'historian', 'engineer', 'novelist', 'linguist', 'cellist', 'printer',
] as const; // biome-ignore format: a table
export const KINDS = [
  'novel',
  'opera',
  'symphony',
  'film',
  'play',
  'ballet',
  'memoir',
  'atlas',
  'anthology',
  'cantata',
] as const;
export const INDUSTRIES = [
  'shipbuilding',
  'brewing',
  'weaving',
  'mining',
  'insurance',
  'publishing',
  'glassmaking',
  'forestry',
  'milling',
  'tanning',
] as const;

/** All of them. */
export const LIST_WORDS: ReadonlySet<string> = new Set<string>([...JOBS, ...KINDS, ...INDUSTRIES]);
