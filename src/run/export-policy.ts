/**
 * Exports a trained run's language model as files that other programs read: an adapter in peft's form, a whole folder, or
 * a GGUF file.
 */
import { existsSync } from 'node:fs';
import { basename } from 'node:path';
import type { LoraConfig } from '../compute/model/config.ts';
import { nameBaseModel } from '../config/paths.ts';
import { kindsThat, policyKindOf } from '../config/policy-kinds.ts';
import type { RunConfig } from '../config/run-config.ts';
import { UserError } from '../core/errors.ts';
import { loadNewestOf } from '../learning/learner/run-checkpoint.ts';
import { runStateOf } from '../learning/learner/run-state.ts';
import { writeAdapter } from '../policy/pretrained/adapter.ts';
import { openModel } from '../policy/pretrained/folder.ts';
import { type ExportType, exportGguf } from '../policy/pretrained/gguf/export.ts';
import { locateGguf } from '../policy/pretrained/locate.ts';
import { openMergedRows, openTrainedRows, writeMerged, writeTrained } from '../policy/pretrained/merge.ts';

/** Forms of an exported model, as the command line names them. */
export const EXPORT_FORMS = ['hf', 'adapter', 'gguf'] as const;

export type ExportForm = (typeof EXPORT_FORMS)[number];

export interface ExportOptions {
  /** Type of a GGUF file's matrices; f16 by default. */
  readonly type?: ExportType | undefined;
  /** Called as a GGUF file grows. */
  readonly onProgress?: ((bytes: number, of: number) => void) | undefined;
}

export interface ExportedPolicy {
  readonly update: number;
  /** Remarks for its user. */
  readonly notes: readonly string[];
}

/**
 * Writes the newest weights of a run.
 * @param to  `adapter`: a peft folder; `hf`: a model folder with the adapter merged, or with the trained weights; `gguf`: a
 *            file of the same for llama.cpp
 * @param out a new folder, or a new file
 * @throws {UserError} BAD_ARGUMENT for a run of another kind, a path that exists or a model without this form;
 *                     BAD_CHECKPOINT
 */
export function exportPolicy(
  dir: string,
  config: RunConfig,
  to: ExportForm,
  out: string,
  { type = 'f16', onProgress }: ExportOptions = {},
): ExportedPolicy {
  const { kind, path, quantize } = config.policy;
  if (!policyKindOf(config).isLanguageModel || path === undefined) {
    const expected = kindsThat('isLanguageModel');
    throw new UserError('BAD_ARGUMENT', `${dir}: expected a run of policy.kind ${expected}, got '${kind}'`);
  }
  if (existsSync(out)) throw new UserError('BAD_ARGUMENT', `${out} exists already; choose another --out`);
  const checkpoint = loadNewestOf(dir);
  const { identity, params } = runStateOf(checkpoint);
  const base = openModel(path);
  const lora: LoraConfig | undefined = identity.model.adapter;
  const notes: string[] = [];
  // A note for what the form cannot hold: the files work, but not to the last digit as here.
  if (quantize !== 'none') {
    notes.push(
      `the adapter was trained beside an ${quantize} base: beside the base as it is stored it is an approximation`,
    );
  }
  if (identity.model.valueHead) notes.push('the value head has no place in this form and is left out');
  if (to === 'gguf') {
    const rows = lora ? openMergedRows(base, lora, params.values) : openTrainedRows(base, params.values);
    const name = basename(nameBaseModel(path));
    const remarks = exportGguf(out, base, { type, rows, source: locateGguf(path), name, onProgress });
    return { update: params.version, notes: [...notes, ...remarks] };
  }
  if (!lora) {
    if (to === 'adapter')
      throw new UserError('BAD_ARGUMENT', `${dir}: every weight was trained, there is no adapter; use --to hf`);
    writeTrained(base, params.values, out);
  } else if (to === 'adapter') {
    writeAdapter(out, { ...base.config, adapter: lora }, params.values, nameBaseModel(path));
  } else writeMerged(base, lora, params.values, out);
  return { update: params.version, notes };
}
