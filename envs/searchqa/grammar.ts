/**
 * Tags of the protocol: model output → action, in linear time whatever is written. The first closed
 * `<search>…</search>` or `<answer>…</answer>` decides, wherever it stands and whatever surrounds it; a tag that is
 * opened and never closed is text.
 *
 * @see AgentGym `agentenv_searchqa/env_wrapper.py`, Search-R1 `search_r1/llm_agent/generation.py`: the same regular
 *   expression, which is quadratic on a run of opening tags
 */
import { strip } from '../../src/core/python-text.ts';

/** Tags, in the pairs that a conversation is made of. */
export const TAGS = ['think', 'search', 'information', 'answer'] as const;
/** Tag of an answer that is understood: `think`, `search`, `answer`, … */
export type Tag = (typeof TAGS)[number];

/** Action as it was read; its content without white space around it. */
export interface Command {
  readonly type: 'search' | 'answer';
  readonly content: string;
}

interface Block {
  readonly start: number;
  /** Position behind the closing tag. */
  readonly end: number;
  readonly content: string;
}

/** The first `<tag>` from `from` on that is closed, up to the first closing tag behind it. */
function blockAt(text: string, tag: Tag, from = 0): Block | undefined {
  const start = text.indexOf(`<${tag}>`, from);
  if (start < 0) return undefined;
  const inside = start + tag.length + 2;
  const close = text.indexOf(`</${tag}>`, inside);
  if (close < 0) return undefined;
  return { start, end: close + tag.length + 3, content: text.slice(inside, close) };
}

/** Contents of all blocks of a tag, in order, as `re.findall('<tag>(.*?)</tag>')` finds them. */
export function contentsOf(text: string, tag: Tag): string[] {
  const contents: string[] = [];
  for (let block = blockAt(text, tag); block; block = blockAt(text, tag, block.end)) contents.push(block.content);
  return contents;
}

/** Reads the action out of any string; `undefined` where there is none. */
export function parse(text: string): Command | undefined {
  const search = blockAt(text, 'search');
  const answer = blockAt(text, 'answer');
  if (search && (!answer || search.start < answer.start)) return { type: 'search', content: strip(search.content) };
  return answer && { type: 'answer', content: strip(answer.content) };
}

/** Prints an action; `parse` gives it back unless its content closes the tag itself. */
export function print({ type, content }: Command): string {
  return `<${type}>${content}</${type}>`;
}

/**
 * Cuts the response at the first `</search>`, else to the first `</answer>`, tag included: Search-R1 reads no further.
 */
export function cutAtAction(text: string): string {
  for (const tag of ['</search>', '</answer>']) {
    const at = text.indexOf(tag);
    if (at >= 0) return text.slice(0, at + tag.length);
  }
  return text;
}

/** Text without its closed `<think>…</think>` blocks. */
export function stripThoughts(text: string): string {
  let rest = '';
  let from = 0;
  for (let block = blockAt(text, 'think'); block; block = blockAt(text, 'think', from)) {
    rest += text.slice(from, block.start);
    from = block.end;
  }
  return rest + text.slice(from);
}

/**
 * Answer that a scorer sees: the content of the last answer block.
 * @param min blocks that must be there: 2 in Search-R1, whose prompt holds an example, 1 in AgentGym
 */
export function extractAnswer(text: string, min = 1): string | undefined {
  const answers = contentsOf(text, 'answer');
  return answers.length < min ? undefined : strip(answers.at(-1)!);
}
