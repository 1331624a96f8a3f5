/** The real inference actor, whose thread ends between two engine calls on the message `exit`. */
import inferenceActor from '../../actors/inference/inference-actor.ts';
import type { InferenceCommand, InferenceInit } from '../../actors/inference/protocol.ts';
import type { BehaviorFactory } from '../../src/runtime/actor.ts';

export type ExitingCommand = InferenceCommand | { readonly type: 'exit' };

export default function exitingInferenceActor(init: InferenceInit): BehaviorFactory<ExitingCommand> {
  const start = inferenceActor(init) as BehaviorFactory<InferenceCommand>;
  return async (ctx) => {
    const behavior = await start(ctx as never);
    return { ...behavior, handlers: { ...behavior.handlers, exit: () => process.exit(3) } } as never;
  };
}
