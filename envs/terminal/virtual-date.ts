/** Dates of a virtual machine: its own present, and UTC as the only time zone, whatever the zone of this process. */

const PARTS = ['FullYear', 'Month', 'Date', 'Day', 'Hours', 'Minutes', 'Seconds', 'Milliseconds'];
const HAS_ZONE = /(?:Z|GMT|UTC|[+-]\d{2}:?\d{2})\s*$/i;

/**
 * Creates a class in place of `Date`.
 * @param now present time in ms since 1970
 */
export function createDate(now: () => number): DateConstructor {
  class VirtualDate extends Date {
    constructor(...given: readonly (string | number | Date)[]) {
      const [value, month, day = 1, hours = 0, minutes = 0, seconds = 0, ms = 0] = given as number[];
      if (given.length === 0) super(now());
      else if (month !== undefined) super(Date.UTC(value!, month, day, hours, minutes, seconds, ms));
      else super(typeof given[0] === 'string' ? parseInUtc(given[0]) : given[0]!);
    }
    static override now(): number {
      return now();
    }
    static override parse(text: string): number {
      return parseInUtc(text);
    }
    override getTimezoneOffset(): number {
      return 0;
    }
    override toString(): string {
      return this.toUTCString();
    }
  }
  const own = VirtualDate.prototype as unknown as Record<string, unknown>;
  const plain = Date.prototype as unknown as Record<string, unknown>;
  for (const part of PARTS) {
    for (const verb of ['get', 'set']) if (`${verb}UTC${part}` in plain) own[verb + part] = plain[`${verb}UTC${part}`];
  }
  return VirtualDate as unknown as DateConstructor;
}

/** Milliseconds of a date that is written without a zone, or with one; NaN for another text. */
function parseInUtc(text: string): number {
  if (HAS_ZONE.test(text)) return Date.parse(text);
  const written = [`${text}Z`, `${text} UTC`].map((zoned) => Date.parse(zoned));
  return written.find((ms) => !Number.isNaN(ms)) ?? Number.NaN;
}
