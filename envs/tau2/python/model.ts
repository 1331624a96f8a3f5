/**
 * Typed models, as pydantic checks them where the original constructs one: on load, and where a tool makes an address, a payment or
 * a reservation. What a tool assigns to a field later is not checked, there as here.
 *
 * Lax mode: an int takes `2.0` and `"2"`, a float takes ints and numbers in texts, a text takes texts only. Unknown keys are ignored,
 * or refused where the model forbids them.
 */
import { PyError } from './errors.ts';
import { repr } from './format.ts';
import { freeze, isDict, Model, type PyDict, type PyValue, Table, typeName } from './values.ts';

/** Version that the texts of errors name. */
const PYDANTIC = '2.14';
/** Characters of an input that an error shows. */
const SHOWN = 50;

/** Problem of one field. */
export interface Problem {
  /** Path: names, keys and indices. */
  readonly at: readonly string[];
  /** Kind of pydantic, e.g. `string_type`. */
  readonly type: string;
  readonly message: string;
  readonly input: PyValue;
}

/** Kind of a field: converts a value, or reports problems and returns null. */
export type Kind = (value: PyValue, at: readonly string[], report: (problem: Problem) => void) => PyValue;

/** Field of a model; one without a default is required. */
export interface Field {
  readonly kind: Kind;
  readonly default?: (() => PyValue) | undefined;
}

/** Model: its name and its fields in the order of their declaration. */
export class ModelType {
  readonly title: string;
  readonly fields: ReadonlyMap<string, Field>;
  readonly #forbidsExtra: boolean;

  /** @param fields those of base classes first; a bare kind is a required field */
  constructor(title: string, fields: Readonly<Record<string, Kind | Field>>, extra: 'ignore' | 'forbid' = 'ignore') {
    this.title = title;
    this.fields = new Map(
      Object.entries(fields).map(([name, field]) => [name, typeof field === 'function' ? { kind: field } : field]),
    );
    this.#forbidsExtra = extra === 'forbid';
  }

  /** Makes an instance of a dictionary. @throws {PyError} `ValidationError` with pydantic's text */
  create<T extends Model = Model>(value: PyValue): T {
    const problems: Problem[] = [];
    const made = this.read(value, [], (problem) => problems.push(problem));
    if (problems.length > 0) throw new PyError('ValidationError', formatProblems(this.title, problems));
    return made as T;
  }

  /** Makes an instance of keyword arguments. @throws {PyError} */
  of<T extends Model = Model>(values: Readonly<Record<string, PyValue>>): T {
    return this.create<T>(new Map(Object.entries(values)));
  }

  /** Kind of a field that holds this model. */
  readonly read: Kind = (value, at, report) => {
    if (value instanceof Model && Model.typeOf(value) === this) return value;
    if (!isDict(value)) {
      const message = `Input should be a valid dictionary or instance of ${this.title}`;
      report({ at, type: 'model_type', message, input: value });
      return null;
    }
    return this.#fill(value, at, report);
  };

  #fill(value: PyDict, at: readonly string[], report: (problem: Problem) => void): Model {
    const made = new Model(this);
    for (const [name, { kind, default: byDefault }] of this.fields) {
      const given = value.get(name);
      if (given !== undefined) Reflect.set(made, name, kind(given, [...at, name], report));
      else if (byDefault) Reflect.set(made, name, byDefault());
      else report({ at: [...at, name], type: 'missing', message: 'Field required', input: value });
    }
    if (!this.#forbidsExtra) return made;
    for (const [key, one] of value) {
      if (this.fields.has(key)) continue;
      report({ at: [...at, key], type: 'extra_forbidden', message: 'Extra inputs are not permitted', input: one });
    }
    return made;
  }
}

/** Text of a `ValidationError`. */
function formatProblems(title: string, problems: readonly Problem[]): string {
  const lines = problems.map(({ at, type, message, input }) => {
    const facts = `[type=${type}, input_value=${showInput(input)}, input_type=${typeName(input)}]`;
    const place = at.length > 0 ? `${at.join('.')}\n` : '';
    return `${place}  ${message} ${facts}\n    For further information visit https://errors.pydantic.dev/${PYDANTIC}/v/${type}`;
  });
  const count = `${problems.length} validation error${problems.length === 1 ? '' : 's'}`;
  return [`${count} for ${title}`, ...lines].join('\n');
}

function showInput(input: PyValue): string {
  const text = [...repr(input)];
  return text.length > SHOWN ? `${text.slice(0, 25).join('')}...${text.slice(-24).join('')}` : text.join('');
}

/** Text. */
export const text: Kind = (value, at, report) => {
  if (typeof value === 'string') return value;
  report({ at, type: 'string_type', message: 'Input should be a valid string', input: value });
  return null;
};

const INTEGER = 'Input should be a valid integer';

/** Whole number. */
export const int: Kind = (value, at, report) => {
  if (typeof value === 'bigint') return value;
  if (typeof value === 'boolean') return BigInt(value);
  if (typeof value === 'number') {
    const isWhole = Number.isInteger(value);
    if (isWhole && Math.abs(value) < 2 ** 63) return BigInt(value);
    const [type, message] = isWhole
      ? ['int_parsing_size', 'Unable to parse input string as an integer, exceeded maximum size']
      : Number.isFinite(value)
        ? ['int_from_float', `${INTEGER}, got a number with a fractional part`]
        : ['finite_number', 'Input should be a finite number'];
    report({ at, type, message, input: value });
  } else if (typeof value === 'string') {
    const digits = /^\s*([+-]?\d+(?:_\d+)*)(?:\.0*)?\s*$/.exec(value)?.[1]?.replaceAll('_', '');
    if (digits !== undefined) return BigInt(digits.replace('+', ''));
    const message = `${INTEGER}, unable to parse string as an integer`;
    report({ at, type: 'int_parsing', message, input: value });
  } else report({ at, type: 'int_type', message: INTEGER, input: value });
  return null;
};

