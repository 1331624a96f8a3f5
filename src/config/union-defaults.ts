/**
 * Keys inside a default: `learner.estimator.gamma=0.95` without an `algorithm` means the gamma of the default estimator. A
 * schema's default replaces a value that is absent as a whole; this fills in the kind of one that is given in part.
 */
import { z } from 'zod';
import { isRecord } from '../core/record.ts';

/** Fills in the default's discriminator where a defaulted union is given in part; everything else is left as it is. Pure. */
export function fillUnionDefaults(schema: unknown, raw: unknown): unknown {
  if (!isRecord(raw) && !Array.isArray(raw)) return raw;
  let inner = schema;
  let fallback: unknown;
  while (isWrapper(inner)) {
    if ('defaultValue' in inner.def) fallback ??= inner.def.defaultValue;
    inner = inner.unwrap();
  }
  if (inner instanceof z.ZodArray && Array.isArray(raw)) return raw.map((one) => fillUnionDefaults(inner.element, one));
  if (!isRecord(raw)) return raw;
  if (inner instanceof z.ZodDiscriminatedUnion) {
    const { discriminator } = inner.def;
    const named = isRecord(fallback) && !(discriminator in raw) ? { ...fallback, ...raw } : raw;
    const variant = inner.options.find(
      (option) => option instanceof z.ZodObject && getLiteral(option, discriminator) === named[discriminator],
    );
    return fillUnionDefaults(variant, named);
  }
  if (!(inner instanceof z.ZodObject)) return raw;
  const { shape } = inner;
  return Object.fromEntries(
    Object.entries(raw).map(([key, value]) => [
      key,
      Object.hasOwn(shape, key) ? fillUnionDefaults(shape[key], value) : value,
    ]),
  );
}

/** Schema around another that defines what absence means. */
type Wrapper = z.ZodDefault | z.ZodPrefault | z.ZodOptional | z.ZodExactOptional;

/** Types of a `Wrapper`. */
const WRAPPERS: ReadonlySet<string> = new Set(['default', 'prefault', 'optional']);

/** True for a schema that only defines what absence means. */
export function isWrapper(schema: unknown): schema is Wrapper {
  return schema instanceof z.ZodType && WRAPPERS.has(schema.def.type);
}

/** Gets the value that marks a variant of a union. */
export function getLiteral(variant: z.ZodObject, discriminator: string): unknown {
  const literal = variant.shape[discriminator];
  return literal instanceof z.ZodLiteral ? literal.value : undefined;
}
