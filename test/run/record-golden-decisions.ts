/**
 * Records the decisions of the golden runs again:
 *
 *     npm run build && node dist/test/run/record-golden-decisions.js [folder for the whole trajectories]
 *
 * Writes `test/fixtures/golden-decisions.jsonl`. Do it only where decisions are meant to change, and name which and why
 * in the commit. A run whose `order` is `matters` may change with the order of messages alone, the others never.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../src/runtime/module-url.ts';
import { traceLine } from '../../src/storage/trace.ts';
import { firstDifference, type GoldenRecord, goldenRuns, play } from '../support/golden-runs.ts';

const fixture = new URL('test/fixtures/golden-decisions.jsonl', packageRoot);
const [folder] = process.argv.slice(2);
if (folder) mkdirSync(folder, { recursive: true });
let kept: GoldenRecord[] = [];
try {
  kept = readFileSync(fixture, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as GoldenRecord);
} catch {
  console.log('nothing was kept yet');
}
const all: GoldenRecord[] = [];
for (const run of goldenRuns) {
  const { records, trajectories } = await play(run);
  const own = kept.filter((record) => record.run === run.name);
  console.log(`${run.name}: ${firstDifference(own, records) ?? 'as kept'}`);
  all.push(...records);
  if (folder) {
    const path = join(folder, `${run.name.replaceAll(' ', '-')}.jsonl`);
    writeFileSync(path, trajectories.map((one) => traceLine(one, 'train')).join(''));
  }
}
writeFileSync(fixture, all.map((record) => `${JSON.stringify(record)}\n`).join(''));
