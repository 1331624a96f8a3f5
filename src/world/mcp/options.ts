/** Options of a world that an MCP server makes: the server, its tasks, its reset, its verifier and its limits. */
import { z } from 'zod';
import { MAX_MS } from '../../config/ranges.ts';
import { describeValue } from '../../core/describe-value.ts';
import type { EnvOptions } from '../../core/env.ts';
import { UserError } from '../../core/errors.ts';
import { parseJson } from '../../core/json-text.ts';
import { MCP } from '../../core/tool-world.ts';

const text = z.string().min(1);
const fields = z.record(z.string(), z.unknown());
const milliseconds = z.int().min(1).max(MAX_MS);
const call = z.strictObject({ tool: text, arguments: fields.default({}) });

/** Check that gives the reward 1 or 0: a call compared with a value, or the model's answer. */
const check = z.strictObject({
  /** Tool that reads the end state; the model's answer is compared where it is absent. */
  tool: text.optional(),
  arguments: fields.optional(),
  /** Expected value: a text is compared with the result's text, anything else with its structured content. */
  expect: z.unknown().optional(),
});

/** Check as a configuration or a task writes it. */
export type Check = z.infer<typeof check>;

const optionsSchema = z.strictObject({
  /** Command line of a server on standard input and output: one word an entry. `{folder}` is the episode's own folder. */
  command: z.array(text).min(1).optional(),
  /** Working folder of the command: by default `{folder}` where there is one, else that of this process. */
  cwd: text.optional(),
  /** URL of a server that speaks streamable HTTP. */
  url: z
    .string()
    .refine((url) => /^https?:/.test(url) && URL.canParse(url), 'expected a URL, e.g. http://127.0.0.1:3000/mcp')
    .optional(),
  /** Path of a module that exports `verify`, `tasks` or `createServer`. */
  module: text.optional(),
  /** Environment variables of the command, by name. `{folder}` as in `command`. */
  env: z.record(z.string(), z.string()).default({}),
  /** Names of variables that the command inherits beside PATH, HOME and their like. */
  variables: z.array(text).default([]),
  /** Name of the variable with the bearer token for `url`. */
  tokenEnv: text.optional(),
  /** Tasks: the list, or a JSONL file; the module's export `tasks` by default. */
  tasks: z.union([text, z.array(z.unknown()).min(1)]).optional(),
  /** Instructions before those of the server. */
  system: text.optional(),
  /** Names of the tools that the policy may call; all of them by default. The others are the verifier's. */
  tools: z.array(text).min(1).optional(),
  /** Start of an episode: a server of its own, a call that brings a used one to its beginning, or nothing at all. */
  reset: z.union([z.enum(['restart', 'none']), call]).default('restart'),
  /** Check of the end state, where no module exports `verify`. A task may have its own. */
  verify: check.optional(),
  /** End of an episode: a reply without calls; with `verified` also a reply after which the check is met. */
  until: z.enum(['answer', 'verified']).default('answer'),
  /** Processes of one env host at once; an episode beyond them fails. */
  maxServers: z.int().min(1).max(4096).default(256),
  /** Calls of an episode that reach the server; later ones are answered with an error. */
  maxCalls: z.int().min(1).max(100_000).default(256),
  /** UTF-16 units of a result that the policy reads; the rest is cut with a mark. */
  maxResultChars: z
    .int()
    .min(64)
    .max(2 ** 24)
    .default(32_768),
  /** Milliseconds of one call; all calls of a reply together have five times as long. */
  callTimeoutMs: milliseconds.default(10_000),
  /** Milliseconds until a server that was started lists its tools. */
  startTimeoutMs: milliseconds.default(20_000),
  /** Generation of the protocol: `legacy` (2025-11-25 and before), `auto`, or a revision. By default the first that answers. */
  spec: z.union([z.enum(['legacy', 'auto']), z.string().regex(/^\d{4}-\d\d-\d\d$/)]).optional(),
  /** Digest of the list of tools, as a refusal shows it; a server with another list is refused. */
  toolsHash: text.optional(),
  /** Least and largest reward. */
  rewardRange: z.tuple([z.number(), z.number()]).default([-1e6, 1e6]),
  /** Fate of the reward of an episode that the horizon cut: its state is verified then, or it is 0. */
  rewardAtHorizon: z.enum(['keep', 'drop']).default('keep'),
  /** `exact`: the server is a function of the calls, so a lost episode is restored by making them again. */
  replay: z.enum(['never', 'exact']).default('never'),
});

/** Options as a configuration writes them, paths made absolute, with their defaults. */
export type McpOptions = z.infer<typeof optionsSchema>;

const entrySchema = z.looseObject({
  /** Message of the user that the episode begins with. */
  prompt: text,
  system: text.optional(),
  /** Files of the episode's folder, by their paths in it. */
  files: z.record(z.string(), z.string()).optional(),
  /** Arguments of the reset beside those of the options. */
  reset: fields.optional(),
  verify: check.optional(),
  /** Expected value of the check. */
  expect: z.unknown().optional(),
});

