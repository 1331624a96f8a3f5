/** Command `longplay models`: lists the language models that can be read and trained. */
import type { Command } from 'commander';
import { out } from '../../console/terminal.ts';
import { FAMILIES } from '../../policy/pretrained/families.ts';
import { BLOCK_TYPES } from '../../policy/pretrained/gguf/blocks.ts';
import { runCommand } from '../fail.ts';

/** Adds the command. */
export function models(program: Command): void {
  program
    .command('models')
    .description('list the families of language models that can be read and trained, and the forms they may have')
    .option('--json', 'one JSON object')
    .action(({ json }: { json?: boolean }) =>
      runCommand(async () => {
        const blocks = Object.keys(BLOCK_TYPES);
        if (json) {
          const families = FAMILIES.map(({ modelType, models, gguf, limits }) => ({
            ...{ family: modelType, models, folder: true, gguf: gguf !== undefined },
            ...{ trains: ['adapter', 'all weights'], limits },
          }));
          out.json({ families, ggufTypes: blocks });
          return;
        }
        for (const { modelType, models, gguf, limits } of FAMILIES) {
          out.line(`${modelType}: ${models}`);
          out.line(`  forms   folder${gguf === undefined ? '' : `, GGUF (${gguf})`}`);
          out.line('  trains  an adapter, or all weights');
          if (limits !== '') out.line(`  limits  ${limits}`);
        }
        out.line('\npolicy.path, doctor --model: any of');
        out.line('  folder  config.json, safetensors, tokenizer.json, a chat template');
        out.line(`  GGUF    one file, of ${blocks.join(', ')}`);
        out.line('  hub     hf:owner/name[@revision][/file.gguf]');
      }),
    );
}
