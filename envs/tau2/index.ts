/** τ²-bench as the framework loads it. */
export { parity } from './parity.ts';
export const description = 'x';
