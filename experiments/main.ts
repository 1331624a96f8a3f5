/** `npm run experiment -- <name>`: runs a study. */
import { parseArgs } from 'node:util';
import { runCommand } from '../src/cli/fail.ts';
import { UserError } from '../src/core/errors.ts';
import { fromScratch } from './from-scratch.ts';
import { gallery } from './gallery.ts';
import { horizon } from './horizon.ts';
import { llmTiny } from './llm-tiny.ts';
import { searchqa } from './searchqa.ts';

type Flags = ReturnType<typeof flags>;

const studies: Readonly<Record<string, (flags: Flags) => Promise<void>>> = {
  horizon: ({ cells, minutes }) => horizon({ cells, minutes }),
  'llm-tiny': ({ seeds }) => llmTiny({ seed: seeds ?? 1, updates: 60 }),
  searchqa: ({ seeds, envSteps }) => searchqa({ seeds: seeds ?? 3, ...(envSteps === undefined ? {} : { envSteps }) }),
  textcraft: ({ cells, minutes }) => fromScratch({ world: 'textcraft', cells, minutes }),
  gallery: ({ runs }) => gallery(runs),
  babyai: ({ cells, minutes }) => fromScratch({ world: 'babyai', cells, minutes }),
};

await runCommand(async () => {
  const given = flags();
  const study = studies[given.name ?? ''];
  if (!study) {
    throw new UserError(
      'BAD_ARGUMENT',
      `unknown experiment '${given.name ?? ''}'; known: ${Object.keys(studies).join(', ')}`,
    );
  }
  await study(given);
});

function flags() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      seeds: { type: 'string' },
      'env-steps': { type: 'string' },
      cells: { type: 'string' },
      minutes: { type: 'string' },
      runs: { type: 'string' },
    },
  });
  const number = (flag: keyof typeof values, whole: boolean) => {
    const text = values[flag];
    if (text === undefined) return undefined;
    const n = Number(text);
    const least = flag === 'cells' ? 0 : Number.MIN_VALUE;
    if (!(n >= least) || (whole && !Number.isInteger(n))) {
      const expected = `a ${whole ? 'whole ' : ''}number ${least === 0 ? '≥' : 'above'} 0`;
      throw new UserError('BAD_ARGUMENT', `--${flag}: expected ${expected}, got ${text}`);
    }
    return n;
  };
  return {
    name: positionals[0],
    seeds: number('seeds', true),
    envSteps: number('env-steps', true),
    cells: number('cells', true),
    minutes: number('minutes', false),
    runs: values.runs === undefined ? [] : values.runs.split(','),
  };
}
