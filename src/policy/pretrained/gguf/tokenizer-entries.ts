/**
 * Tokenizer and chat template of a model folder as a GGUF file has them. The reverse of tokenizer.ts; what is made is read
 * back by that, and a tokenizer that would come back as another one is refused.
 */
import { describeValue } from '../../../core/describe-value.ts';
import { UserError } from '../../../core/errors.ts';
import { isRecord } from '../../../core/record.ts';
import { templateTokens } from '../../../text/templates/chat-template.ts';
import { type Json, openText, readJson } from '../../../text/templates/model-text.ts';
import { type GgufEntries, type GgufEntry, valuesOf } from './header.ts';
import { CONTROL, readTokenizer, USER_DEFINED, WORD_RULES } from './tokenizer.ts';

/** Kinds of tokens in `tokenizer.ggml.token_type`, besides those that are read. */
const NORMAL = 1;
const UNUSED = 5;
const BYTE = 6;

/** Token as `tokenizer.json` adds it. */
interface AddedToken {
  readonly id: number;
  readonly content: string;
  readonly special?: boolean;
  readonly single_word?: boolean;
  readonly lstrip?: boolean;
  readonly rstrip?: boolean;
}

/** Text of a model, as entries. */
export interface TokenizerEntries {
  readonly entries: GgufEntries;
  /** Ids that end a turn and have no entry: llama.cpp knows three. */
  readonly lostEnds: readonly number[];
}

/**
 * Describes the tokenizer and the template of a folder.
 * @param vocabSize rows of the token table: ids beyond the tokenizer's are named as unused
 * @param endTokens ids that end a turn
 * @throws {UserError} BAD_ARGUMENT for a tokenizer that llama.cpp does not have; BAD_CHECKPOINT for one that cannot be used
 */
export function describeTokenizer(folder: string, vocabSize: number, endTokens: readonly number[]): TokenizerEntries {
  const refuse = (what: string): never => {
    throw new UserError(
      'BAD_ARGUMENT',
      `${folder}: tokenizer.json: ${what}: a GGUF file has no such form; use --to hf`,
    );
  };
  // What cannot be used here is refused by its reader.
  const used = openText(folder).template?.text;
  const json = readJson(folder, 'tokenizer.json');
  const config = readJson(folder, 'tokenizer_config.json');
  const model = isRecord(json.model) ? json.model : refuse('it has no model');
  if (model.type !== undefined && model.type !== 'BPE') refuse(`model.type is ${describeValue(model.type)}`);
  for (const field of ['dropout', 'continuing_subword_prefix', 'end_of_word_suffix']) {
    if (model[field]) refuse(`model.${field} is ${describeValue(model[field])}`);
  }
  const vocab = isRecord(model.vocab) ? (model.vocab as Readonly<Record<string, number>>) : refuse('it has no vocab');
  const merges = ((model.merges ?? []) as readonly (string | readonly [string, string])[]).map((pair) => {
    const parts = typeof pair === 'string' ? pair.split(' ') : pair;
    return parts.length === 2 ? (parts as [string, string]) : refuse(`model.merges has ${describeValue(pair)}`);
  });
  const added = (json.added_tokens ?? []) as readonly AddedToken[];
  const strips = added.find((one) => one.lstrip || one.rstrip || one.single_word);
  if (strips) refuse(`token ${describeValue(strips.content)} takes the spaces beside it, or whole words alone`);
  const tokens: string[] = [];
  const types: number[] = [];
  for (const [content, id] of Object.entries(vocab)) {
    tokens[id] = content;
    types[id] = model.byte_fallback === true && /^<0x[0-9A-F]{2}>$/.test(content) ? BYTE : NORMAL;
  }
  for (const { id, content, special } of added) {
    tokens[id] = content;
    types[id] = special ? CONTROL : USER_DEFINED;
  }
  if (tokens.length > vocabSize) refuse(`it has ${tokens.length} ids, the model's table ${vocabSize}`);
  for (let id = 0; id < vocabSize; id++) {
    tokens[id] ??= `[PAD${id}]`;
    types[id] ??= UNUSED;
  }
  const ids = new Map(tokens.map((content, id) => [content, id]));
  const parts =
    model.byte_fallback === true
      ? sentencePieces(json, merges, tokens, refuse)
      : bytePairs(json, model.ignore_merges === true, merges, refuse);
  const named = templateTokens(config);
  const idOf = (name: string) => ids.get(named[`${name}_token`] as string);
  const eos = idOf('eos');
  const ends = [...new Set([...(eos !== undefined && endTokens.includes(eos) ? [eos] : []), ...endTokens])];
  if (ends.length === 0 && eos !== undefined) ends.push(eos);
  const special: readonly (readonly [name: string, id: number | undefined])[] = [
    ['bos', idOf('bos')],
    ['eos', ends[0]],
    ['eot', ends[1]],
    ['eom', ends[2]],
    ['unknown', idOf('unk')],
    ['padding', idOf('pad')],
  ];
  const entries = new Map<string, GgufEntry>(
    Object.entries({
      ...parts,
      tokens: { type: 'strings', value: tokens },
      token_type: { type: 'i32s', value: types },
      add_bos_token: { type: 'bool', value: beginsWith(json.post_processor, named.bos_token) },
      ...Object.fromEntries(
        special.flatMap(([name, id]) => (id === undefined ? [] : [[`${name}_token_id`, { type: 'u32', value: id }]])),
      ),
    } satisfies Record<string, GgufEntry>).map(([name, entry]) => [`tokenizer.ggml.${name}`, entry]),
  );
  for (const [name, template] of templatesOf(used, config)) entries.set(name, { type: 'string', value: template });
  checkReadBack(folder, entries, merges, refuse);
  return { entries, lostEnds: ends.slice(3) };
}

