/**
 * Recorded results of a live retriever, in a folder with a file for each query, so that an episode can be played again.
 * The first answer to a query is the answer from then on, for all hosts that share the folder.
 */
import { createHash } from 'node:crypto';
import { linkSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isMissingFile, readText } from '../core/bounded-file.ts';
import { messageOf, UserError } from '../core/errors.ts';
import { parseJson } from '../core/json-text.ts';
import { makeFolder } from '../storage/atomic-file.ts';
import type { Hit } from './retriever.ts';

export class RecordedResults {
  readonly #folder: string;
  readonly #writer: string;
  #written = 0;

  /**
   * @param writer name that no other host of the folder has, e.g. a process id and a path
   * @throws {UserError} for a folder that cannot be made
   */
  constructor(folder: string, writer: string) {
    this.#folder = folder;
    this.#writer = createHash('sha256').update(writer).digest('hex').slice(0, 16);
    try {
      makeFolder(folder);
    } catch (thrown) {
      throw new UserError('BAD_ARGUMENT', `cannot record results in ${folder}: ${messageOf(thrown)}`, {
        cause: thrown,
      });
    }
  }

  /** Result of a query, from the host that asked first. */
  get(query: string, topk: number): readonly Hit[] | undefined {
    let text: string;
    try {
      text = readText(this.#file(query, topk));
    } catch (thrown) {
      if (isMissingFile(thrown)) return undefined;
      throw thrown;
    }
    return (parseJson(text) as { hits: Hit[] }).hits;
  }

  /** Keeps an answer unless one is kept already. @returns the one that counts */
  keep(query: string, topk: number, hits: readonly Hit[]): readonly Hit[] {
    const draft = join(this.#folder, `.${this.#writer}-${this.#written++}`);
    writeFileSync(draft, JSON.stringify({ query, topk, hits }));
    try {
      linkSync(draft, this.#file(query, topk)); // fails where another host was first, and is never half written
      return hits;
    } catch (thrown) {
      if ((thrown as NodeJS.ErrnoException).code !== 'EEXIST') throw thrown;
      return this.get(query, topk)!;
    } finally {
      unlinkSync(draft);
    }
  }

  #file(query: string, topk: number): string {
    return join(this.#folder, `${createHash('sha256').update(`${topk} ${query}`).digest('hex')}.json`);
  }
}
