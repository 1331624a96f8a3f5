import fc from 'fast-check';
import { expect, it } from 'vitest';
import { excerpt } from '../../src/remote/http-client.ts';

it('quotes a server on one line, without what a terminal would obey', () => {
  expect(excerpt('<html>\n  <h1>\u001b[31mError\u0007</h1>\r\n', 300)).toBe('<html> <h1> [31mError </h1>');
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 40 }), fc.nat(30), (text, length) => {
      const quoted = excerpt(text, length);
      expect(quoted.length).toBeLessThanOrEqual(length);
      expect(quoted).not.toMatch(/\p{Cc}|\p{Zl}|\p{Zp}/u);
    }),
  );
});
