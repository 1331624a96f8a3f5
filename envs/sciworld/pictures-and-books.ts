/** Pictures and books of the house. */
import type { Print } from './thing.ts';

export const PICTURES = {
  kinds: ['picture', 'drawing', 'painting', 'finger painting'],
  subjects: [
    'a cow',
    'a chicken',
    'a farm',
    'a lush green meadow',
    'rolling hills',
    'a wintery mountain',
    'a boat crossing a river',
    'the moon',
    'abstract shapes',
    'two people playing',
  ],
  artists: ['Alexandra', 'Owen', 'Bob', 'Lily'],
} as const;

/** Books in the order they are drawn; no recording shows their texts, so here each opens with its first line. */
export const BOOKS: readonly Print[] = [
  { title: 'Moby Dick', author: 'Herman Melville', text: 'Call me Ishmael.' },
  { title: 'Frankenstein', author: 'Mary Wollstonecraft Shelley', text: 'To Mrs. Saville, England.' },
  {
    title: 'Sherlock Holmes',
    author: 'Arthur Conan Doyle',
    text: 'To Sherlock Holmes she is always the woman.',
  },
  {
    title: 'Pride and Prejudice',
    author: 'Jane Austen',
    text: 'It is a truth universally acknowledged, that a single man in possession of a good fortune, must be in want of a wife.',
  },
  { title: 'Beowulf', author: 'Beowulf poet', text: 'Lo, praise of the prowess of people-kings of spear-armed Danes.' },
  {
    title: 'The Foundations of the Origin of Species',
    author: 'Charles Darwin',
    text: 'An organic being, like man, is the product of its parents.',
  },
];
