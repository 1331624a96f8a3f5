/**
 * Forms: commands as tools with typed arguments, for policies that choose (`tools: forms`). Each is made into one command line,
 * which runs in the same shell as a free command does.
 */
import type { JsonSchema, Tool } from '../../src/core/model-call.ts';
import { quote } from './shell.ts';

/** Kinds of arguments: `path` is a file that is read or changed, `out` one that is written. The task lists what can stand for each. */
export type ArgumentKind =
  | 'path'
  | 'out'
  | 'folder'
  | 'word'
  | 'key'
  | 'value'
  | 'count'
  | 'column'
  | 'mode'
  | 'ending';

/** Values of arguments, by their kind. */
export type FormChoices = Readonly<Partial<Record<ArgumentKind, readonly string[]>>>;

/** Call of a form. */
export interface FormCall {
  readonly name: FormName;
  readonly args: Readonly<Record<string, string>>;
}

/** Set of forms that a family is played with. */
export type Toolbox = 'files' | 'text' | 'tables' | 'edits';

/** Files for results in between: every task may use them. */
export const SCRATCH = ['step1.txt', 'step2.txt'] as const;

interface Form {
  readonly description: string;
  /** Kinds of the arguments, in their order. */
  readonly args: Readonly<Record<string, ArgumentKind>>;
  /** Makes the command line; values are quoted already. */
  readonly command: (args: Readonly<Record<string, string>>) => string;
}

const PATH = { path: 'path' } as const;
const WITH_OUT = { path: 'path', out: 'out' } as const;

/** Pattern of a line that sets a key. Keys are plain words. */
const setting = (key: string) => `^${key}=`;

const FORMS = {
  list_files: { description: 'Lists all files.', args: {}, command: () => 'find . -type f | sort' },
  read_file: { description: 'Shows a file.', args: PATH, command: ({ path }) => `cat ${path}` },
  find_text: {
    description: 'Names the files that contain a word.',
    args: { word: 'word' },
    command: ({ word }) => `grep -rlF ${word} . | sort | sed 's#^[.]/##'`,
  },
  move: {
    description: 'Moves or renames a file.',
    args: { from: 'path', to: 'out' },
    command: ({ from, to }) => `mv ${from} ${to}`,
  },
  copy: {
    description: 'Copies a file.',
    args: { from: 'path', to: 'out' },
    command: ({ from, to }) => `cp ${from} ${to}`,
  },
  delete: { description: 'Deletes a file.', args: PATH, command: ({ path }) => `rm ${path}` },
  delete_kind: {
    description: 'Deletes the files whose names have an ending.',
    args: { ending: 'ending' },
    command: ({ ending }) => `find . -type f -name "*."${ending} -delete`,
  },
  make_folder: {
    description: 'Makes a folder.',
    args: { folder: 'folder' },
    command: ({ folder }) => `mkdir -p ${folder}`,
  },
  set_mode: {
    description: 'Sets the permissions of a file.',
    args: { mode: 'mode', path: 'path' },
    command: ({ mode, path }) => `chmod ${mode} ${path}`,
  },
  append: {
    description: 'Adds the lines of a file to the end of another.',
    args: { from: 'path', to: 'path' },
    command: ({ from, to }) => `cat ${from} >> ${to}`,
  },
  count_lines: { description: 'Counts lines.', args: PATH, command: ({ path }) => `wc -l < ${path}` },
  count_matches: {
    description: 'Counts the lines that contain a word.',
    args: { word: 'word', path: 'path' },
    command: ({ word, path }) => `grep -cF ${word} ${path}`,
  },
  keep_lines: {
    description: 'Writes the lines that contain a word.',
    args: { word: 'word', ...WITH_OUT },
    command: ({ word, path, out }) => `grep -F ${word} ${path} > ${out}`,
  },
  drop_lines: {
    description: 'Writes the lines that do not contain a word.',
    args: { word: 'word', ...WITH_OUT },
    command: ({ word, path, out }) => `grep -vF ${word} ${path} > ${out}`,
  },
  sort_lines: {
    description: 'Writes the lines sorted.',
    args: WITH_OUT,
    command: ({ path, out }) => `sort -o ${out} ${path}`,
  },
  sort_unique: {
    description: 'Writes the lines sorted, each once.',
    args: WITH_OUT,
    command: ({ path, out }) => `sort -u -o ${out} ${path}`,
  },
  first_lines: {
    description: 'Writes the first lines.',
    args: { count: 'count', ...WITH_OUT },
    command: ({ count, path, out }) => `head -n ${count} ${path} > ${out}`,
  },
  last_lines: {
    description: 'Writes the last lines.',
    args: { count: 'count', ...WITH_OUT },
    command: ({ count, path, out }) => `tail -n ${count} ${path} > ${out}`,
  },
  extract_column: {
    description: 'Writes one column of a CSV file.',
    args: { column: 'column', ...WITH_OUT },
    command: ({ column, path, out }) => `cut -d , -f ${column} ${path} > ${out}`,
  },
  extract_word: {
    description: 'Writes one word of each line.',
    args: { column: 'column', ...WITH_OUT },
    command: ({ column, path, out }) => `cut -d ' ' -f ${column} ${path} > ${out}`,
  },
  sum_numbers: {
    description: 'Adds up the numbers of a file, one a line.',
    args: PATH,
    command: ({ path }) => `awk '{ sum += $1 } END { print sum }' ${path}`,
  },
  join_files: {
    description: 'Joins two sorted CSV files by their first column.',
    args: { path: 'path', other: 'path', out: 'out' },
    command: ({ path, other, out }) => `join -t , ${path} ${other} > ${out}`,
  },
  replace_word: {
    description: 'Replaces a word wherever it stands in a file.',
    args: { from: 'word', to: 'word', path: 'path' },
    command: ({ from, to, path }) => `sed -i s/${from}/${to}/g ${path}`,
  },
  set_option: {
    description: 'Sets a key in a file of lines key=value.',
    args: { key: 'key', value: 'value', path: 'path' },
    command: ({ key, value, path }) => `sed -i s/${setting(key!)}.*/${key}=${value}/ ${path}`,
  },
  remove_option: {
    description: 'Removes a key from a file of lines key=value.',
    args: { key: 'key', path: 'path' },
    command: ({ key, path }) => `sed -i /${setting(key!)}/d ${path}`,
  },
  json_get: {
    description: 'Shows the value of a key in a JSON file.',
    args: { key: 'key', path: 'path' },
    command: ({ key, path }) => `jq -r .${key} ${path}`,
  },
  json_set: {
    description: 'Sets a key in a JSON file.',
    args: { key: 'key', value: 'value', path: 'path' },
    command: ({ key, value, path }) => `jq '.${key} = "${value}"' ${path} > edit.tmp && mv edit.tmp ${path}`,
  },
  json_remove: {
    description: 'Removes a key from a JSON file.',
    args: { key: 'key', path: 'path' },
    command: ({ key, path }) => `jq 'del(.${key})' ${path} > edit.tmp && mv edit.tmp ${path}`,
  },
  run_script: { description: 'Runs a script of bash.', args: PATH, command: ({ path }) => `bash ${path}` },
} as const satisfies Readonly<Record<string, Form>>;