const NUMBER = 'Input should be a valid number';

const DIGITS = String.raw`\d+(?:_\d+)*`;
const FLOAT = new RegExp(`^[+-]?(?:${DIGITS}(?:\\.(?:${DIGITS})?)?|\\.${DIGITS})(?:e[+-]?${DIGITS})?$`);

/** Float. */
export const float: Kind = (value, at, report) => {
  if (typeof value === 'number') return value;
  if (typeof value === 'bigint' || typeof value === 'boolean') return Number(value);
  if (typeof value === 'string') {
    const word = value.trim().toLowerCase();
    if (FLOAT.test(word)) return Number(word.replaceAll('_', ''));
    const special = /^([+-]?)(inf|infinity|nan)$/.exec(word);
    if (special) return special[2] === 'nan' ? Number.NaN : Number(`${special[1]}Infinity`);
    const message = `${NUMBER}, unable to parse string as a number`;
    report({ at, type: 'float_parsing', message, input: value });
  } else report({ at, type: 'float_type', message: NUMBER, input: value });
  return null;
};

const BOOLEAN_WORDS = new Map<string, boolean>([
  ...['1', 'true', 't', 'yes', 'y', 'on'].map((word) => [word, true] as const),
  ...['0', 'false', 'f', 'no', 'n', 'off'].map((word) => [word, false] as const),
]);

/** Boolean. */
export const bool: Kind = (value, at, report) => {
  if (typeof value === 'boolean') return value;
  if (value === 0n || value === 0 || value === 1n || value === 1) return Number(value) === 1;
  const word = typeof value === 'string' ? BOOLEAN_WORDS.get(value.toLowerCase()) : undefined;
  if (word !== undefined) return word;
  const isText = typeof value === 'string' || typeof value === 'bigint';
  const message = 'Input should be a valid boolean';
  if (isText) report({ at, type: 'bool_parsing', message: `${message}, unable to interpret input`, input: value });
  else report({ at, type: 'bool_type', message, input: value });
  return null;
};

/** One of some texts. @param type pydantic's name: that of a `Literal`, or `enum` */
export function literal(choices: readonly string[], type: 'literal_error' | 'enum' = 'literal_error'): Kind {
  const quoted = choices.map((choice) => `'${choice}'`);
  const last = quoted.at(-1)!;
  const listed = quoted.length === 1 ? last : `${quoted.slice(0, -1).join(', ')} or ${last}`;
  return (value, at, report) => {
    if (typeof value === 'string' && choices.includes(value)) return value;
    report({ at, type, message: `Input should be ${listed}`, input: value });
    return null;
  };
}

/** A kind, or None; None where the field is absent. */
export function optional(kind: Kind): Field & { readonly kind: Kind } {
  return { kind: orNone(kind), default: () => null };
}

/** A kind, or None. */
export function orNone(kind: Kind): Kind {
  return (value, at, report) => (value === null ? null : kind(value, at, report));
}

/** A field with a default. */
export function withDefault(kind: Kind, make: () => PyValue): Field {
  return { kind, default: make };
}

/** List of a kind. */
export function listOf(kind: Kind): Kind {
  return (value, at, report) => {
    if (Array.isArray(value)) return value.map((one, i) => kind(one, [...at, String(i)], report));
    report({ at, type: 'list_type', message: 'Input should be a valid list', input: value });
    return null;
  };
}

/** Dictionary with text keys. */
export function dictOf(kind: Kind): Kind {
  return (value, at, report) => {
    if (isDict(value)) {
      return new Map(Array.from(value, ([key, one]) => [key, kind(one, [...at, key], report)]));
    }
    report({ at, type: 'dict_type', message: 'Input should be a valid dictionary', input: value });
    return null;
  };
}

/** Dictionary whose rows episodes share, of a table of a database: the rows are frozen. */
export function tableOf(kind: Kind): Kind {
  const read = dictOf(kind);
  return (value, at, report) => {
    if (value instanceof Table) return value;
    const rows = read(value, at, report);
    return rows instanceof Map ? new Table<PyValue>(freeze(rows)) : rows;
  };
}

/**
 * One of several models, told apart by a literal field: the one whose literal the input has.
 * @param tag field, e.g. `source`
 */
export function oneOf(tag: string, models: Readonly<Record<string, ModelType>>): Kind {
  const kinds = new Map(Object.entries(models));
  const [first] = kinds.values();
  return (value, at, report) => {
    const isTagged = typeof value === 'object' && value !== null && !Array.isArray(value);
    const given = !isTagged ? undefined : isDict(value) ? value.get(tag) : (Reflect.get(value, tag) as PyValue);
    return ((typeof given === 'string' ? kinds.get(given) : undefined) ?? first!).read(value, at, report);
  };
}

/** Any value, as it is. */
export const anything: Kind = (value) => value;
