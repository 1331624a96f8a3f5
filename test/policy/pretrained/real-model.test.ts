import { existsSync } from 'node:fs';
import { expect, it } from 'vitest';
import { messageOf } from '../../../src/core/errors.ts';
import { openModel } from '../../../src/policy/pretrained/folder.ts';
import { checkModel } from '../../../src/run/check-model.ts';

/** Folder or file of a real model: LONGPLAY_MODEL, or where one lies beside the checkout. */
const path = process.env.LONGPLAY_MODEL ?? '../shared/models/SmolLM2-135M-Instruct.Q4_1.gguf';

/** Reason that the model cannot be opened here. */
function absent(): string | undefined {
  if (!existsSync(path)) return `there is no ${path}`;
  try {
    openModel(path, 4096);
    return undefined;
  } catch (thrown) {
    return messageOf(thrown);
  }
}

const reason = absent();
it.skipIf(reason !== undefined).each(['none', 'int8', 'int4'] as const)(
  `a real model learns what it generates: base %s${reason === undefined ? '' : ` (skipped: ${reason})`}`,
  async (quantize) => {
    const checks = await checkModel(path, quantize, { name: 'onnxruntime-node', threads: 1 });
    expect(checks.filter(({ ok }) => !ok)).toEqual([]);
    expect(checks.map(({ what }) => what)).toContain('scored again as the learner does');
  },
  600_000,
);
