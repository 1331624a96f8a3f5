/**
 * Oracle of the embedded world: searches for each name on the way and answers with what the last passage held. It looks
 * at how a question was made, and plays it with actions that are listed.
 */
import type { EnvOptions, Oracle } from '../../src/core/env.ts';
import { print } from './grammar.ts';
import { readOptions } from './options.ts';
import { openWiki, type Wiki } from './wiki/world.ts';

/** The solver under these options; over question files it gives up, since it has no knowledge of them. */
export function createOracle(options: EnvOptions = {}): Oracle {
  const { data, world } = readOptions(options);
  let wiki: Wiki | undefined;
  return ({ index }) => {
    if (data) return () => undefined;
    wiki ??= openWiki(world);
    const { searches, answers } = wiki.makeQuestion(index);
    const actions = [
      ...searches.map((content) => print({ type: 'search', content })),
      print({ type: 'answer', content: answers[0]! }),
    ];
    let next = 0;
    return (step) => {
      if (step.kind === 'first') next = 0;
      return step.kind === 'terminated' ? undefined : actions[next++];
    };
  };
}