/** Task of an MCP world: an entry of the list, with whatever else the user's module reads. */
export type McpTask = z.infer<typeof entrySchema>;

/** Word that stands for the path of the episode's folder. */
export const FOLDER = '{folder}';

/**
 * Checks the options.
 * @throws {UserError} BAD_CONFIG naming the option
 */
export function readMcpOptions(options: EnvOptions): McpOptions {
  const read = parse(optionsSchema, options, '');
  if (read.command && read.url !== undefined) throw badOption('', 'expected one of command and url, got both');
  if (!read.command && read.url === undefined && read.module === undefined) {
    throw badOption('', "give 'command' (a list of words), 'url', or 'module' (that exports createServer)");
  }
  const [least, largest] = read.rewardRange;
  if (least > largest)
    throw badOption('rewardRange', `expected [least, largest], got ${describeValue([least, largest])}`);
  return read;
}

/**
 * Checks a task.
 * @throws {UserError} BAD_CONFIG naming its place and the field
 */
export function readMcpTask(entry: unknown, index: number, options: McpOptions): McpTask {
  const at = `tasks[${index}]`;
  const task = parse(entrySchema, entry, at);
  const paths = Object.keys(task.files ?? {});
  if (paths.length > 0 && !usesFolder(options)) {
    throw badOption(`${at}.files`, `a task has files where a word of 'command' is, or contains, ${FOLDER}`);
  }
  const outside = paths.find(
    (path) => !/^[^/\\:]+(\/[^/\\:]+)*$/.test(path) || path.split('/').some((part) => /^\.\.?$/.test(part)),
  );
  if (outside !== undefined) {
    throw badOption(`${at}.files`, `expected paths within the folder, e.g. notes/a.txt, got ${describeValue(outside)}`);
  }
  const within = paths.find((path) => paths.some((other) => path.startsWith(`${other}/`)));
  if (within !== undefined) throw badOption(`${at}.files`, `a file lies in another file: ${describeValue(within)}`);
  return task;
}

/**
 * Names of the environment variables that a host must have to play a world.
 * @param url of the world's module; none are needed where it is not that of an MCP world
 */
export function listHostVariables(url: URL): readonly string[] {
  const options = url.searchParams.get(MCP);
  if (options === null) return [];
  const { variables, tokenEnv } = optionsSchema
    .pick({ variables: true, tokenEnv: true })
    .strip()
    .parse(parseJson(options));
  return tokenEnv === undefined ? variables : [...variables, tokenEnv];
}

/** Server as a message names it: its whole command line, its URL or its module. */
export function nameOfServer({ command, url, module }: Pick<McpOptions, 'command' | 'url' | 'module'>): string {
  return command?.join(' ') ?? url ?? module!;
}

/**
 * Describes the command that playing a world starts, for those who did not write its options.
 * @param url of the world's module; undefined where no command is started
 */
export function describeStartedServer(url: URL): string | undefined {
  const options = url.searchParams.get(MCP);
  if (options === null) return undefined;
  const { command, env } = readMcpOptions(parseJson(options) as EnvOptions);
  if (!command) return undefined;
  const names = Object.keys(env).join(', ');
  return `starts the MCP server: ${command.join(' ')}${names === '' ? '' : ` (with ${names})`}`;
}

/** True where each server has a folder of its own. */
export function usesFolder({ command = [], env }: McpOptions): boolean {
  return [...command, ...Object.values(env)].some((word) => word.includes(FOLDER));
}

/** Check of a task: its own fields over those of the options. Undefined where neither has one. */
export function checkOf(options: McpOptions, task: McpTask): Check | undefined {
  if (!options.verify && !task.verify && task.expect === undefined) return undefined;
  return { ...options.verify, ...(task.expect === undefined ? {} : { expect: task.expect }), ...task.verify };
}

function parse<T>(schema: z.ZodType<T>, value: unknown, at: string): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issue = result.error.issues[0]!;
  const path = [at, ...issue.path.map(String)].filter((part) => part !== '').join('.');
  if (issue.code === 'unrecognized_keys') {
    const known = Object.keys(optionsSchema.shape).join(', ');
    throw badOption(
      path,
      `no option '${issue.keys[0]}'${at === '' && issue.path.length === 0 ? `; it has: ${known}` : ''}`,
    );
  }
  let got = value;
  for (const key of issue.path) got = (got as Record<PropertyKey, unknown> | undefined)?.[key];
  throw badOption(path, `${issue.message}, got ${describeValue(got)}`);
}

function badOption(path: string, message: string): UserError {
  return new UserError('BAD_CONFIG', `${[MCP, path].filter((part) => part !== '').join(': ')}: ${message}`);
}
