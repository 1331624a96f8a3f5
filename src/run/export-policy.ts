/**
 * Exports a trained run's language model as files that other programs read: an adapter in peft's form, or a whole
 * folder.
 */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { LoraConfig } from '../compute/model/config.ts';
import { kindsThat, policyKindOf } from '../config/policy-kinds.ts';
import type { RunConfig } from '../config/run-config.ts';
import { UserError } from '../core/errors.ts';
import { parseHubName } from '../core/hub-name.ts';
import { loadNewestOf } from '../learning/learner/run-checkpoint.ts';
import { runStateOf } from '../learning/learner/run-state.ts';
import { writeAdapter } from '../policy/pretrained/adapter.ts';
import { openModel } from '../policy/pretrained/folder.ts';
import { writeMerged, writeTrained } from '../policy/pretrained/merge.ts';

export interface ExportedPolicy {
  readonly update: number;
  readonly folder: string;
  /** Remarks for its user. */
  readonly notes: readonly string[];
}

/**
 * Writes the newest weights of a run.
 * @param to  `adapter`: a peft folder; `hf`: a model folder with the adapter merged, or with the trained weights
 * @param out a new folder
 * @throws {UserError} BAD_ARGUMENT for a run of another kind or a folder that exists; BAD_CHECKPOINT
 */
export function exportPolicy(dir: string, config: RunConfig, to: 'adapter' | 'hf', out: string): ExportedPolicy {
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
  if (!lora) {
    if (to === 'adapter')
      throw new UserError('BAD_ARGUMENT', `${dir}: every weight was trained, there is no adapter; use --to hf`);
    writeTrained(base, params.values, out);
  } else if (to === 'adapter') {
    writeAdapter(out, { ...base.config, adapter: lora }, params.values, parseHubName(path)?.repo ?? resolve(path));
  } else writeMerged(base, lora, params.values, out);
  return { update: params.version, folder: out, notes };
}
