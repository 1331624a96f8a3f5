/** Options of an agent: the program, its tasks, and what is done at the horizon. */
import { describeValue } from '../core/describe-value.ts';
import type { EnvOptions } from '../core/env.ts';
import { UserError } from '../core/errors.ts';

/** Options as a configuration writes them under `agent`, paths made absolute. */
export interface AgentOptions {
  /** Path of a module whose default export is the agent. */
  readonly module?: string | undefined;
  /** Command line of a program in any language: one word an entry. */
  readonly command?: readonly string[] | undefined;
  /** URL of a service that plays episodes (remote-program.ts). */
  readonly url?: string | undefined;
  /** Address that the gateway listens on, and that programs call. Default `127.0.0.1`. */
  readonly host?: string | undefined;
  /** True where a process of the command plays many episodes, one after another. */
  readonly reuse: boolean;
  /** Tasks: their number, a JSONL file with one task a line, or the list itself. Of a module: its export `tasks` by default. */
  readonly tasks?: number | string | readonly unknown[] | undefined;
  /**
   * `never`: the agent has effects outside, so a lost episode is issued anew. `exact`: it is a function of its task and the
   * replies, and a lost episode is restored by giving it the recorded replies again.
   */
  readonly replay: 'never' | 'exact';
  /** Fate of the reward of an episode that the horizon cut: it counts, or it is 0. */
  readonly rewardAtHorizon: 'keep' | 'drop';
}

/**
 * Checks the options.
 * @throws {UserError} BAD_CONFIG naming the option
 */
export function readAgentOptions(options: EnvOptions): AgentOptions {
  const {
    module,
    command,
    url,
    host,
    reuse = false,
    tasks,
    replay = 'never',
    rewardAtHorizon = 'keep',
    ...rest
  } = options;
  const known = ['module', 'command', 'url', 'host', 'reuse', 'tasks', 'replay', 'rewardAtHorizon'];
  const [unknown] = Object.keys(rest);
  if (unknown !== undefined) throw badOption(unknown, `one of ${known.join(', ')}`, rest[unknown]);
  if ([module, command, url].filter((one) => one !== undefined).length !== 1) {
    throw new UserError(
      'BAD_CONFIG',
      "agent: give one of 'module' (the path of a module), 'command' (a list of words) and 'url' (of a service)",
    );
  }
  if (url !== undefined && !(typeof url === 'string' && /^https?:/.test(url) && URL.canParse(url))) {
    throw badOption('url', 'a URL, e.g. http://127.0.0.1:3000/init', url);
  }
  if (host !== undefined && !(typeof host === 'string' && host !== '' && host !== '0.0.0.0' && host !== '::')) {
    throw badOption('host', 'an address of this machine that programs can call', host);
  }
  if (module !== undefined && (typeof module !== 'string' || module === ''))
    throw badOption('module', 'a path', module);
  if (command !== undefined && !(isTexts(command) && command.length > 0)) {
    throw badOption('command', 'a list of words, e.g. [python, agent.py]', command);
  }
  if (typeof reuse !== 'boolean' || (reuse && command === undefined)) {
    throw badOption('reuse', 'true or false, beside a command', reuse);
  }
  const isCount = typeof tasks === 'number' && Number.isSafeInteger(tasks) && tasks > 0;
  if (tasks !== undefined && !isCount && typeof tasks !== 'string' && !(Array.isArray(tasks) && tasks.length > 0)) {
    throw badOption('tasks', 'a number, the path of a JSONL file, or a list', tasks);
  }
  if (replay !== 'never' && replay !== 'exact') throw badOption('replay', 'never or exact', replay);
  if (rewardAtHorizon !== 'keep' && rewardAtHorizon !== 'drop') {
    throw badOption('rewardAtHorizon', 'keep or drop', rewardAtHorizon);
  }
  return {
    module: module as string | undefined,
    command: command as readonly string[] | undefined,
    url: url as string | undefined,
    host: host as string | undefined,
    reuse,
    tasks: tasks as AgentOptions['tasks'],
    replay,
    rewardAtHorizon,
  };
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'string' && one !== '');
}

function badOption(name: string, expected: string, got: unknown): UserError {
  return new UserError('BAD_CONFIG', `agent: ${name}: expected ${expected}, got ${describeValue(got)}`);
}
