/** Logical forms of questions, and their wording. */
import { COMPARED, relation, SHARED } from './schema.ts';

/** A thing as a question names it. */
export interface Reference {
  /** A name or alias. */
  readonly name: string;
  /** Word before it that distinguishes namesakes: a person's job. */
  readonly qualifier?: string;
}

/** Question as a query over relations. */
export type Form =
  /** The end of a chain of relations from a thing. */
  | { readonly type: 'chain'; readonly start: Reference; readonly path: readonly string[] }
  /** Comparison of two things: the one for which the end of the chain is least. */
  | { readonly type: 'first'; readonly a: Reference; readonly b: Reference; readonly path: readonly string[] }
  /** Question of yes or no: two things share the value of a relation. */
  | { readonly type: 'same'; readonly a: Reference; readonly b: Reference; readonly path: readonly string[] };

/** Relations followed from each thing. */
export function hopsOf(form: Form): number {
  return form.type === 'chain' ? form.path.length : 2 * form.path.length;
}

/** Picks one of the first `n` wordings at each place. */
export type Pick = (n: number) => number;

/**
 * A question in words.
 * @param pick chooses among the plain wordings
 * @param paraphrased whether the third wordings are taken instead
 */
export function wordForm(form: Form, pick: Pick, paraphrased: boolean): string {
  if (form.type === 'chain') {
    const { start, path } = form;
    let of = wordReference(start);
    for (const name of path.slice(0, -1)) {
      of = put(relation(name).nouns[paraphrased ? 2 : pick(2)]!, '{X}', of);
    }
    const last = path.at(-1)!;
    if (path.length === 2 && path[0] === 'father' && last === 'father' && !paraphrased && pick(2) === 0) {
      return `Who is the paternal grandfather of ${wordReference(start)}?`;
    }
    return `${put(relation(last).asks[paraphrased ? 2 : pick(2)]!, '{X}', of)}?`;
  }
  const [a, b] = [wordReference(form.a), wordReference(form.b)];
  const last = form.path.at(-1)!;
  if (form.type === 'same') return `${put(put(SHARED[last]!, '{A}', a), '{B}', b)}?`;
  if (form.path.length === 1) return `${COMPARED[last]}, ${a} or ${b}?`;
  const noun = relation(form.path[0]!).nouns[pick(2)]!;
  return `Of ${put(noun, '{X}', a)} and ${put(noun, '{X}', b)}, whose ${AFTER[last]}, that of ${a} or ${b}?`;
}

/** Ends of a question that compares what two chains lead to. */
const AFTER: Readonly<Record<string, string>> = {
  birthyear: 'birth came first',
  release: 'release came first',
  founding: 'founding came first',
  opening: 'opening came first',
};

function wordReference({ name, qualifier }: Reference): string {
  return qualifier === undefined ? name : `the ${qualifier} ${name}`;
}

function put(wording: string, place: string, text: string): string {
  return wording.replace(place, () => text);
}
