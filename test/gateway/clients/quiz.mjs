/** What the agents of this folder do: a question, three tools that find its answer, and a log of the tools that ran. */
import { z } from 'zod';

export const QUESTION = 'What is the capital of Australia?';
export const UNICODE = `${QUESTION} 🦘 \u2028 é`;
export const SYSTEM = 'You answer questions with the tools search, read and answer. Call answer once you know.';

/** Structured answer. */
export const ANSWER = z.object({ answer: z.string(), confidence: z.number() });

/** The same as a JSON Schema. */
export const ANSWER_SCHEMA = {
  type: 'object',
  properties: { answer: { type: 'string' }, confidence: { type: 'number' } },
  required: ['answer', 'confidence'],
  additionalProperties: false,
};

/** Page that fills a context. */
const LONG_PAGE = `Perth is in the west.${' It is a town of Australia, which has many, with rivers and roads.'.repeat(40)}`;

/** Tools: description, and the only argument of each, a text. */
export const TOOLS = {
  search: { description: 'Searches the documents.', argument: 'query' },
  read: { description: 'Reads one document.', argument: 'id' },
  answer: { description: 'Gives the final answer.', argument: 'text' },
};

/** JSON Schema of a tool's arguments. */
export function schemaOf({ argument }) {
  return {
    type: 'object',
    properties: { [argument]: { type: 'string' } },
    required: [argument],
    additionalProperties: false,
  };
}

/** The same in zod. */
export function zodOf({ argument }) {
  return z.object({ [argument]: z.string() });
}

/** Opens the tools of one episode. */
export function openQuiz() {
  const log = [];
  return {
    /** Names of the tools in the order in which they ran. */
    log,
    /** Runs a tool. @returns its result as a text */
    run(name, input) {
      if (!(name in TOOLS)) return `there is no tool ${name}`;
      log.push(name);
      if (name === 'answer') return 'noted';
      if (name === 'read') return input.id === 'd2' ? 'Canberra is the capital of Australia.' : LONG_PAGE;
      const { query } = input;
      return JSON.stringify([
        { id: 'd1', title: 'Sydney', query },
        { id: 'd2', title: 'Canberra', query },
      ]);
    },
  };
}
