/**
 * Derives the facts of countries, time zones and elements from three npm packages (all MIT) and writes them to
 * `facts.ts` beside this file. Run from the repository root, only when the facts are to be rebuilt:
 *
 *     npm install --no-save countries-list@3.4.1 countries-and-timezones@3.10.0 periodic-table-data@1.1.1
 *     npm run build && node dist/envs/searchqa/data/derive.js [folder of node_modules]
 *
 * Left out: names that a reader of capitalised words cannot find whole in a sentence (`Bosnia and Herzegovina`,
 * `St. Helena`), and whatever lacks a field.
 */
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';

const PACKAGES = ['countries-list@3.4.1', 'countries-and-timezones@3.10.0', 'periodic-table-data@1.1.1'];
const TARGET = 'envs/searchqa/data/facts.ts';
/** A run of capitalised words; of zones, with slashes. */
const NAME = /^\p{Lu}[\p{L}\p{M}'’-]*(?: (?:of )?\p{Lu}[\p{L}\p{M}'’-]*)*$/u;
const ZONE = /^[A-Z][A-Za-z]+\/[A-Z][A-Za-z_/-]*$/;

interface CountryRow {
  readonly name: string;
  readonly phone: readonly number[];
  readonly continent: string;
  readonly capital: string;
  readonly currency: readonly string[];
  readonly languages: readonly string[];
}
interface ZoneRow {
  readonly name: string;
  readonly countries: readonly string[];
  readonly utcOffsetStr: string;
  readonly aliasOf: string | null;
}
interface ElementRow {
  readonly name: string;
  readonly symbol: string;
  readonly atomicNumber: number;
}

const load = createRequire(join(resolve(process.argv[2] ?? 'node_modules'), 'facts.js'));

const { countries, continents, languages } = load('countries-list') as {
  countries: Record<string, CountryRow>;
  continents: Record<string, string>;
  languages: Record<string, { name: string }>;
};
const timezones = load('countries-and-timezones') as { getAllTimezones(): Record<string, ZoneRow> };
const periodic = load('periodic-table-data/periodicTableData.json') as ElementRow[];

const lands = new Map<string, readonly (string | number)[]>();
for (const [code, { name, phone, continent, capital, currency, languages: spoken }] of Object.entries(countries)) {
  const language = languages[spoken[0] ?? '']?.name ?? '';
  const row = [name, capital, continents[continent]!, currency[0] ?? '', phone[0] ?? 0, language];
  const names = [name, capital, language];
  if (names.every((text) => NAME.test(text)) && row[3] !== '' && name !== capital) lands.set(code, row);
}
const zones: (readonly string[])[] = [];
for (const { name, countries: lie, utcOffsetStr, aliasOf } of Object.values(timezones.getAllTimezones())) {
  const land = lands.get(lie[0] ?? '');
  if (land && lie.length === 1 && aliasOf === null && ZONE.test(name)) zones.push([name, String(land[0]), `UTC${utcOffsetStr}`]);
}
const chemistry = periodic.map(({ name, symbol, atomicNumber }) => [name, symbol, atomicNumber]);

const list = (rows: readonly (readonly (string | number)[])[]) => rows.map((row) => `  ${JSON.stringify(row)},\n`).join('');
writeFileSync(
  TARGET,
  `/**
 * Facts of countries, time zones and elements, derived by derive.ts from ${PACKAGES.join(', ')}
 * (MIT; © 2014 Annexare Studio, © 2020 Manuel de la Torre, © 2023 Jianfeng Song).
 */

/** Country, capital, continent, currency, calling code, first language. */
export const LANDS: readonly (readonly [string, string, string, string, number, string])[] = [
${list([...lands.values()])}];

/** Time zone, country, offset from UTC in winter. */
export const ZONES: readonly (readonly [string, string, string])[] = [
${list(zones)}];

/** Element, symbol, atomic number. */
export const ELEMENTS: readonly (readonly [string, string, number])[] = [
${list(chemistry)}];
`,
);