type Refuse = (what: string) => never;
type Merges = readonly (readonly [string, string])[];
type Parts = Readonly<Record<string, GgufEntry>>;

/** Byte-level pairs: the rule by which words are cut has a name of llama.cpp's. */
function bytePairs(json: Json, ignoresMerges: boolean, merges: Merges, refuse: Refuse): Parts {
  const words = canonical(json.pre_tokenizer);
  const normalizer = canonical(json.normalizer);
  const [pre] =
    Object.entries(WORD_RULES).find(
      ([, rule]) =>
        canonical(rule.preTokenizer) === words &&
        canonical(rule.normalizer) === normalizer &&
        (rule.ignoreMerges ?? false) === ignoresMerges,
    ) ??
    refuse(
      `its normalizer, pre_tokenizer and ignore_merges are those of none of ${Object.keys(WORD_RULES).join(', ')}`,
    );
  return {
    model: { type: 'string', value: 'gpt2' },
    pre: { type: 'string', value: pre },
    merges: { type: 'strings', value: merges.map((pair) => pair.join(' ')) },
  };
}

/** Part of a tokenizer as text that is the same for parts that give the same ids. */
function canonical(part: unknown): string {
  if (!isRecord(part)) return 'none';
  const inner = part.pretokenizers ?? part.normalizers;
  if (part.type === 'Sequence' && Array.isArray(inner)) {
    const parts = inner.map(canonical).filter((one) => one !== 'none');
    return parts.length === 0 ? 'none' : parts.join(' > ');
  }
  // Offsets are places in the text, which no id depends on.
  const defaults = part.type === 'ByteLevel' ? { add_prefix_space: true, use_regex: true } : {};
  const { trim_offsets: _, ...rest }: Record<string, unknown> = { ...defaults, ...part };
  return JSON.stringify(Object.entries(rest).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** SentencePiece's pairs: llama.cpp merges by a score for each token, the sooner the better. */
function sentencePieces(json: Json, merges: Merges, tokens: readonly string[], refuse: Refuse): Parts {
  const normalizers = [json.normalizer].flatMap((one) =>
    isRecord(one) && one.type === 'Sequence' && Array.isArray(one.normalizers) ? one.normalizers : [one],
  );
  const replace = { type: 'Replace', pattern: { String: ' ' }, content: '▁' };
  const asText = JSON.stringify(normalizers.map((one) => canonical(one)));
  const spaces = canonical(replace);
  const prefixes = asText === JSON.stringify([canonical({ type: 'Prepend', prepend: '▁' }), spaces]);
  if (json.pre_tokenizer != null) refuse(`its pre_tokenizer is ${describeValue(json.pre_tokenizer)}`);
  if (!prefixes && asText !== JSON.stringify([spaces])) refuse(`its normalizer is ${describeValue(json.normalizer)}`);
  const ranks = new Map<string, number>();
  for (const [left, right] of merges) if (!ranks.has(left + right)) ranks.set(left + right, ranks.size);
  return {
    model: { type: 'string', value: 'llama' },
    pre: { type: 'string', value: 'default' },
    scores: { type: 'f32s', value: tokens.map((token) => -(ranks.get(token) ?? ranks.size)) },
    add_space_prefix: { type: 'bool', value: prefixes },
  };
}

/** True where a post-processor puts the first token of all before a text. */
function beginsWith(processor: unknown, bos: unknown): boolean {
  if (!isRecord(processor) || typeof bos !== 'string') return false;
  if (Array.isArray(processor.processors)) return processor.processors.some((one) => beginsWith(one, bos));
  const [first] = Array.isArray(processor.single) ? processor.single : [];
  return isRecord(first) && isRecord(first.SpecialToken) && first.SpecialToken.id === bos;
}

/** Chat templates by the names of their entries: the one that is used here, and named ones beside it. */
function templatesOf(used: string | undefined, config: Json): readonly (readonly [name: string, template: string])[] {
  const list = Array.isArray(config.chat_template) ? config.chat_template : [];
  const named = list.filter(({ name, template }) => name !== 'default' && typeof template === 'string');
  return [
    ...(used === undefined ? [] : [['tokenizer.chat_template', used] as const]),
    ...named.map(({ name, template }) => [`tokenizer.chat_template.${name}`, template] as const),
  ];
}

/** Reads the entries back. Merges follow from the scores of SentencePiece's tokens, so they may come back as others. */
function checkReadBack(folder: string, entries: GgufEntries, merges: Merges, refuse: Refuse): void {
  const { tokenizer } = readTokenizer({ file: folder, metadata: valuesOf(entries) });
  const found = (tokenizer.model as { readonly merges: Merges }).merges;
  const at = merges.findIndex((pair, i) => pair.join(' ') !== found[i]?.join(' '));
  if (at >= 0 || found.length !== merges.length) {
    refuse(`its merges do not follow from an order of its tokens (merge ${at < 0 ? merges.length : at})`);
  }
}
