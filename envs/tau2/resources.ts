/** Models that the sessions of one env host share: the user's and the judge's. */
import type { ChatModel } from '../../src/core/chat-model.ts';
import { UserError } from '../../src/core/errors.ts';
import { Judge } from '../../src/core/judge.ts';
import type { Resources, StartContext } from '../../src/core/world.ts';
import type { Tau2Options } from './options.ts';

/** Models of the user and the judge, where the options name some. */
export interface Tau2Resources extends Resources {
  readonly user?: ChatModel | undefined;
  readonly judge?: Judge | undefined;
}

/** Opens the models that the options name. @throws {UserError} BAD_CONFIG where no model can be reached from here */
export async function openResources(
  { userModel, judge }: Pick<Tau2Options, 'userModel' | 'judge'>,
  { openChatModel }: Pick<StartContext, 'openChatModel'>,
): Promise<Tau2Resources> {
  const models = [userModel, judge?.model];
  if (!openChatModel && models.some((model) => model !== undefined)) {
    const cure = 'check the world with the user "scripted" or "solo" and without a judge';
    throw new UserError(
      'BAD_CONFIG',
      `tau2: a user or a judge that is a language model cannot be reached here: ${cure}`,
    );
  }
  const [user, judging] = await Promise.all(models.map((model) => model && openChatModel!(model)));
  return {
    user,
    judge: judging && new Judge(judging, judge!.options),
    dispose() {
      user?.close();
      judging?.close();
    },
  };
}
