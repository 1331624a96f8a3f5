/** Growing buffer: bytes that come in pieces of any size, held in little more than their sum. */

const EMPTY = Buffer.alloc(0);

/** A list of the pieces would cost an object for each: 100 bytes and more for one byte. */
export class GrowingBuffer {
  readonly #max: number;
  #held: Buffer = EMPTY;
  #size = 0;

  /** @param max bytes it takes */
  constructor(max: number) {
    this.#max = max;
  }

  /** Adds a piece. @returns false where there would be too many bytes; it is left out then */
  add(piece: Buffer): boolean {
    const size = this.#size + piece.length;
    if (size > this.#max) return false;
    if (this.#size === 0) this.#held = piece;
    else if (size > this.#held.length) {
      const room = Math.min(this.#max, Math.max(1024, 2 * this.#held.length, size));
      this.#held = Buffer.concat([this.#held.subarray(0, this.#size), piece], room);
    } else piece.copy(this.#held, this.#size);
    this.#size = size;
    return true;
  }

  /** Bytes so far; they are not copied. */
  bytes(): Buffer {
    return this.#held.subarray(0, this.#size);
  }

  /** Text so far, as UTF-8. */
  text(): string {
    return this.#held.toString('utf8', 0, this.#size);
  }
}
