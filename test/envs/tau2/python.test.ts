/** Python's values and texts: expected values are what CPython 3.12 and pydantic 2.14 print. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { calculate } from '../../../envs/tau2/python/calculate.ts';
import { bindArguments } from '../../../envs/tau2/python/calls.ts';
import { dumps, formatFixed, repr, roundFloat } from '../../../envs/tau2/python/format.ts';
import { parsePython } from '../../../envs/tau2/python/json.ts';
import * as kind from '../../../envs/tau2/python/model.ts';
import { ModelType } from '../../../envs/tau2/python/model.ts';
import { add, isEqual, multiply, sortItems, subtract } from '../../../envs/tau2/python/operations.ts';
import { cloneValue, freeze, type PyValue, Table } from '../../../envs/tau2/python/values.ts';
import { compareCodePoints, reprFloat } from '../../../src/core/python-text.ts';

/** Message of what a function throws. */
function fault(work: () => unknown): string {
  try {
    return `no error: ${work()}`;
  } catch (thrown) {
    return (thrown as Error).message;
  }
}

describe('numbers', () => {
  it.each([
    [2.675, 2.67],
    [0.125, 0.12],
    [0.375, 0.38],
    [-0.125, -0.12],
    [-0, -0],
    [-0.001, -0],
    [1.005, 1],
    [1e300, 1e300],
  ])('rounds %d to %d', (value, rounded) => expect(roundFloat(value, 2)).toBe(rounded));

  it('computes with a float and an int only where the int fits into a float', () => {
    const huge = 10n ** 400n;
    expect([add(2n, 0.5), subtract(2n, 0.5), multiply(2n, 0.5)]).toEqual([2.5, 1.5, 1]);
    expect(subtract(huge, huge - 1n)).toBe(1n);
    for (const work of [() => add(0.5, huge), () => subtract(huge, 0.5), () => multiply(huge, 0.5)]) {
      expect(fault(work)).toBe('int too large to convert to float');
    }
  });

  it('rounds every float to the nearest hundredth of its exact value, ties to even', () => {
    const exact = (value: number) => {
      // value = m · 2^-60 exactly in this range; compare in integers
      const scaled = BigInt(Math.round(value * 2 ** 40)) * 100n;
      const unit = 1n << 40n;
      const [floor, rest] = [scaled / unit, scaled % unit];
      const up = rest * 2n > unit || (rest * 2n === unit && floor % 2n === 1n);
      return Number(up ? floor + 1n : floor) / 100;
    };
    const dyadic = fc.integer({ min: 0, max: 2 ** 50 }).map((n) => n / 2 ** 40);
    const tie = fc.integer({ min: 0, max: 100_000 }).map((n) => n / 8);
    fc.assert(fc.property(fc.oneof(dyadic, tie), (value) => void expect(roundFloat(value, 2)).toBe(exact(value))));
  });

  it('prints fixed digits', () => {
    expect([formatFixed(4, 2), formatFixed(0.125, 2), formatFixed(-0.125, 2), formatFixed(2.5, 0)]).toEqual([
      '4.00',
      '0.12',
      '-0.12',
      '2',
    ]);
  });
});

describe('JSON', () => {
  it('keeps ints from floats, and the order of keys', () => {
    const text = '{"9": 1, "1": 2.0, "a": [1e2, -0.0, 12345678901234567890, true, null, "\\u00e9📶"]}';
    expect(dumps(parsePython(text))).toBe(
      '{"9": 1, "1": 2.0, "a": [100.0, -0.0, 12345678901234567890, true, null, "\\u00e9\\ud83d\\udcf6"]}',
    );
  });
  it('reads what JSON.parse reads, and refuses what it refuses', () => {
    const plain = (value: PyValue): unknown => JSON.parse(dumps(value));
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value);
        expect(plain(parsePython(text))).toEqual(JSON.parse(text));
      }),
    );
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'{}[]",:\\u1.e- tfn\n') }), (text) => {
        let isJson = true;
        try {
          JSON.parse(text);
        } catch {
          isJson = false;
        }
        if (isJson) parsePython(text);
        else expect(() => parsePython(text)).toThrow(SyntaxError);
      }),
    );
  });
  it('ends at a depth, and mends halves of surrogates', () => {
    expect(() => parsePython('['.repeat(100_000))).toThrow('levels deep');
    expect(parsePython('"\\ud83d"')).toBe('\ufffd');
  });
});

describe('repr', () => {
  it('prints values as Python does', () => {
    const value = parsePython('{"a": [1, 2.0, true, null], "it\'s": "é\\n\\u0007"}');
    expect(repr(value)).toBe(`{'a': [1, 2.0, True, None], "it's": 'é\\n\\x07'}`);
  });
});

