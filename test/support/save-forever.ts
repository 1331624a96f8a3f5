/**
 * Child process of the kill test: saves checkpoint after checkpoint until it is killed, and prints each number once its
 * save has returned. `node save-forever.js <dir> <first update>`
 */
import { writeSync } from 'node:fs';
import { saveCheckpoint } from '../../src/storage/checkpoint.ts';
import { checkpointOf } from './numbered-checkpoint.ts';

const [dir, first] = process.argv.slice(2);
writeSync(1, 'ready\n');
for (let update = Number(first); ; update++) {
  // Every third number is saved twice, so that kills fall into exchanges as well.
  for (let again = 0; again < (update % 3 === 0 ? 2 : 1); again++) {
    const result = saveCheckpoint(dir!, update, checkpointOf(update), { keep: 2 });
    if (!result.ok) throw new Error(result.message);
  }
  writeSync(1, `${update}\n`);
}
