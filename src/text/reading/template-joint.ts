/**
 * Joint of a chat template: the text that it puts between an answer and the next one. Templates are programs, so it is
 * found by rendering a probe and cutting.
 */

import { describeValue } from '../../core/describe-value.ts';
import { UserError } from '../../core/errors.ts';
import type { WorldPrompt } from '../../core/prompt.ts';
import type { PromptFormat } from '../prompts/formats.ts';
import type { ChatMessage, ChatTemplate } from '../templates/chat-template.ts';
import type { ControlTokens } from './control-tokens.ts';

/** Text between the end token of an answer and the next question, and after the question. */
export interface Joint {
  readonly before: string;
  readonly after: string;
  /** True where the template cuts white space off the ends of an answer: one that has some is rendered anew. */
  readonly trims: boolean;
}

/**
 * Finds how a template goes on after an answer. The joint exists where what is rendered of two turns begins with what is
 * rendered of one, for answers of every kind: with a thought (of the format, or the model's own), empty, of many lines. A
 * template that drops or moves thoughts of earlier turns has none.
 * @returns the token that ends an answer, and the joint
 * @throws {UserError} BAD_CHECKPOINT for a template without an end of turns that the tokenizer has as one token
 */
export function findJoint(
  template: ChatTemplate,
  controls: ControlTokens,
  format: PromptFormat,
  world: WorldPrompt,
): { readonly end: number; readonly joint: Joint | undefined } {
  const refuse = (why: string): never => {
    throw new UserError('BAD_CHECKPOINT', `the model's chat template cannot be used: ${why}`);
  };
  const question = 'PROBE QUESTION';
  const one: ChatMessage[] = [{ role: 'user', content: question }];
  const opened = template.render(one, { addGenerationPrompt: true });
  const plainly = template.render([...one, { role: 'assistant', content: 'PROBE ACTION' }]);
  const after = plainly.slice(plainly.lastIndexOf('PROBE ACTION') + 'PROBE ACTION'.length);
  const ending = controls.findFirst(after);
  if (ending === undefined || !after.startsWith(ending)) {
    return refuse(`an answer is not followed by a special token, but by ${describeValue(after, 40)}`);
  }
  const end = controls.idOf(ending);
  /** Text around the next question, where the template shows the answer as it was written. */
  const around = (answer: string): Omit<Joint, 'trims'> | undefined => {
    const more = [...one, { role: 'assistant', content: answer }, { role: 'user', content: 'SECOND QUESTION' }];
    const rendered = template.render(more, { addGenerationPrompt: true });
    const expected = opened + answer + ending;
    if (!rendered.startsWith(expected)) return undefined;
    const [before, rest, ...others] = rendered.slice(expected.length).split('SECOND QUESTION');
    return others.length > 0 || rest === undefined ? undefined : { before: before!, after: rest };
  };
  const written = format.print('PROBE THOUGHT', 'PROBE ACTION', world);
  const joint = around(written);
  const isSame = (other: typeof joint) => other?.before === joint?.before && other?.after === joint?.after;
  const plain = format.print('', 'PROBE ACTION', world);
  const thoughts = [`<think>\nPROBE THOUGHT\n</think>\n\n${plain}`, `<think>PROBE THOUGHT</think>${plain}`];
  const others = [...thoughts, '', 'PROBE ACTION', 'PROBE LINE\n\n'.repeat(200) + written];
  if (!joint || !others.every((answer) => isSame(around(answer)))) return { end, joint: undefined };
  return { end, joint: { ...joint, trims: !isSame(around(` \n${written}\n `)) } };
}
