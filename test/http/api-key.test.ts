/** Keys that no header can hold are refused by the name of their variable, without their value. */
import { afterEach, expect, it } from 'vitest';
import { readApiKey } from '../../src/http/api-key.ts';

afterEach(() => void delete process.env.TEST_API_KEY);

it.each(['sk-abc\ndef', 'sk-abc\r', 'sk-äbc', 'sk-abc\u2028', 'sk-\tabc', '\ud83d-key'])('refuses %j', (key) => {
  process.env.TEST_API_KEY = key;
  expect(() => readApiKey('TEST_API_KEY')).toThrow(
    expect.objectContaining({
      code: 'BAD_CONFIG',
      message: expect.stringMatching(/^TEST_API_KEY: expected a key that an HTTP header/),
    }),
  );
  expect(() => readApiKey('TEST_API_KEY')).not.toThrow(/abc/);
});

it('reads any other, and none', () => {
  for (const key of ['sk-proj-abc_1.2', 'two words', '~!@#$%']) {
    process.env.TEST_API_KEY = key;
    expect(readApiKey('TEST_API_KEY')).toBe(key);
  }
  process.env.TEST_API_KEY = '';
  expect(readApiKey('TEST_API_KEY')).toBeUndefined();
  expect(readApiKey('TEST_API_KEY_ABSENT')).toBeUndefined();
});