describe('calculate', () => {
  it.each([
    ['2 + 2', '4.0'],
    [' 1', '1.0'],
    ['00', '0.0'],
    ['012.5', '12.5'],
    ['2**3**2', '512.0'],
    ['-2**2', '-4.0'],
    ['2**-1', '0.5'],
    ['7//2 - -7//2', '7.0'],
    ['-7.5//2', '-4.0'],
    ['10**400/10**399', '10.0'],
    ['241 - (172 - (4.298))', '73.3'],
    ['0.1+0.2', '0.3'],
    ['-.5 * 0', '-0.0'],
    ['0//-3.5', '-0.0'],
    ['1/3', '0.33'],
  ])('computes %s = %s', (expression, result) => expect(calculate(expression)).toBe(result));

  const zeros = 'leading zeros in decimal integer literals are not permitted; use an 0o prefix for octal integers';
  it.each([
    ['2 3', 'invalid syntax (<string>, line 1)'],
    ['(2 3)', 'invalid syntax. Perhaps you forgot a comma? (<string>, line 1)'],
    ['', 'invalid syntax (<string>, line 0)'],
    ['  ', 'invalid syntax (<string>, line 0)'],
    ['1)', "unmatched ')' (<string>, line 1)"],
    ['(1', "'(' was never closed (<string>, line 1)"],
    ['1.5.5', 'invalid syntax (<string>, line 1)'],
    ['.', 'invalid syntax (<string>, line 1)'],
    ['()()', "'tuple' object is not callable"],
    ['2(3)', "'int' object is not callable"],
    ['5.(2)', "'float' object is not callable"],
    ['(007)', `${zeros} (<string>, line 1)`],
    ['1 01', `${zeros} (<string>, line 1)`],
    ['(1 +)', 'invalid syntax (<string>, line 1)'],
    ['(*+10* -/', 'invalid syntax (<string>, line 1)'],
    ['0 10(3.5- /', 'invalid syntax (<string>, line 1)'],
    ['()5(', "'(' was never closed (<string>, line 1)"],
    ['1(7.7.', "'(' was never closed (<string>, line 1)"],
    ['(*2)', 'cannot use starred expression here (<string>, line 1)'],
    ['10 (*2)', '10 argument after * must be an iterable, not int'],
    ['1 ***2', 'invalid syntax (<string>, line 1)'],
    ['0**-1', '0.0 cannot be raised to a negative power'],
    ['(-8)**.5', "float() argument must be a string or a real number, not 'complex'"],
    ['()', "float() argument must be a string or a real number, not 'tuple'"],
    ['()*2', "float() argument must be a string or a real number, not 'tuple'"],
    ['-()', "bad operand type for unary -: 'tuple'"],
    ['10.**400', "(34, 'Numerical result out of range')"],
    ['1/0', 'division by zero'],
    ['1/0.', 'float division by zero'],
    ['1//0', 'integer division or modulo by zero'],
    ['10**400', 'int too large to convert to float'],
    ['9**9**9', 'int too large to convert to float'],
    ['10**400/1', 'integer division result too large for a float'],
    ['two', 'Invalid characters in expression'],
  ])('refuses %s: %s', (expression, message) => expect(fault(() => calculate(expression))).toBe(message));

  it('agrees with JavaScript where the two mean the same', () => {
    const number = fc.integer({ min: 0, max: 999 }).map((n) => `${n}.5`);
    const { sum } = fc.letrec<{ sum: string; one: string }>((tie) => ({
      one: fc.oneof(
        { depthSize: 'small' },
        number,
        fc.tuple(tie('sum')).map(([inner]) => `(${inner})`),
      ),
      sum: fc
        .array(fc.tuple(fc.constantFrom('+', '-', '*', ' - -'), tie('one')), { minLength: 1, maxLength: 4 })
        .map((parts) => parts.map(([sign, one], i) => (i === 0 ? one : `${sign}${one}`)).join('')),
    }));
    fc.assert(
      fc.property(sum, (expression) => {
        const value = new Function(`return ${expression}`)() as number;
        expect(calculate(expression)).toBe(reprFloat(roundFloat(value, 2)));
      }),
    );
  });
  it('ends for any text of its characters', () => {
    const text = fc.string({ unit: fc.constantFrom(...'0123456789+-*/(). '), maxLength: 30 });
    fc.assert(fc.property(text, (expression) => void expect(typeof fault(() => calculate(expression))).toBe('string')));
    expect(fault(() => calculate('('.repeat(50_000)))).toContain('too many nested parentheses');
    expect(fault(() => calculate('-'.repeat(50_000) + '1'))).toContain('too many nested');
  });
});

describe('arguments', () => {
  const call = (parameters: string, given: Record<string, PyValue>) =>
    bindArguments('T.f', { parameters: parameters.split(' '), defaults: { d: 1n } }, new Map(Object.entries(given)));
  it('binds by name, with defaults', () => expect(call('a b d', { b: 2n, a: null })).toEqual([null, 2n, 1n]));
  it('takes a null that is given for no default', () => expect(call('a d', { a: 1n, d: null })).toEqual([1n, null]));
  it('names what is missing or unexpected', () => {
    expect(fault(() => call('a b d', { a: 1n }))).toBe("T.f() missing 1 required positional argument: 'b'");
    expect(fault(() => call('a b', {}))).toBe("T.f() missing 2 required positional arguments: 'a' and 'b'");
    expect(fault(() => call('a b c', {}))).toBe("T.f() missing 3 required positional arguments: 'a', 'b', and 'c'");
    expect(fault(() => call('a', { x: 1n }))).toBe("T.f() got an unexpected keyword argument 'x'");
  });
});

