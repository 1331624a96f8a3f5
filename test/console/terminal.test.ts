/** The writer of terminal text: what is not ours is made printable, bounded and rid of secrets, whatever it is. */
import { PassThrough } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TerminalWriter } from '../../src/console/terminal.ts';
import { span } from '../../src/console/text.ts';
import { messageOf } from '../../src/core/errors.ts';
import { printable, printableJson, printableLines, shorten } from '../../src/core/printable.ts';
import { readSecret, redact } from '../../src/core/secrets.ts';

/** Everything a terminal would obey or hide: C0, DEL, C1, bidi, zero width, tags, lone surrogates, separators. */
const OBEYED =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be left
  /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\u{e0001}-\u{e007f}]|\p{Cs}/u;

function writer(most?: number, columns?: number) {
  const stream = Object.assign(
    new PassThrough({ decodeStrings: false }),
    columns === undefined ? {} : { isTTY: true, columns },
  );
  let text = '';
  stream.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  return { writer: new TerminalWriter(stream, most), stream, text: () => text };
}

const hostile = fc
  .array(
    fc.oneof(
      fc.string({ unit: 'binary', maxLength: 20 }),
      fc.constantFrom(
        '\x1b[2J',
        '\x1b]0;title\x07',
        '\x9b31m',
        '\u202etxt.exe',
        '\u2066',
        '\r',
        '\b\b\b',
        '\ud800',
        '\u{e0041}',
        '\t',
      ),
    ),
    { maxLength: 12 },
  )
  .map((parts) => parts.join(''));

describe('text that is not ours', () => {
  it('keeps nothing that a terminal would obey, in a line, in lines, in a span and in JSON', () => {
    expect(OBEYED.test('\x1b[31m') && OBEYED.test('\u202e')).toBe(true);
    fc.assert(
      fc.property(hostile, (text) => {
        expect(printable(text)).not.toMatch(OBEYED);
        expect(printable(text)).not.toContain('\n');
        expect(printableLines(text)).not.toMatch(OBEYED);
        expect(span(text).text).not.toMatch(OBEYED);
        const json = printableJson({ [text]: text });
        expect(json).not.toMatch(OBEYED);
        expect(JSON.parse(json)).toEqual({ [text]: text });
      }),
      { numRuns: 500, examples: [['\u2065']] }, // Unassigned, yet nothing is shown.
    );
  });
  it('is left as it is where it is plain', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'aZ09 äß漢🙂\n'.match(/./gsu)!) }), (text) => {
        expect(printableLines(text)).toBe(text);
      }),
    );
  });
  it('is bounded, and shows how much is missing', () => {
    expect(shorten('x'.repeat(100), 100)).toHaveLength(100);
    expect(shorten(`a${'x'.repeat(20_000_000)}z`, 4000)).toMatch(/^ax{2999} … 19996002 characters left out … x{999}z$/);
  });
});

describe('the writer', () => {
  it('writes messages of any size and content as bounded printable lines', () => {
    const { writer: terminal, text } = writer(4000);
    terminal.line(`\x1b[2Jerror: ${'x'.repeat(20_000_000)}`);
    expect(text().length).toBeLessThan(4100);
    expect(text()).toMatch(/^�\[2Jerror: x+ … \d+ characters left out … x+\n$/);
  });
  it('strikes out keys and passwords of URLs, in text, JSON and frames', () => {
    const { writer: terminal, text } = writer();
    process.env.TEST_API_KEY = 'sk-123456789';
    process.env.TEST_OTHER_NAME = 'another-secret';
    try {
      expect(readSecret('TEST_OTHER_NAME')).toBe('another-secret');
      terminal.line('the server answered: sk-123456789 is wrong, and so is another-secret');
      terminal.json({ received: 'sk-123456789', url: 'http://me:pass@host/v1' });
      terminal.writeStyled([[span('sk-123456789')]]);
      terminal.screen('\x1b[1;1Hsk-123456789');
      expect(text()).not.toMatch(/sk-123456789|another-secret|pass/);
      expect(text()).toContain('the server answered: [key] is wrong');
      expect(text()).toContain('http://[credentials]@host/v1');
    } finally {
      delete process.env.TEST_API_KEY;
      delete process.env.TEST_OTHER_NAME;
    }
    expect(redact('a word', { HF_TOKEN: 'word' })).toBe('a word'); // too short to be a secret
  });
  it('strikes out a key that a cut would halve, one in JSON or a URL, and a password with an @', () => {
    const { writer: terminal, text } = writer(4000);
    process.env.TEST_API_KEY = 'sk/123"456789';
    try {
      for (let at = 2990; at < 3010; at++) terminal.line(`${'x'.repeat(at)}sk/123"456789${'y'.repeat(4000)}`);
      terminal.line(messageOf(new Error(`${'x'.repeat(3995)}sk/123"456789`)));
      terminal.json({ received: 'sk/123"456789' });
      terminal.line(`Location: http://host/?key=${encodeURIComponent('sk/123"456789')}`);
      terminal.line('http://me:pa@ss@host/v1');
      expect(text()).not.toMatch(/sk|123|456|pa@|ss@/);
      expect(text()).toContain('http://host/?key=[key]');
    } finally {
      delete process.env.TEST_API_KEY;
    }
  });
  it('is through with what only begins like a URL, however long', () => {
    for (const unit of ['a.', '://a', 'http://a:b ', '@', '://']) {
      const long = unit.repeat(500_000);
      expect(redact(long, {})).toBe(long);
    }
  });
  it('goes on silently when its reader has gone', async () => {
    const { writer: terminal, stream } = writer();
    const before = process.exitCode;
    stream.destroy(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }));
    await new Promise((resolve) => stream.on('close', resolve));
    terminal.line('this reaches no reader');
    expect(process.exitCode).toBe(before);
  });
  it('shows a status line on a terminal that does not know its size', () => {
    const { writer: unsized, text } = writer(undefined, 0);
    unsized.status('1 of 2');
    expect(text()).toContain('1 of 2');
  });

  it('redraws a status line on a terminal, takes it away before other words, and shows none in a pipe', () => {
    const pipe = writer();
    pipe.writer.status('1 of 2');
    expect(pipe.text()).toBe('');
    const terminal = writer(4000, 20);
    terminal.writer.status('reading \x1b[31m and more of it');
    expect(terminal.text()).toBe('\r\x1b[2Kreading �[31m and …');
    terminal.writer.line('done');
    expect(terminal.text().endsWith('\r\x1b[2Kdone\n')).toBe(true);
  });
});
