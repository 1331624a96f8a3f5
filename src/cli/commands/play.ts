/** Command `longplay play`: a person plays a world at the terminal. */
import { createInterface } from 'node:readline/promises';
import type { Command } from 'commander';
import { drawingLines } from '../../console/drawing.ts';
import { out } from '../../console/terminal.ts';
import { printAgentReply, readAgentReply } from '../../core/agent-call.ts';
import { isCallEpisode } from '../../core/call-episode.ts';
import type { EnvOptions, Session } from '../../core/env.ts';
import { UserError } from '../../core/errors.ts';
import { withHorizon } from '../../core/horizon.ts';
import type { Task } from '../../core/task.ts';
import type { SeenTurn } from '../../core/view.ts';
import { openChatModel } from '../../policy/remote/chat-model.ts';
import { findWorld } from '../../run/find-world.ts';
import { type OpenWorld, openWorld } from '../../world/open-world.ts';
import { CALL_FORM_HELP, CallForm, describeHint, isSameReply } from '../call-form.ts';
import { runCommand } from '../fail.ts';
import { type EnvOptionFlags, envOptionsOf, wholeNumber, withEnvOptions } from '../flags.ts';

interface PlayFlags extends EnvOptionFlags {
  readonly task?: number;
  readonly seed?: number;
  readonly horizon: number;
}

const HOW = 'type an action or its number; ? lists what can be done, hint asks the oracle, quit ends';

/** Adds the command. */
export function play(program: Command): void {
  const command = program
    .command('play')
    .description(`play a world yourself: ${HOW}`)
    .argument('<env>', 'world to play, or the path of a module')
    .option('--task <index>', 'task index', wholeNumber(0))
    .option('--seed <seed>', "seed of the task; by default the evaluation's", wholeNumber(0))
    .option('--horizon <turns>', 'turns you may take', wholeNumber(1), 30);
  withEnvOptions(command).action((env: string, flags: PlayFlags) => runCommand(() => playCommand(env, flags)));
}

async function playCommand(id: string, flags: PlayFlags): Promise<void> {
  const options = envOptionsOf(flags);
  const { env, world } = await findWorld(id, options);
  const index = flags.task ?? env.tasks.split('test')[0]!;
  if (index >= env.tasks.count) {
    throw new UserError('BAD_ARGUMENT', `play: --task ${index}: ${id} has tasks 0 to ${env.tasks.count - 1}`);
  }
  const task = { env: env.id, index, seed: flags.seed ?? env.tasks.evalSeed };
  const opened = await openWorld(world, id, options, 'play', { openChatModel });
  try {
    await playTask(opened, task, flags, options);
  } finally {
    await opened.dispose();
  }
}

/** Way in which a world is shown to a person, and in which an action is typed. */
interface PlayForm {
  readonly help: string;
  /** Question of a part of an action; undefined where a new one may be typed. */
  readonly question: string | undefined;
  /** Text of an observation as a person reads it. */
  observe(observation: string): string;
  list(): string;
  describeHint(action: string): string;
  /** Takes a line: the action that it finishes, or a text to show before the next question. */
  take(line: string): { readonly action: string } | { readonly text: string };
  /** True where an action does what another one does. */
  isSame(action: string, other: string): boolean;
}

/** Form of a world whose actions are texts: a listed one, its number, or any other text. */
function openTextForm(session: Session): PlayForm {
  return {
    help: HOW,
    question: undefined,
    observe: (observation) => observation,
    list: () =>
      session
        .actions()
        .map((action, i) => `${String(i + 1).padStart(3)}  ${action}`)
        .join('\n'),
    describeHint: (action) => action,
    take(text) {
      const listed = session.actions();
      // A listed text is itself, also where it is a number.
      return { action: listed.includes(text) || !/^\d+$/.test(text) ? text : (listed[Number(text) - 1] ?? text) };
    },
    isSame: (action, other) => action === other,
  };
}

/** Form of a world of tools, or of an agent's calls. */
function openCallForm(): PlayForm {
  const form = new CallForm();
  return {
    help: CALL_FORM_HELP,
    get question() {
      return form.question;
    },
    observe: (observation) => form.observe(observation),
    list: () => form.list(),
    describeHint,
    take(line) {
      const taken = form.take(line);
      return 'reply' in taken ? { action: printAgentReply(taken.reply) } : taken;
    },
    isSame: (action, other) => isSameReply(readAgentReply(action), readAgentReply(other)),
  };
}

async function playTask({ world, env }: OpenWorld, task: Task, flags: PlayFlags, options: EnvOptions): Promise<void> {
  const session = await env.open(task);
  const oracle = world.createOracle?.(options)(task);
  const typing = createInterface({ input: process.stdin, terminal: false });
  const lines = typing[Symbol.asyncIterator]();
  const turns: SeenTurn[] = [];
  let used = 0;
  const isCalls = isCallEpisode([session.first]);
  const form = isCalls ? openCallForm() : openTextForm(session);
  const picture = () => {
    // The drawing of calls is the conversation, which is shown already.
    if (world.draw && !isCalls) out.writeStyled(drawingLines(world.draw(task, session.first, turns, options)));
  };
  const head = `${env.id} task ${task.index} (${env.tasks.label(task.index)}), ${flags.horizon} turns; ${form.help}`;
  out.line(`${head}\n\n${form.observe(session.first.observation)}`);
  picture();
  let hint = oracle?.(session.first);
  try {
    for (;;) {
      out.ask(form.question ?? `\nturn ${used + 1}/${flags.horizon} > `);
      const typed = await lines.next();
      if (typed.done || typed.value.trim() === 'quit') break;
      const text = typed.value.trim();
      if (text === '?') {
        out.line(form.list());
        continue;
      }
      if (text === 'hint') {
        out.line(hint === undefined ? explainNoHint(oracle !== undefined, turns.length) : form.describeHint(hint));
        continue;
      }
      const taken = form.take(text);
      if ('text' in taken) {
        if (taken.text !== '') out.line(taken.text);
        continue;
      }
      const { action } = taken;
      const step = await session.step(action);
      turns.push({ action, observation: step.observation });
      if (!(step.kind === 'mid' && step.partial)) used++;
      // Off the oracle's path it has no plan.
      hint = hint !== undefined && form.isSame(action, hint) ? oracle?.(step) : undefined;
      out.line(form.observe(step.observation));
      picture();
      const seen = withHorizon(step, used, flags.horizon);
      if (seen.kind === 'mid') continue;
      const solved = seen.kind === 'terminated' && seen.success;
      out.line(
        `\n${solved ? 'solved' : seen.kind === 'truncated' ? 'out of turns' : 'over'} after ${used} ${used === 1 ? 'turn' : 'turns'}, reward ${seen.reward}`,
      );
      break;
    }
  } finally {
    typing.close(); // a terminal that is still read keeps the process alive
    await session.close();
  }
}

function explainNoHint(hasOracle: boolean, turns: number): string {
  if (!hasOracle) return 'this world has no oracle';
  return turns === 0
    ? 'the oracle does not solve this task'
    : 'the oracle plans from the start and has no advice once it is not followed';
}