describe('models', () => {
  const line = new ModelType('Line', { id: kind.text, price: kind.float, count: kind.int }, 'forbid');
  it('converts in lax mode, and prints floats as floats', () => {
    expect(dumps(line.create(parsePython('{"count": "2", "price": 3, "id": "x"}')))).toBe(
      '{"id": "x", "price": 3.0, "count": 2}',
    );
  });
  it("states each problem in pydantic's words", () => {
    const text = fault(() => line.create(parsePython('{"id": 7, "price": "x", "count": 1.5, "more": []}')));
    expect(text.split('\n').filter((row) => !row.startsWith('    '))).toEqual([
      '4 validation errors for Line',
      'id',
      '  Input should be a valid string [type=string_type, input_value=7, input_type=int]',
      'price',
      "  Input should be a valid number, unable to parse string as a number [type=float_parsing, input_value='x', input_type=str]",
      'count',
      '  Input should be a valid integer, got a number with a fractional part [type=int_from_float, input_value=1.5, input_type=float]',
      'more',
      '  Extra inputs are not permitted [type=extra_forbidden, input_value=[], input_type=list]',
    ]);
    expect(text).toContain('    For further information visit https://errors.pydantic.dev/2.14/v/string_type');
  });
  it('reads words as booleans, and no others', () => {
    const flag = new ModelType('Flag', { on: kind.bool });
    expect(['Yes', '0', 1n, 0].map((on) => dumps(flag.of({ on })))).toEqual(
      [true, false, true, false].map((on) => `{"on": ${on}}`),
    );
    for (const on of ['constructor', 'maybe', 2n, null]) {
      expect(fault(() => flag.of({ on }))).toContain('Input should be a valid boolean');
    }
  });
  it('reads floats of texts as Python does, and no int that is too large for one', () => {
    const number = new ModelType('Number', { n: kind.float });
    expect(['1_000', ' 2. ', '.5e1', '-inf'].map((n) => dumps(number.of({ n })))).toEqual(
      ['1000.0', '2.0', '5.0', '-Infinity'].map((n) => `{"n": ${n}}`),
    );
    for (const n of ['', '1__0', '0x1', 'one', '1e']) expect(fault(() => number.of({ n }))).toContain('float_parsing');
    expect(fault(() => new ModelType('Count', { n: kind.int }).of({ n: 1e20 }))).toContain(
      'exceeded maximum size [type=int_parsing_size, input_value=1e+20, input_type=float]',
    );
  });
  it('cuts a long input in its middle', () => {
    const long = new ModelType('Note', { text: kind.int });
    expect(fault(() => long.of({ text: 'a'.repeat(60) }))).toContain(
      `input_value='${'a'.repeat(24)}...${'a'.repeat(23)}', input_type=str`,
    );
  });
});

describe('operations', () => {
  it('compares numbers and booleans by value, dictionaries without order', () => {
    expect(isEqual(1n, 1)).toBe(true);
    expect(isEqual(true, 1n)).toBe(true);
    expect(isEqual('1', 1n)).toBe(false);
    expect(isEqual(parsePython('{"a": 1, "b": [2]}'), parsePython('{"b": [2.0], "a": 1}'))).toBe(true);
  });
  it('sorts by code points, and names two kinds in the order of Python', () => {
    expect(sortItems(['b', 'a', 'B'])).toEqual(['B', 'a', 'b']);
    expect(fault(() => sortItems([1n, 'a']))).toBe("'<' not supported between instances of 'str' and 'int'");
    expect(compareCodePoints('\u{1F600}', '\uffff')).toBeGreaterThan(0);
  });
});

describe('tables', () => {
  it('keep what an episode changes from others, in the order of the file', () => {
    const row = new ModelType('Row', { n: kind.int });
    const shared = new Table<PyValue>(freeze(new Map(['9', '1'].map((id) => [id, row.of({ n: 1n })]))));
    const [ours, other] = [cloneValue(shared), cloneValue(shared)] as [Table, Table];
    Reflect.set(ours.edit('1') as object, 'n', 2n);
    ours.set('5', row.of({ n: 5n }));
    expect(dumps(ours)).toBe('{"9": {"n": 1}, "1": {"n": 2}, "5": {"n": 5}}');
    expect(dumps(other)).toBe('{"9": {"n": 1}, "1": {"n": 1}}');
    expect(() => Object.assign(other.get('1') as object, { n: 3n })).toThrow(TypeError);
  });
});
