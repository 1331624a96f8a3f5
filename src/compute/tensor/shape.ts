/**
 * Shapes whose sizes may be symbols. A symbolic dimension is a polynomial in its symbols with integer coefficients,
 * written canonically, so that equal sizes are equal strings: `8*G*K`, `P+T`, `T-1`. One program then serves every
 * batch, sequence length and cache length.
 */
import { ShapeError } from '../../core/errors.ts';

/** Dimension: a non-negative integer, or a canonical symbolic size such as 'N', '8*G*K' or 'P+T'. */
export type Dim = number | string;
export type Shape = readonly Dim[];

/** Value of each symbol in one run. */
export type Bindings = ReadonlyMap<string, number>;

/** Monomial ('' is 1, 'G*K' with symbols sorted) to its coefficient, never 0. */
export type Polynomial = ReadonlyMap<string, number>;

const TERM = /([+-]?)([^+-]+)/g;
const SYMBOL = /^[A-Za-z_]\w*$/;

/** Terms of a dimension. @throws {ShapeError} if it is neither a non-negative integer nor sums of products of symbols */
export function terms(dim: Dim): Polynomial {
  const sum = new Map<string, number>();
  if (typeof dim === 'number') {
    if (!Number.isSafeInteger(dim) || dim < 0)
      throw new ShapeError(`a dimension must be a size or a symbol, got ${dim}`);
    return accumulate(sum, '', dim);
  }
  if (dim.replace(TERM, '') !== '' || dim === '')
    throw new ShapeError(`a dimension must be a size or a symbol, got '${dim}'`);
  for (const [, sign, product] of dim.matchAll(TERM)) {
    let coefficient = sign === '-' ? -1 : 1;
    const symbols: string[] = [];
    for (const factor of product!.split('*')) {
      if (/^\d+$/.test(factor)) coefficient *= Number(factor);
      else if (SYMBOL.test(factor)) symbols.push(factor);
      else throw new ShapeError(`a dimension must be a size or a symbol, got '${dim}'`);
    }
    accumulate(sum, symbols.sort().join('*'), coefficient);
  }
  return sum;
}

/** Canonical form of a dimension: `canonical('K*8*G')` is '8*G*K'. */
export function canonical(dim: Dim): Dim {
  return typeof dim === 'number' && Number.isSafeInteger(dim) && dim >= 0 ? dim : formatPolynomial(terms(dim));
}

/** Canonical product: `times('G', 8)` is '8*G'. */
export function times(...dims: Dim[]): Dim {
  let product: Polynomial = new Map([['', 1]]);
  for (const dim of dims) {
    const next = new Map<string, number>();
    for (const [m, c] of terms(dim)) for (const [n, d] of product) accumulate(next, join(m, n), c * d);
    product = next;
  }
  return formatPolynomial(product);
}

/** Canonical sum: `plus('P', 'T')` is 'P+T'. */
export function plus(...dims: Dim[]): Dim {
  const sum = new Map<string, number>();
  for (const dim of dims) for (const [m, c] of terms(dim)) accumulate(sum, m, c);
  return formatPolynomial(sum);
}

/** Canonical difference: `minus('P+T', 'P')` is 'T'. @throws {ShapeError} if it is a negative number */
export function minus(a: Dim, b: Dim): Dim {
  const sum = new Map(terms(a));
  for (const [m, c] of terms(b)) accumulate(sum, m, -c);
  return formatPolynomial(sum);
}

/** Number of elements of a shape. */
export function sizeOf(shape: Shape): Dim {
  return times(...shape);
}

/** Value of a dimension in one run. @throws {ShapeError} if a symbol is unbound */
export function evaluate(dim: Dim, bindings: Bindings): number {
  if (typeof dim === 'number') return dim;
  const bound = bindings.get(dim);
  if (bound !== undefined) return bound;
  let sum = 0;
  for (const [monomial, coefficient] of terms(dim)) {
    let product = coefficient;
    for (const symbol of monomial === '' ? [] : monomial.split('*')) {
      const value = bindings.get(symbol);
      if (value === undefined)
        throw new ShapeError(`no input of the graph gives the size of '${symbol}' (needed for '${dim}')`);
      product *= value;
    }
    sum += product;
  }
  return sum;
}

/** `{ symbol: 'G', multiple: 8 }` for '8*G': the dimensions from which a symbol's value can be read; else undefined. */
export function multipleOf(dim: Dim): { readonly symbol: string; readonly multiple: number } | undefined {
  if (typeof dim === 'number') return undefined;
  const [term, ...others] = terms(dim);
  if (term === undefined || others.length > 0 || !SYMBOL.test(term[0]) || term[1] < 1) return undefined;
  return { symbol: term[0], multiple: term[1] };
}

export function equalShapes(a: Shape, b: Shape): boolean {
  return a.length === b.length && a.every((dim, i) => dim === b[i]);
}

/**
 * Broadcasts shapes as numpy does; symbolic sizes meet only their equals or a literal 1. Undefined if the shapes do not
 * fit.
 */
export function broadcastShapes(a: Shape, b: Shape): Shape | undefined {
  const rank = Math.max(a.length, b.length);
  const out: Dim[] = [];
  for (let i = 0; i < rank; i++) {
    const x = a[a.length - rank + i] ?? 1;
    const y = b[b.length - rank + i] ?? 1;
    if (x !== y && x !== 1 && y !== 1) return undefined;
    out.push(x === 1 ? y : x);
  }
  return out;
}

function accumulate(sum: Map<string, number>, monomial: string, coefficient: number): Polynomial {
  const total = (sum.get(monomial) ?? 0) + coefficient;
  if (total === 0) sum.delete(monomial);
  else sum.set(monomial, total);
  return sum;
}

function join(m: string, n: string): string {
  return m === '' ? n : n === '' ? m : [...m.split('*'), ...n.split('*')].sort().join('*');
}

/**
 * Writes a polynomial: symbols in alphabetical order, the plain number last, so that equal polynomials are equal
 * strings.
 */
function formatPolynomial(polynomial: Polynomial): Dim {
  const monomials = [...polynomial.keys()].filter((m) => m !== '').sort();
  const rest = polynomial.get('') ?? 0;
  if (monomials.length === 0) {
    if (rest < 0) throw new ShapeError(`a dimension must not be negative, got ${rest}`);
    return rest;
  }
  let text = '';
  for (const m of monomials) {
    const c = polynomial.get(m)!;
    text += `${c < 0 ? '-' : text === '' ? '' : '+'}${Math.abs(c) === 1 ? '' : `${Math.abs(c)}*`}${m}`;
  }
  return rest === 0 ? text : `${text}${rest < 0 ? '-' : '+'}${Math.abs(rest)}`;
}
