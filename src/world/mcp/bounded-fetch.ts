/** `fetch` of MCP servers by HTTP: an answer that is longer than a bound fails. */

/** Bytes of the longest answer. */
const MAX_ANSWER_BYTES = 64 * 2 ** 20;

/** Fetches; the body of the answer fails once it has more than 64 MiB. */
export async function fetchBounded(url: string | URL, init?: RequestInit): Promise<Response> {
  const answer = await fetch(url, init);
  if (!answer.body) return answer;
  let bytes = 0;
  const bounded = answer.body.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        bytes += chunk.byteLength;
        if (bytes > MAX_ANSWER_BYTES)
          controller.error(new Error(`an answer of more than ${MAX_ANSWER_BYTES / 2 ** 20} MiB`));
        else controller.enqueue(chunk);
      },
    }),
  );
  const { status, statusText, headers } = answer;
  const copy = new Response(bounded, { status, statusText, headers });
  Object.defineProperty(copy, 'url', { value: answer.url });
  return copy;
}
