/** Work of an episode: what is asked for, with which tools, in which files, and how its end is checked. */
import type { Tool } from '../../src/core/model-call.ts';
import type { TerminalTask } from './families/task.ts';
import { type FormChoices, listForms, SUBMIT_NAME, schemaOf } from './forms.ts';
import type { ToolsKind } from './options.ts';
import type { Shell, Start } from './shell.ts';
import { findFaults } from './verify.ts';

/** Result of a check. */
export interface Verdict {
  /** In [0, 1]. */
  readonly reward: number;
  readonly success: boolean;
  /** Text that the policy reads at the end. */
  readonly text: string;
}

/** Work of an episode. */
export interface Work {
  readonly request: string;
  readonly start: Start;
  readonly tools: readonly Tool[];
  /** Values of typed tools; absent where the tool is a free command line. */
  readonly choices?: FormChoices | undefined;
  /**
   * Checks the end.
   * @param answer what was submitted with it; empty without one
   */
  check(shell: Shell, answer: string): Promise<Verdict>;
}

/** Tool of a free command line. */
export const BASH: Tool = {
  name: 'bash',
  description: 'Runs a command line of bash and shows its output. The folder and the variables stay from call to call.',
  parameters: schemaOf([['command', { description: 'command line, e.g. ls -l' }]]),
};

const SUBMIT: Tool = {
  name: SUBMIT_NAME,
  description: 'Ends the task.',
  parameters: {
    type: 'object',
    properties: { answer: { type: 'string', description: 'the answer alone, where the task asks a question' } },
    required: [],
  },
};

/** Tools of a free command line. */
export const SHELL_TOOLS: readonly Tool[] = [BASH, SUBMIT];

/** Makes the work of a task of a family. */
export function createWork(task: TerminalTask, kind: ToolsKind): Work {
  const { text, files, toolbox, choices, goal } = task;
  const answerKind = goal.answer === undefined ? 'none' : /^\d+$/.test(goal.answer) ? 'number' : 'text';
  return {
    request: text,
    start: { files },
    ...(kind === 'forms' ? { tools: listForms(toolbox, choices, answerKind), choices } : { tools: SHELL_TOOLS }),
    async check(shell, answer) {
      const [fault] = findFaults(task, await shell.read(), answer);
      return fault === undefined
        ? { reward: 1, success: true, text: 'Solved.' }
        : { reward: 0, success: false, text: `Not solved: ${fault}.` };
    },
  };
}
