/**
 * Describes a turn: the PREVIOUS ACTION line and its text, as AgentGym's server writes them.
 *
 * Source  web-arena-x/webarena at f62e0b99, `browser_env/helper_functions.py`; AgentGym `agentenv_webarena` at 3ef9235d
 */
import { split } from '../../src/core/python-text.ts';
import type { Action } from './grammar.ts';
import type { Lines } from './tree.ts';
import { type SiteBases, toPublic } from './urls.ts';

/**
 * Describes an action for the PREVIOUS ACTION line. @param lines the printed line of each element by id, those that
 * the duplicate filter removed included
 */
export function describeAction(action: Action, lines: Lines): string {
  switch (action.type) {
    case 'CLICK':
      return onElement('click', action.id, '', lines);
    case 'HOVER':
      return onElement('hover', action.id, '', lines);
    case 'TYPE':
      return onElement('type', action.id, ` [${action.text.replaceAll('\n', ' ')}]`, lines);
    case 'KEY_PRESS':
      return `press [${action.key}]`;
    case 'SCROLL':
      return `scroll [${action.direction}]`;
    case 'GOTO_URL':
      return `goto [${action.url}]`;
    case 'PAGE_FOCUS':
      return `page_focus [${action.page}]`;
    case 'NEW_TAB':
      return 'new_tab';
    case 'PAGE_CLOSE':
      return 'close_tab';
    case 'GO_BACK':
      return 'go_back';
    case 'GO_FORWARD':
      return 'go_forward';
    case 'STOP':
      return `stop [${action.answer}]`;
  }
}

function onElement(verb: string, id: string, rest: string, lines: Lines): string {
  const line = lines.get(id);
  if (line === undefined) {
    // "perfom" is the original's spelling.
    return `Attempt to perfom "${verb}" on element "[${id}]" but no matching element found. Please check the observation more carefully.`;
  }
  const element = split(line).slice(1).join(' ');
  return `${verb} [${id}]${rest} where [${id}] is ${element}`;
}

/** One turn as the policy reads it. */
export interface Turn {
  readonly observation: string;
  readonly url: string;
  readonly objective: string;
  readonly previousAction: string;
}

/** Text of a turn, as a language model reads it: observation, address, objective, previous action. */
export function turnText({ observation, url, objective, previousAction }: Turn, bases: SiteBases): string {
  return `OBSERVATION:\n${observation}\nURL: ${toPublic(url, bases)}\nOBJECTIVE: ${objective}\nPREVIOUS ACTION: ${previousAction}`;
}

const TURN =
  /^OBSERVATION:\n([\s\S]*)\nURL: ([^\n]*)\nOBJECTIVE: ([^\n]*)\nPREVIOUS ACTION: ([^\n]*)(?:\nERROR: ([^\n]*))?$/;

/** The parts of a turn's text; undefined where it is none (an exception's text). */
export function readTurn(text: string): (Turn & { readonly error: string }) | undefined {
  const [, observation, url, objective, previousAction, error = ''] = TURN.exec(text) ?? [];
  if (observation === undefined) return undefined;
  return { observation, url: url!, objective: objective!, previousAction: previousAction!, error };
}

const BLOCK = /```((?:[^\n]|\n)*?)```/g;

/** Every text between a pair of triple backticks, in order. */
export function blocksOf(reply: string): string[] {
  return Array.from(reply.matchAll(BLOCK), ([, block]) => block!);
}
