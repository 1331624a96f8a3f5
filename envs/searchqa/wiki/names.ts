/** Names that no text holds, from syllables. */
import type { Rng } from '../../../src/core/rng.ts';
import { mentionsOf } from '../mentions.ts';
import type { Kind } from './schema.ts';

const STARTS = 'B Br C Ch D Dr F Fl G Gr H J K Kr L M N P Pr Qu R S Sh Sk St T Tr V W Y Z'.split(' ');
const VOWELS = 'a e i o u a e o ai ea ou'.split(' ');
const MIDDLES = 'b d f g k l m n p r s t v z ld ll mb nd nn rd rk rn ss st th'.split(' ');
const ENDS = 'n r s l m th nd rk ck st ld x'.split(' ');
const TOWN_ENDS = 'ton by mere stead ford holm wick mouth burg dale'.split(' ');
const REALM_ENDS = 'ia land ora mark'.split(' ');
const WORK_FIRST = 'Silent Crimson Hollow Golden Winter Broken Distant Hidden Burning Patient Velvet Restless'.split(
  ' ',
);
const WORK_SECOND = 'Harbour Orchard Lantern Ledger Meadow Mirror Garden Compass Bridge Season Letter Tower'.split(' ');
const COMPANY_ENDS = 'Works Mills House Brothers Trading Union'.split(' ');
const TRIES = 100;

/** Draws names, none twice. */
export class NameMaker {
  readonly #rng: Rng;
  readonly #taken = new Set<string>();
  readonly #surnames: string[] = [];

  constructor(rng: Rng) {
    this.#rng = rng;
  }

  /** A capitalised word. */
  word(): string {
    return this.#drawUnused(() => this.#syllables(2));
  }

  name(kind: Kind): string {
    return this.#drawUnused(() => this.#draw(kind));
  }

  #draw(kind: Kind): string {
    const rng = this.#rng;
    if (kind === 'person') return `${this.#syllables(1 + rng.int(2))} ${this.#surname()}`;
    if (kind === 'town') return this.#syllables(1) + rng.pick(TOWN_ENDS);
    if (kind === 'realm') return this.#syllables(2) + rng.pick(REALM_ENDS);
    if (kind === 'work') return `${rng.pick(WORK_FIRST)} ${rng.pick(WORK_SECOND)} of ${this.#syllables(2)}`;
    if (kind === 'company') return `${this.#syllables(2)} ${rng.pick(COMPANY_ENDS)}`;
    return `University of ${this.#syllables(2)}`;
  }

  /** Surnames are shared: every third is one that was drawn before. */
  #surname(): string {
    const rng = this.#rng;
    if (this.#surnames.length > 50 && rng.int(3) === 0) return rng.pick(this.#surnames);
    const surname = this.#syllables(2);
    this.#surnames.push(surname);
    return surname;
  }

  #syllables(count: number): string {
    const rng = this.#rng;
    let word = rng.pick(STARTS) + rng.pick(VOWELS);
    for (let i = 1; i < count; i++) word += rng.pick(MIDDLES) + rng.pick(VOWELS);
    return word + rng.pick(ENDS);
  }

  #drawUnused(draw: () => string): string {
    for (let i = 0; ; i++) {
      const name = i < TRIES ? draw() : `${draw()}${this.#syllables(1).toLowerCase()}`;
      // A name like `Was Tadost` would be read as the beginning of a sentence.
      if (this.#taken.has(name) || !mentionsOf(name).has(name)) continue;
      this.#taken.add(name);
      return name;
    }
  }
}
