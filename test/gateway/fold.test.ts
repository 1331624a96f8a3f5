/** The fold of recorded replies: it reads each of them, and notices what is missing. */
import { describe, expect, it } from 'vitest';
import { foldReply } from './fold.ts';
import { listWholeReplies, readRecordings, whyNoRecordings } from './recordings.ts';

if (whyNoRecordings !== undefined) console.log(`skipped: ${whyNoRecordings}`);

describe.skipIf(whyNoRecordings !== undefined)('the fold of recorded replies', () => {
  const replies = listWholeReplies(readRecordings());

  it('reads every one', () => {
    const seen = new Map<string, number>();
    for (const { where, dialect, text, contentType, isStream } of replies) {
      expect(contentType.startsWith(isStream ? 'text/event-stream' : 'application/json'), where).toBe(true);
      const { reply, model, ids } = foldReply(dialect, text, contentType);
      expect(model, where).toBe('policy');
      expect(ids.reply, where).toMatch(/^(chatcmpl-|resp_|msg_)\d+$/);
      expect(reply.content !== '' || reply.calls.length > 0 || where.includes('-empty'), where).toBe(true);
      const kind = `${dialect} ${reply.finish}`;
      seen.set(kind, (seen.get(kind) ?? 0) + 1);
    }
    expect(replies.length).toBeGreaterThan(590);
    expect([...seen.keys()].sort()).toEqual(
      expect.arrayContaining(['chat calls', 'chat length', 'chat stop', 'messages calls', 'responses length']),
    );
  });
  it('notices a stream without one of its events', () => {
    const free =
      /"type":"(ping|response\.(in_progress|output_text\.done|content_part|reasoning_summary_part|.*arguments\.done))/;
    let noticed = 0;
    for (const { dialect, exchange, text, contentType, where } of replies
      .filter(({ isStream }) => isStream)
      .slice(0, 40)) {
      const chunks = exchange.reply.chunks!;
      const whole = foldReply(dialect, text, contentType);
      for (let i = 0; i < chunks.length; i++) {
        if (free.test(chunks[i]!) || chunks[i]!.includes(`"partial_json":""`)) continue;
        const rest = chunks.filter((_, at) => at !== i).join('');
        let folded: unknown;
        try {
          folded = foldReply(dialect, rest, contentType);
        } catch {}
        // One delta of a text less makes another text.
        expect(folded, `${where}: without ${chunks[i]}`).not.toEqual(whole);
        noticed++;
      }
    }
    expect(noticed).toBeGreaterThan(200);
  });
});