/** Name of a form. */
export type FormName = keyof typeof FORMS;

const TOOLBOXES: Readonly<Record<Toolbox, readonly FormName[]>> = {
  files: [
    'list_files',
    'read_file',
    'find_text',
    'move',
    'copy',
    'append',
    'delete',
    'delete_kind',
    'make_folder',
    'set_mode',
  ],
  text: [
    'list_files',
    'read_file',
    'count_lines',
    'count_matches',
    'keep_lines',
    'drop_lines',
    'sort_lines',
    'sort_unique',
    'first_lines',
    'last_lines',
    'append',
  ],
  tables: [
    'read_file',
    'count_lines',
    'count_matches',
    'keep_lines',
    'extract_column',
    'extract_word',
    'sort_lines',
    'sort_unique',
    'last_lines',
    'sum_numbers',
    'join_files',
  ],
  edits: [
    'read_file',
    'replace_word',
    'set_option',
    'remove_option',
    'json_get',
    'json_set',
    'json_remove',
    'run_script',
    'set_mode',
    'copy',
    'move',
    'delete',
  ],
};

/**
 * Lists the forms of a task as tools: those of its toolbox whose arguments the task has values for.
 * @param answer whether the task asks for an answer, and of what kind
 */
export function listForms(toolbox: Toolbox, choices: FormChoices, answer: 'none' | 'number' | 'text'): readonly Tool[] {
  const forms = TOOLBOXES[toolbox].filter((name) =>
    Object.values(FORMS[name].args).every((kind) => (choices[kind]?.length ?? 0) > 0),
  );
  const tools = forms.map((name): Tool => {
    const { description, args } = FORMS[name];
    return {
      name,
      description,
      parameters: schemaOf(Object.entries(args).map(([arg, kind]) => [arg, { enum: choices[kind]! }])),
    };
  });
  return [...tools, answer === 'none' ? SUBMIT : submitOf(answer)];
}

/** Name of the tool that ends an episode. */
export const SUBMIT_NAME = 'submit';

const SUBMIT: Tool = {
  name: SUBMIT_NAME,
  description: 'Ends the task: everything is as it was asked for.',
  parameters: schemaOf([]),
};

function submitOf(answer: 'number' | 'text'): Tool {
  const type = answer === 'number' ? 'integer' : 'string';
  return {
    name: SUBMIT_NAME,
    description: 'Ends the task with its answer.',
    parameters: schemaOf([['answer', { type }]]),
  };
}

/** Schema of arguments that are all required. */
export function schemaOf(properties: readonly (readonly [name: string, schema: JsonSchema])[]): JsonSchema {
  return {
    type: 'object',
    properties: Object.fromEntries(properties.map(([name, schema]) => [name, { type: 'string', ...schema }])),
    required: properties.map(([name]) => name),
  };
}

/** Makes the command line of a call; a text that says what is wrong where the arguments do not fit. */
export function commandOf(name: string, args: Readonly<Record<string, unknown>>, choices: FormChoices): FormCommand {
  if (!Object.hasOwn(FORMS, name)) return { error: `there is no tool ${JSON.stringify(name)}` };
  const form: Form = FORMS[name as FormName];
  const values: Record<string, string> = {};
  for (const [arg, kind] of Object.entries(form.args)) {
    const value = args[arg];
    const listed = choices[kind] ?? [];
    if (typeof value !== 'string' || !listed.includes(value)) {
      return { error: `${name}: ${arg} must be one of ${listed.join(', ')}` };
    }
    values[arg] = quote(value);
  }
  // `cat a >> a` is refused by GNU's cat, and doubles the file here.
  if (name === 'append' && values.from === values.to) return { error: `${name}: from and to must be different files` };
  return { command: form.command(values) };
}

/** Command line of a call, or what is wrong with it. */
export type FormCommand =
  | { readonly command: string; readonly error?: undefined }
  | { readonly command?: undefined; readonly error: string };
