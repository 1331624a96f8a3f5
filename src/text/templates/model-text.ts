/** Tokenizer and chat template of a model's folder, as Hugging Face writes it. */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { MAX_DATA_BYTES, readText } from '../../core/bounded-file.ts';
import { describeValue } from '../../core/describe-value.ts';
import { messageOf, UserError } from '../../core/errors.ts';
import { findDuplicateKey, parseJson } from '../../core/json-text.ts';
import { isRecord } from '../../core/record.ts';
import { ChatTemplate, templateText, templateTokens } from './chat-template.ts';
import { BpeTokenizer } from './tokenizer.ts';

/** JSON object. */
export type Json = Readonly<Record<string, unknown>>;

/** Tokenizer of a model and, where it has one, its chat template. */
export interface PretrainedText {
  readonly tokenizer: BpeTokenizer;
  readonly template: ChatTemplate | undefined;
}

/**
 * Opens tokenizer and template of a folder.
 * @param withTools true for the template of conversations with tools, where a model has one of its own for them
 * @throws {UserError} BAD_CHECKPOINT naming the file
 */
export function openText(folder: string, withTools = false): PretrainedText {
  const path = resolve(folder);
  const config = readJson(path, 'tokenizer_config.json');
  const tokenizer = new BpeTokenizer(readJson(path, 'tokenizer.json'), config, path);
  const file = join(path, 'chat_template.jinja');
  const text = existsSync(file) ? readText(file) : templateText(config.chat_template, withTools);
  return { tokenizer, template: text === undefined ? undefined : new ChatTemplate(text, templateTokens(config), path) };
}

/**
 * Reads a JSON file.
 * @throws {UserError} BAD_CHECKPOINT for a file that is missing or holds no JSON object
 */
export function readJson(folder: string, name: string): Json {
  const path = join(folder, name);
  if (!existsSync(path)) throw new UserError('BAD_CHECKPOINT', `${folder}: ${name} is missing`);
  let text: string;
  try {
    text = readText(path, MAX_DATA_BYTES);
  } catch (thrown) {
    throw new UserError('BAD_CHECKPOINT', messageOf(thrown), { cause: thrown });
  }
  let json: unknown;
  try {
    json = parseJson(text);
  } catch (thrown) {
    throw new UserError('BAD_CHECKPOINT', `${path}: ${messageOf(thrown)}`, { cause: thrown });
  }
  const twice = findDuplicateKey(text);
  if (twice !== undefined) {
    throw new UserError('BAD_CHECKPOINT', `${path}: an object in it has the name ${describeValue(twice)} twice`);
  }
  if (isRecord(json)) return json;
  throw new UserError('BAD_CHECKPOINT', `${path}: expected a JSON object`);
}
