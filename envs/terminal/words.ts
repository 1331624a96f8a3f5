/**
 * Names and words that tasks are made of: each is a token of its own for a small policy. None occurs in two lists, no name of a
 * file contains another, and no word in files is part of another word there or of a person's name.
 */

/** Names of files, without their endings. */
export const NAMES =
  'report notes draft orders items budget summary recipes invoice letters music photos stock prices events guests ' +
  'books cities animals plants songs games teams points routes rooms lessons results samples models trips bills boats ' +
  'cards chores clients coins drawings farms films flights forms gifts goals grades hotels houses jobs keys lakes lamps ' +
  'maps menus moves mugs pages pets plays pools queues quotes rivers roads roles sales seats ships shops skills stories';
/** Names of folders. */
export const FOLDERS =
  'archive backup public private shared store inbox outbox north south east west upper lower attic cellar garage office ' +
  'library studio depot harbor market museum';
/** Words in files. */
export const WORDS =
  'apple banana cherry grape lemon mango olive peach pear plum quince raisin carrot onion pepper potato tomato spinach ' +
  'amber azure beige black blue brown coral cyan gold gray green indigo ivory jade lilac maroon navy orange pink purple ' +
  'red ruby silver tan teal violet white yellow bear cat cow deer dog duck eagle fox frog goat hawk horse lion mouse otter ' +
  'owl panda rabbit seal sheep swan tiger whale wolf zebra anchor basket lantern bottle candle chair clock desk door drum ' +
  'fork glove hammer kettle ladder mirror needle paddle pencil pillow ribbon saddle spoon stool tent towel trumpet wagon';
/** Names of people in tables and logs. */
export const PEOPLE =
  'ada alan anna bella carl clara dana david emma eric fiona frank gina hugo irene ivan jack julia karl laura leo maria ' +
  'nina noah olga oscar paula peter rosa sam tina tom ursula victor wanda zoe';
/** Keys of settings. */
export const KEYS =
  'color size speed volume theme region mode level host owner title format limit depth scale layout filter engine target';

/** Splits a list of words. */
export function wordsIn(list: string): readonly string[] {
  return list.split(' ');
}
