/**
 * Compaction of a conversation, as clients of the responses dialect ask for it. Nothing is left out: the item that they send
 * from then on names the response whose context it stands for.
 */
import { describeValue } from '../core/describe-value.ts';
import { type HttpAnswer, json } from '../http/app.ts';
import { RefusedCall, type StoredItems } from './dialects/dialect.ts';
import { DIALECTS } from './dialects/dialects.ts';
import { errorOf, parseRecord } from './episode.ts';

/** Tokens that a compaction took: no model is asked. */
const USAGE = {
  input_tokens: 0,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens: 0,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 0,
};

/**
 * Answers `POST /v1/responses/compact`: the messages of the user, and the item that stands for the whole context.
 * @param n number or text that makes the ids of this answer unique
 * @returns 404 for a response that is not kept
 */
export function compactHistory(
  body: Buffer,
  items: StoredItems,
  { n, unixMs }: { readonly n: number | string; readonly unixMs: number },
): HttpAnswer {
  try {
    const { previous_response_id: id } = parseRecord(body);
    const context = typeof id === 'string' ? items.response(id) : undefined;
    if (!context) throw new RefusedCall(404, `there is no response ${describeValue(id)}`, 'previous_response_id');
    const users = context.filter(({ role }) => role === 'user');
    const output = [
      ...users.map(({ content }, i) => ({
        id: `msg_u${n}_${i}`,
        type: 'message',
        role: 'user',
        status: 'completed',
        content: [{ type: 'input_text', text: content }],
      })),
      { id: `cmp_${n}`, type: 'compaction', encrypted_content: id },
    ];
    const created_at = Math.floor(unixMs / 1000);
    return json({ id: `resp_${n}`, object: 'response.compaction', created_at, output, usage: USAGE });
  } catch (thrown) {
    return errorOf(DIALECTS.responses, thrown);
  }
}
