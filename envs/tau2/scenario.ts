/** Scenario of a user as the original writes it into the prompt of a user that is a language model. */
import { readData } from './data-files.ts';
import type { InstructionPart, TauTask } from './tasks.ts';

/** Parts of instructions in the order of the original, those whose text stands on lines of its own behind the first. */
const PARTS: readonly (readonly [InstructionPart, title: string])[] = [
  ['reason_for_call', 'Reason for call'],
  ['known_info', 'Known info'],
  ['unknown_info', 'Unknown info'],
  ['task_instructions', 'Task instructions'],
];

/** System prompt of a user: the original's guidelines, then the scenario. @param hasTools with those for a user of tools */
export function userPrompt(task: TauTask, hasTools: boolean): string {
  const guidelines = readData(`user_simulator/simulation_guidelines${hasTools ? '_tools' : ''}.md`);
  return `${guidelines}\n\n<scenario>\n${printScenario(task)}\n</scenario>`;
}

/** Prints the persona and the instructions, as Python's `str(user_scenario)` does. */
function printScenario({ persona, instructions }: TauTask): string {
  const lines = persona === null ? [] : ['Persona:', indent(persona)];
  return [...lines, 'Instructions:', indent(printInstructions(instructions))].join('\n');
}

function printInstructions(instructions: TauTask['instructions']): string {
  if (typeof instructions === 'string') return instructions;
  const lines = [`Domain: ${instructions.domain ?? ''}`];
  for (const [part, title] of PARTS) {
    const text = instructions[part];
    if (text !== undefined) lines.push(`${title}:`, indent(text));
  }
  return lines.join('\n');
}

/** Indents lines by a tab but blank ones, as Python's `textwrap.indent` does. */
function indent(text: string): string {
  return text.replace(/^(?=.*\S)/gm, '\t');
}
