/** `npm run experiment -- <name>`: runs a study. */
import { parseArgs } from 'node:util';
import { runCommand } from '../src/cli/fail.ts';
import { UserError } from '../src/core/errors.ts';
import { textcraftHorizon } from './textcraft-horizon.ts';

await runCommand(async () => {
  const { name, seeds, envSteps } = flags();
  if (name !== 'textcraft-horizon') {
    throw new UserError('BAD_ARGUMENT', `unknown experiment '${name ?? ''}'; known: textcraft-horizon`);
  }
  await textcraftHorizon({ seeds, envSteps });
});

function flags(): { name: string | undefined; seeds: number; envSteps: number } {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { seeds: { type: 'string', default: '5' }, 'env-steps': { type: 'string', default: '90000' } },
  });
  const count = (text: string, flag: string) => {
    const n = Number(text);
    if (!Number.isInteger(n) || n < 1)
      throw new UserError('BAD_ARGUMENT', `--${flag}: expected a whole number ≥ 1, got ${text}`);
    return n;
  };
  return {
    name: positionals[0],
    seeds: count(values.seeds, 'seeds'),
    envSteps: count(values['env-steps'], 'env-steps'),
  };
}
