/** Oracle: makes the calls of a task's solution one by one, reads the answer from the last output where one is due, and submits. */
import { NO_USAGE, printAgentReply, readAgentCall } from '../../src/core/agent-call.ts';
import type { Oracle, TimeStep } from '../../src/core/env.ts';
import type { FormCall } from './forms.ts';
import { commandOf, SUBMIT_NAME } from './forms.ts';
import { listHarborTasks, readSolution } from './harbor.ts';
import type { TerminalOptions } from './options.ts';
import { writeTask } from './tasks.ts';
import { BASH } from './work.ts';

/** Makes the oracle. Of a task in a folder it runs the solution, where there is one. */
export function oracle({ tools, folder }: Pick<TerminalOptions, 'tools' | 'folder'>): Oracle {
  if (folder !== undefined) return runSolutions(listHarborTasks(folder));
  return ({ index, seed }) => {
    const { solution, choices, goal } = writeTask(index, seed);
    let next = 0;
    return (step) => {
      if (step.kind === 'first') next = 0;
      if (step.kind === 'terminated' || next > solution.length) return undefined;
      const call = solution[next++];
      if (!call) return reply(SUBMIT_NAME, goal.answer === undefined ? {} : { answer: readAnswer(step, tools) });
      if (tools === 'forms') return reply(call.name, call.args);
      return reply(BASH.name, { command: commandLine(call, choices) });
    };
  };
}

function runSolutions(folders: readonly string[]): Oracle {
  return ({ index }) => {
    const command = readSolution(folders[index]!);
    const replies = command === undefined ? [] : [reply(BASH.name, { command }), reply(SUBMIT_NAME, {})];
    let next = 0;
    return (step) => {
      if (step.kind === 'first') next = 0;
      return step.kind === 'terminated' ? undefined : replies[next++];
    };
  };
}

/** Command line of a call of a solution. @throws {RangeError} for a call that its task does not list */
export function commandLine({ name, args }: FormCall, choices: Parameters<typeof commandOf>[2]): string {
  const { command, error } = commandOf(name, args, choices);
  if (error !== undefined) throw new RangeError(error);
  return command;
}

/** Output of the last command, as an answer. */
function readAnswer({ observation }: TimeStep, tools: TerminalOptions['tools']): string | number {
  const { messages } = readAgentCall(observation);
  const output = messages.findLast(({ role }) => role === 'tool')?.content.trim() ?? '';
  return tools === 'forms' && /^\d+$/.test(output) ? Number(output) : output;
}

function reply(name: string, args: Readonly<Record<string, unknown>>): string {
  const calls = [{ name, arguments: JSON.stringify(args) }];
  return printAgentReply({ content: '', calls, finish: 'calls', usage: NO_USAGE });
}
