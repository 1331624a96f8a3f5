// @ts-check
/**
 * NAME: find a number by the range that is left.
 *
 * Observation  The range that is left, or why nothing happened.
 * Action       `guess N`; anything else is a wasted turn.
 * Reward       1 on the turn the number is found, else 0.
 * Terminates   when the number is found. Truncation belongs to the horizon, never to the env.
 * Randomness   the number, drawn from the task's index and seed. Steps are deterministic.
 */

/** Sizes of the range; one sub-task each. */
const SIZES = [4, 8, 16, 32];
const TASKS = 80;

/** @param {number} index */
function sizeOf(index) {
  if (!Number.isInteger(index) || index < 0 || index >= TASKS) {
    throw new RangeError(`NAME: task index must be in [0, ${TASKS}), got ${index}`);
  }
  return SIZES[index % SIZES.length] ?? 0;
}

/** A number in [1, size] that depends on the task alone: no Math.random, no clock. @param {import('longplay').Task} task */
function secretOf({ index, seed }) {
  let x = (seed ^ Math.imul(index + 1, 0x9e3779b1)) >>> 0;
  x = Math.imul(x ^ (x >>> 16), 0x85ebca6b) >>> 0;
  x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35) >>> 0;
  return (((x ^ (x >>> 16)) >>> 0) % sizeOf(index)) + 1;
}

const indices = Array.from({ length: TASKS }, (_, index) => index);
const held = (/** @type {number} */ index) => Math.floor(index / SIZES.length) % 5 === 4;

/** @type {NonNullable<import('longplay').World['createEnv']>} */
export function createEnv(options = {}) {
  for (const key of Object.keys(options)) throw new Error(`NAME: unknown option '${key}'; it has none`);
  return {
    id: 'NAME',
    description: 'Find a number by the range that is left.',
    rewardRange: [0, 1],
    maxObservationChars: 200,
    tasks: {
      count: TASKS,
      labels: SIZES.map((size) => `1 to ${size}`),
      label: (index) => `1 to ${sizeOf(index)}`,
      split: (split) => indices.filter((index) => held(index) === (split === 'test')),
      evalSeed: 0,
    },
    open(task) {
      const secret = secretOf(task);
      let low = 1;
      let high = sizeOf(task.index);
      let found = false;
      const left = () => `The number is from ${low} to ${high}.`;
      return {
        first: { kind: 'first', observation: left() },
        step(text) {
          // A step after the end must do no harm; it means nothing.
          if (found) return { kind: 'terminated', observation: 'You have found it.', reward: 0, success: true };
          const guess = /^guess (\d{1,3})$/.exec(text.trim())?.[1];
          if (guess === undefined) {
            return { kind: 'mid', observation: `That is no guess. Say: guess N. ${left()}`, reward: 0 };
          }
          const n = Number(guess);
          if (n === secret) {
            found = true;
            return { kind: 'terminated', observation: 'You have found it.', reward: 1, success: true };
          }
          if (n < secret) low = Math.max(low, n + 1);
          else high = Math.min(high, n - 1);
          return { kind: 'mid', observation: left(), reward: 0 };
        },
        actions: () => (found ? [] : Array.from({ length: high - low + 1 }, (_, i) => `guess ${low + i}`)),
        close() {},
      };
    },
  };
}

/** Halves the range until the number is found. @type {NonNullable<import('longplay').World['createOracle']>} */
export function createOracle() {
  return () => (step) => {
    const range = /from (\d+) to (\d+)/.exec(step.observation);
    return range ? `guess ${Math.floor((Number(range[1]) + Number(range[2])) / 2)}` : undefined;
  };
}

/**
 * The prompt of language models. Each form is listed with its meaning; other texts are passed on as they are.
 * @type {import('longplay').WorldPrompt}
 */
export const prompt = {
  role: 'You look for a secret number. Each message gives the range in which it lies.',
  forms: [{ name: 'guess', template: 'guess {number}', meaning: 'guesses; the reply is the range that is left' }],
  hints: ['Halve the range with each guess.'],
  format: 'react',
};

/**
 * The text that the local policy reads: every token costs time, so keep it short. Change the id whenever the text changes.
 * @type {import('longplay').View}
 */
export const view = {
  id: 'NAME-1',
  mode: 'window',
  lexicon: [],
  words: ['guess', 'from', 'to', ...Array.from({ length: 33 }, (_, n) => String(n))],
  render(first, turns) {
    const seen = turns.at(-1)?.observation ?? first.observation;
    const range = /from (\d+) to (\d+)/.exec(seen);
    return {
      segments: range ? [`from ${range[1]}`, ` to ${range[2]}`] : ['to'],
      focus: '',
      mentions: (action) => (range && action === `guess ${range[1]}` ? [0] : []),
    };
  },
};
