/**
 * Parity with Hugging Face: recorded strings, id runs, conversations, models and adapters, computed again from the very
 * files beside the recordings.
 */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { messageOf, UserError } from '../../src/core/errors.ts';
import type { Difference, Parity, ParityCounts } from '../../src/core/parity.ts';
import { type ChatMessage, ChatTemplate } from '../../src/text/templates/chat-template.ts';
import { readJson } from '../../src/text/templates/model-text.ts';
import { BpeTokenizer } from '../../src/text/templates/tokenizer.ts';
import { replayAdapter, replayModel } from './llm-models.ts';

type Report = (difference: Difference) => void;

interface RecordedString {
  readonly text: string;
  readonly ids: readonly number[];
  readonly decoded: string;
  readonly decoded_without_special: string;
  readonly ids_special_split: readonly number[];
}
interface RecordedRun {
  readonly ids: readonly number[];
  readonly decoded: string;
  readonly prefixes: readonly string[];
}
interface RecordedConversation {
  readonly template: string;
  readonly messages: readonly ChatMessage[];
  readonly tools: readonly unknown[] | null;
  readonly add_generation_prompt: boolean;
  readonly variables: Readonly<Record<string, unknown>>;
  readonly text?: string;
  readonly ids?: readonly number[];
  readonly error?: string;
  readonly python_numbers?: boolean;
}

/** The recordings of a golden folder; a file stands for itself. @throws {UserError} for a folder without any */
export function recordingsIn(path: string): readonly string[] {
  if (!existsSync(path) || !statSync(path).isDirectory()) return [path];
  const wanted = /^(strings|id-runs|conversations)\.jsonl$|^expected\.json$/;
  const found = (readdirSync(path, { recursive: true }) as string[]).filter((file) => wanted.test(basename(file)));
  if (found.length === 0) throw new UserError('BAD_TRACE', `${path}: expected recordings of models, strings or chats`);
  return found.sort().map((file) => join(path, file));
}

export const replay: Parity = async (records, report, file) => {
  const first = records[0] as Readonly<Record<string, unknown>> | undefined;
  if (first && 'ids_special_split' in first) return replayStrings(records as readonly RecordedString[], report, file);
  if (first && 'prefixes' in first) return replayRuns(records as readonly RecordedRun[], report, file);
  if (first && 'messages' in first) return replayChats(records as readonly RecordedConversation[], report, file);
  if (first && 'merged' in first) return replayAdapter(first, report, dirname(file));
  if (first && 'sequences' in first) return replayModel(first, report, dirname(file));
  throw new UserError('BAD_TRACE', `${file}: expected strings, id runs, conversations, or what a model computes`);
};

function replayStrings(rows: readonly RecordedString[], report: Report, file: string): ParityCounts {
  for (const { name, tokenizer } of tokenizersIn(dirname(file))) {
    for (const [n, row] of rows.entries()) {
      const same = comparing(report, `${name}, string ${n}`);
      same('ids', row.ids, tokenizer.encode(row.text));
      same('ids of plain text', row.ids_special_split, tokenizer.encodePlain(row.text));
      same('decoding', row.decoded, tokenizer.decode(row.ids));
      same(
        'decoding without special tokens',
        row.decoded_without_special,
        tokenizer.decode(row.ids, { special: false }),
      );
    }
  }
  return { episodes: rows.length, steps: 0 };
}

function replayRuns(rows: readonly RecordedRun[], report: Report, file: string): ParityCounts {
  for (const { name, tokenizer } of tokenizersIn(dirname(file))) {
    for (const [n, { ids, decoded, prefixes }] of rows.entries()) {
      const same = comparing(report, `${name}, run ${n}`);
      same('decoding', decoded, tokenizer.decode(ids));
      for (const [i, prefix] of prefixes.entries()) {
        same(`decoding of the first ${i + 1}`, prefix, tokenizer.decode(ids.slice(0, i + 1)));
      }
    }
  }
  return { episodes: rows.length, steps: 0 };
}

function replayChats(rows: readonly RecordedConversation[], report: Report, file: string): ParityCounts {
  const { tokenizer } = tokenizersIn(join(dirname(file), '../tokenizer'))[0]!;
  const templates = new Map<string, ChatTemplate>();
  for (const [n, row] of rows.entries()) {
    const { template: name } = row;
    const path = join(dirname(file), `${name}.jinja`);
    const template =
      templates.get(name) ?? new ChatTemplate(readFileSync(path, 'utf8'), { eos_token: '<|im_end|>' }, path);
    templates.set(name, template);
    const same = comparing(report, `conversation ${n} (${name})`);
    const { messages, tools, add_generation_prompt: addGenerationPrompt, variables } = row;
    try {
      const text = template.render(messages, { tools, addGenerationPrompt, variables });
      if (row.error !== undefined) same('rendering', `an error: ${row.error}`, text);
      // JavaScript prints 1e-7 where Python prints 1e-07: allowed where the recording marks it, and there alone.
      else if (row.python_numbers) same('rendering', row.text?.replaceAll('1e-07', '1e-7'), text);
      else {
        same('rendering', row.text, text);
        same('ids of the rendering', row.ids, tokenizer.encode(text));
      }
    } catch (thrown) {
      if (row.error === undefined) same('rendering', row.text, messageOf(thrown));
    }
  }
  return { episodes: rows.length, steps: 0 };
}

/** The tokenizer of a folder, in both forms that its merges have had. */
function tokenizersIn(folder: string): { readonly name: string; readonly tokenizer: BpeTokenizer }[] {
  const config = readJson(folder, 'tokenizer_config.json');
  return ['tokenizer.json', 'tokenizer.merges-as-strings.json']
    .filter((name) => existsSync(join(folder, name)))
    .map((name) => ({ name, tokenizer: new BpeTokenizer(readJson(folder, name), config, folder) }));
}

function comparing(report: Report, where: string) {
  return (what: string, expected: unknown, got: unknown): void => {
    if (JSON.stringify(expected) !== JSON.stringify(got)) report({ where, what, expected, got });
  };
}
