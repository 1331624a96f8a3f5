/**
 * Solver of logical forms by brute force over the knowledge: it starts from names, not from the thing a question was
 * made about, and follows every bearer of the name. It shares nothing with the maker of questions but the form.
 */
import { normalize } from '../scoring.ts';
import type { Form, Reference } from './form.ts';
import { type Knowledge, nameOf, type Thing, type Value } from './knowledge.ts';

/** Distinct answers of a form, normalised, with one name each; none where it asks for what is not known. */
export function solve(knowledge: Knowledge, form: Form): ReadonlyMap<string, string> {
  const answers = new Map<string, string>();
  const add = (answer: string) => answers.set(normalize(answer), answer);
  if (form.type === 'chain') {
    for (const value of follow(knowledge, form.start, form.path)) add(nameOf(knowledge, value));
    return answers;
  }
  for (const a of follow(knowledge, form.a, form.path)) {
    for (const b of follow(knowledge, form.b, form.path)) {
      if (form.type === 'same') add(isSame(a, b) ? 'yes' : 'no');
      else if ('text' in a && 'text' in b && a.text !== b.text) add((+a.text < +b.text ? form.a : form.b).name);
      else return new Map(); // a draw, or nothing that can be compared
    }
  }
  return answers;
}

/** Things that bear a name, of the job if one is named. */
export function bearers({ named }: Knowledge, { name, qualifier }: Reference): Thing[] {
  return (named.get(name) ?? []).filter((thing) => {
    const job = thing.facts.get('job');
    return qualifier === undefined || (job !== undefined && 'text' in job && job.text === qualifier);
  });
}

function follow(knowledge: Knowledge, start: Reference, path: readonly string[]): Value[] {
  let reached: Value[] = bearers(knowledge, start).map(({ id }) => ({ thing: id }));
  for (const name of path) {
    reached = reached.flatMap((value) => {
      const next = 'thing' in value ? knowledge.things[value.thing]!.facts.get(name) : undefined;
      return next ? [next] : [];
    });
  }
  return reached;
}

function isSame(a: Value, b: Value): boolean {
  return 'thing' in a ? 'thing' in b && a.thing === b.thing : 'text' in b && a.text === b.text;
}
