/**
 * What llama.cpp computes of a GGUF file, by the package node-llama-cpp in a folder of its own:
 *
 *     node test/support/llama-greedy.mjs <folder that has it in node_modules> <file> '{"prompts": [[1, 2]], "length": 64, "strings": ["a"]}'
 *
 * Prints JSON: the most likely ids behind each prompt, and the ids of each string.
 */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [, , folder, modelPath, asked] = process.argv;
const { prompts, length, strings } = JSON.parse(asked);
const found = createRequire(join(folder, 'index.js')).resolve('node-llama-cpp');
const { getLlama, LlamaLogLevel } = await import(pathToFileURL(found).href);
const llama = await getLlama({ gpu: false, build: 'never', skipDownload: true, logLevel: LlamaLogLevel.error });
const model = await llama.loadModel({ modelPath, gpuLayers: 0 });
const context = await model.createContext({
  contextSize: 256,
  threads: 1,
  // Keys and values as they are here; its own default are halves.
  flashAttention: false,
  experimentalKvCacheKeyType: 'F32',
  experimentalKvCacheValueType: 'F32',
});
const sequence = context.getSequence();
const greedy = [];
for (const prompt of prompts) {
  await sequence.clearHistory();
  const ids = [];
  const generation = sequence.evaluate(prompt, { temperature: 0, yieldEogToken: true });
  for await (const id of generation) {
    ids.push(id);
    if (ids.length === length) break;
  }
  greedy.push(ids);
}
const ids = strings.map((text) => model.tokenize(text, true));
process.stdout.write(JSON.stringify({ greedy, ids, ends: [model.tokens.eos, model.tokens.eot] }), () =>
  process.exit(0),
);
