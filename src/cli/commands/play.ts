/** `longplay play`: a person plays a world at the terminal. */
import { createInterface } from 'node:readline/promises';
import { type Command, InvalidArgumentError } from 'commander';
import { drawingText } from '../../console/drawing.ts';
import { UserError } from '../../core/errors.ts';
import { withHorizon } from '../../core/horizon.ts';
import type { SeenTurn } from '../../core/view.ts';
import { runCommand } from '../fail.ts';
import { loadWorld } from '../world.ts';

interface PlayFlags {
  readonly task?: number;
  readonly seed?: number;
  readonly horizon: number;
}

const HOW = 'type an action or its number; ? lists what can be done, hint asks the oracle, quit ends';

/** Adds the command. */
export function play(program: Command): void {
  program
    .command('play')
    .description(`play a world yourself: ${HOW}`)
    .argument('<env>', 'world to play')
    .option('--task <index>', 'task index', whole)
    .option('--seed <seed>', "seed of the task; by default the evaluation's", whole)
    .option('--horizon <turns>', 'turns you may take', whole, 30)
    .action((env: string, flags: PlayFlags) => runCommand(() => playCommand(env, flags)));
}

async function playCommand(id: string, flags: PlayFlags): Promise<void> {
  const { env, module } = await loadWorld(id);
  const index = flags.task ?? env.tasks.split('test')[0]!;
  if (index >= env.tasks.count) {
    throw new UserError('BAD_ARGUMENT', `play: --task ${index}: ${id} has tasks 0 to ${env.tasks.count - 1}`);
  }
  const task = { env: id, index, seed: flags.seed ?? env.tasks.evalSeed };
  const session = await env.open(task);
  const oracle = module.createOracle?.()(task);
  const { out, lines } = terminal();
  const turns: SeenTurn[] = [];
  const picture = () => {
    if (module.draw) out(`${drawingText(module.draw(task, session.first, turns)).join('\n')}\n`);
  };
  out(
    `${id} task ${index} (${env.tasks.label(index)}), ${flags.horizon} turns; ${HOW}\n\n${session.first.observation}\n`,
  );
  picture();
  let hint = oracle?.(session.first);
  try {
    for (;;) {
      out(`\nturn ${turns.length + 1}/${flags.horizon} > `);
      const typed = await lines.next();
      if (typed.done || typed.value.trim() === 'quit') break;
      const text = typed.value.trim();
      const listed = session.actions();
      if (text === '?') {
        out(`${listed.map((action, i) => `${String(i + 1).padStart(3)}  ${action}`).join('\n')}\n`);
        continue;
      }
      if (text === 'hint') {
        out(`${hint ?? noHint(oracle !== undefined, turns.length)}\n`);
        continue;
      }
      const action = /^\d+$/.test(text) ? (listed[Number(text) - 1] ?? text) : text;
      const step = await session.step(action);
      turns.push({ action, observation: step.observation });
      hint = action === hint ? oracle?.(step) : undefined; // off the oracle's path it has no plan
      out(`${step.observation}\n`);
      picture();
      const seen = withHorizon(step, turns.length, flags.horizon);
      if (seen.kind === 'mid') continue;
      const solved = seen.kind === 'terminated' && seen.success;
      out(
        `\n${solved ? 'solved' : seen.kind === 'truncated' ? 'out of turns' : 'over'} after ${turns.length} ${turns.length === 1 ? 'turn' : 'turns'}, reward ${seen.reward}\n`,
      );
      break;
    }
  } finally {
    await session.close();
  }
}

function noHint(hasOracle: boolean, turns: number): string {
  if (!hasOracle) return 'this world has no oracle';
  return turns === 0
    ? 'the oracle does not solve this task'
    : 'the oracle plans from the start and has no advice once it is not followed';
}

function terminal() {
  const reader = createInterface({ input: process.stdin, terminal: false });
  return { out: (text: string) => void process.stdout.write(text), lines: reader[Symbol.asyncIterator]() };
}

function whole(value: string): number {
  const n = Number(value);
  if (!Number.isInteger(n) || n < 0) throw new InvalidArgumentError('expected a whole number ≥ 0');
  return n;
}
