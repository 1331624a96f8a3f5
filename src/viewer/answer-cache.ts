/**
 * Cache of answers, as JSON. A page of a large run costs tens of milliseconds, in which nobody else is answered: clients
 * that ask for the same one, of a run that has not grown, are given the same text.
 */

/** UTF-16 units of all texts. */
const MAX_CHARS = 2 ** 25;

export class AnswerCache {
  readonly #answers = new Map<string, { readonly stamp: string; readonly text: string }>();
  #chars = 0;

  /**
   * Text of an answer.
   * @param key   what was asked for
   * @param stamp changes when the answer may
   * @param make  makes the answer; what it throws is not kept
   */
  async get(key: string, stamp: string, make: () => unknown): Promise<string> {
    const known = this.#answers.get(key);
    if (known?.stamp === stamp) return known.text;
    const text = JSON.stringify(await make());
    this.#remove(key);
    if (text.length > MAX_CHARS / 2) return text;
    this.#answers.set(key, { stamp, text });
    this.#chars += text.length;
    for (const oldest of this.#answers.keys()) {
      if (this.#chars <= MAX_CHARS) break;
      this.#remove(oldest);
    }
    return text;
  }

  #remove(key: string): void {
    this.#chars -= this.#answers.get(key)?.text.length ?? 0;
    this.#answers.delete(key);
  }
}
