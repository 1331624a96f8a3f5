/** Command `longplay models`: lists the language models that can be read and trained, and their memory and speed. */
import { type Command, Option } from 'commander';
import { err, out } from '../../console/terminal.ts';
import { columns } from '../../learning/evaluation/table.ts';
import { FAMILIES } from '../../policy/pretrained/families.ts';
import { readModelFacts } from '../../policy/pretrained/folder.ts';
import { BLOCK_TYPES } from '../../policy/pretrained/gguf/blocks.ts';
import { fetchModel } from '../../policy/pretrained/hub.ts';
import { commonMemory, countMemory, memoryRows, PASS_TOKENS } from '../../policy/pretrained/model-memory.ts';
import type { Quantize } from '../../policy/pretrained/quantize.ts';
import { measureSpeed } from '../../run/check-model.ts';
import { runCommand } from '../fail.ts';
import { refuseFlags } from '../flags.ts';

interface ModelsFlags {
  readonly memory?: boolean;
  readonly model?: string;
  readonly quantize: Quantize;
  readonly json?: boolean;
}

/** Adds the command. */
export function models(program: Command): void {
  program
    .command('models')
    .description('list the families of language models that can be read and trained, and the forms they may have')
    .option('--memory', 'instead: memory that common models take, computed from their shapes')
    .option('--model <path>', 'instead: memory of this model, and its tokens a second measured here')
    .addOption(
      new Option('--quantize <bits>', "with --model: of the model's base")
        .choices(['none', 'int8', 'int4'])
        .default('none'),
    )
    .option('--json', 'one JSON object')
    .action((flags: ModelsFlags, command: Command) =>
      runCommand(async () => {
        const { json, memory, model } = flags;
        if (model === undefined) refuseFlags(command, ['quantize'], 'it needs --model <path>, which is measured');
        if (memory || model !== undefined) {
          await reportMemory(flags);
          return;
        }
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

/** Reports the memory of common models, or of one that is given, which is measured too. */
async function reportMemory({ memory, model, quantize, json }: ModelsFlags): Promise<void> {
  const given = model === undefined ? undefined : await measureModel(model, quantize);
  const models = [...(memory ? commonMemory() : []), ...(given ? [given] : [])];
  if (json) {
    out.json({ passTokens: PASS_TOKENS, models });
    return;
  }
  for (const line of columns(memoryRows(models))) out.line(line);
  out.line(`\nMiB but for parameters and cache. none, int8, int4: the base by policy.quantize.`);
  out.line(
    `learner: adapters of rank 16, their state and what layers keep of a pass of ${PASS_TOKENS} tokens / with learner.recompute;`,
  );
  out.line('beside it the base, the logits and what one layer works with.');
  if (!given) return;
  const { prefill, decode1, decode8, residentBytes } = given.speed;
  const rate = (tokens: number) => `${tokens.toFixed(tokens < 10 ? 1 : 0)} tokens/s`;
  const resident = `${Math.round(residentBytes / 2 ** 20)} MiB resident, without a learner`;
  out.line(
    `\nmeasured here, base ${quantize}: prefill ${rate(prefill)}, decode ${rate(decode1)}, eight at a time ${rate(decode8)}; ${resident}`,
  );
}

/** Counts and measures a model. @throws {UserError} for a path or a name that is none */
async function measureModel(path: string, quantize: Quantize) {
  await fetchModel(path, (notice) => err.line(notice));
  const { config } = readModelFacts(path);
  if (err.isTTY) err.status(`measuring ${path}`);
  const speed = await measureSpeed(path, quantize, { name: 'auto' });
  err.status(undefined);
  return { model: path, ...countMemory(config), quantize, speed };
}
