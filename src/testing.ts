/** Public API for tests of a world, `longplay/testing`: its laws, and arbitraries for fast-check. Re-exports only. */
export { arbitraries, type WorldArbitraries } from './world/conformance/arbitraries.ts';
export {
  type CheckOptions,
  type Counterexample,
  checkLaw,
  checkLaws,
  envLaws,
  type LawResult,
} from './world/conformance/check.ts';
export { type Case, type Law, laws, type Subject } from './world/conformance/laws.ts';
export { type ActionTexts, type Move, type Played, play, type Script } from './world/conformance/script.ts';
