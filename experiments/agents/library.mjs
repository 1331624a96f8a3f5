/** A small library of facts behind three tools, for example agents: search it, read a page, answer the question. */
const MATERIALS = ['copper', 'glass', 'wood', 'silver', 'gold', 'iron', 'paper', 'stone'];
const THINGS = ['lamp', 'book', 'box', 'knife', 'bottle', 'cup', 'ball', 'bowl', 'mirror', 'table', 'hammer', 'stove'];
const FACTS = {
  color: ['red', 'blue', 'green', 'black', 'white', 'yellow', 'brown', 'purple', 'orange', 'pink'],
  place: ['kitchen', 'hall', 'garden', 'office', 'shop', 'store', 'town', 'room'],
  price: ['one', 'two', 'three', 'four', 'five', 'six', 'seven', 'ten'],
};

/** Tasks: which library, and what is asked. The last hundred are held out. */
export const tasks = Array.from({ length: 1000 }, (_, index) => ({ index, split: index < 900 ? 'train' : 'test' }));

/** Library of a task: its question, its tools, and what became of it. */
export function openLibrary({ index }) {
  const draw = drawFrom(index);
  const titles = shuffled(
    draw,
    MATERIALS.flatMap((material) => THINGS.map((thing) => `${material} ${thing}`)),
  ).slice(0, 24);
  const pages = new Map(titles.map((title) => [title, factsOf(draw)]));
  const title = titles[0];
  const fact = pick(draw, Object.keys(FACTS));
  const library = {
    question: `What is the ${fact} of the "${title}"?`,
    answer: undefined,
    hasRead: false,
    /** Outcome: 1 for the right answer, less for another fact of the page, and for reading it: a way to learn. */
    outcome() {
      const success = library.answer === pages.get(title)[fact];
      const isFact = Object.values(pages.get(title)).includes(library.answer);
      return { reward: success ? 1 : isFact ? 0.5 : library.hasRead ? 0.2 : 0, success };
    },
    tools: {
      search: ({ query }) => {
        const words = new Set(String(query).toLowerCase().split(/\W+/));
        const found = titles.filter((one) => one.split(' ').some((word) => words.has(word)));
        return shuffled(drawFrom(index + found.length), found).slice(0, 6);
      },
      read: ({ title: asked }) => {
        library.hasRead ||= asked === title;
        return pages.get(asked) ?? { error: 'there is no such page' };
      },
      answer: ({ text }) => {
        library.answer ??= String(text);
        return { done: true };
      },
    },
  };
  return library;
}

/** Descriptions of the tools, and the only argument of each: a text. */
export const TOOLS = {
  search: { description: 'Finds pages by words of their title.', argument: 'query' },
  read: { description: 'Reads the page with this title.', argument: 'title' },
  answer: { description: 'Gives the answer, one word. The task ends.', argument: 'text' },
};

function factsOf(draw) {
  return Object.fromEntries(Object.entries(FACTS).map(([fact, values]) => [fact, pick(draw, values)]));
}

function pick(draw, list) {
  return list[Math.floor(draw() * list.length)];
}

function shuffled(draw, list) {
  return list
    .map((one) => [draw(), one])
    .sort(([a], [b]) => a - b)
    .map(([, one]) => one);
}

/** Numbers in [0, 1) from a seed (mulberry32). */
function drawFrom(seed) {
  let state = (seed + 1) * 0x9e3779b1;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
