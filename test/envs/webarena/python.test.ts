/** Python's text rules, against values that Python prints. */
import { describe, expect, it } from 'vitest';
import { Float, parseQuery, printable, str, urlparse } from '../../../envs/webarena/python.ts';

describe('printable', () => {
  it('without quotes leaves backslashes as they are', () => {
    expect(printable('a\\b\nc\u202e')).toBe('a\\b\\nc\\u202e');
    expect(printable('plain')).toBe('plain');
  });
});

describe('str', () => {
  it.each([
    ['text', 'text'],
    [null, 'None'],
    [undefined, 'None'],
    [true, 'True'],
    [false, 'False'],
    [5, '5'],
    [1e21, '1000000000000000000000'],
    [0.5, '0.5'],
    [1e-5, '1e-05'],
    [1.5e16, '15000000000000000'],
    [['a', 1, null], "['a', 1, None]"],
    [{ a: [true] }, "{'a': [True]}"],
  ])('of %j', (value, expected) => {
    expect(str(value)).toBe(expected);
  });

  it.each([
    [5, '5.0'],
    [1e16, '1e+16'],
    [1e-5, '1e-05'],
    [0.0001, '0.0001'],
    [-0, '-0.0'],
    [Number.NaN, 'nan'],
    [Number.NEGATIVE_INFINITY, '-inf'],
    [123456.789, '123456.789'],
  ])('of the float %d', (value, expected) => {
    expect(str(new Float(value))).toBe(expected);
  });
});

describe('addresses', () => {
  it.each([
    ['http://a.b:80/c/d?e=f#g', { scheme: 'http', netloc: 'a.b:80', path: '/c/d', query: 'e=f' }],
    ['HTTP://A.B', { scheme: 'http', netloc: 'A.B', path: '', query: '' }],
    ['//a.b/c', { scheme: '', netloc: 'a.b', path: '/c', query: '' }],
    ['a.b/c', { scheme: '', netloc: '', path: 'a.b/c', query: '' }],
    ['http://a.b/c;x=1?y', { scheme: 'http', netloc: 'a.b', path: '/c', query: 'y' }],
    ['http://a.b/c;x/d;y', { scheme: 'http', netloc: 'a.b', path: '/c;x/d', query: '' }],
    ['http://a.b?q=1', { scheme: 'http', netloc: 'a.b', path: '', query: 'q=1' }],
    ['', { scheme: '', netloc: '', path: '', query: '' }],
  ])('%j', (url, expected) => {
    expect(urlparse(url)).toEqual(expected);
  });

  it('with half a bracket are refused', () => {
    expect(() => urlparse('http://[::1/')).toThrow('Invalid IPv6 URL');
  });

  it.each([
    ['a=1&a=2&b=3', { a: ['1', '2'], b: ['3'] }],
    ['a=&b', {}],
    ['a=x+y%20z', { a: ['x y z'] }],
    ['a=%C3%A9', { a: ['é'] }],
    ['%61=1', { a: ['1'] }],
    ['a=%zz', { a: ['%zz'] }],
    ['a=1=2', { a: ['1=2'] }],
    ['', {}],
  ])('query %j', (query, expected) => {
    expect(Object.fromEntries(parseQuery(query))).toEqual(expected);
  });
});
