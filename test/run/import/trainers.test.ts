/**
 * Forms of other trainers, loaded by the trainers themselves: the tokens that each would learn are those of the model's turns.
 * `LONGPLAY_TRAINER_PYTHON` names an interpreter that has them; a library that is not there is skipped, by name. Unsloth trains
 * by TRL's trainer, and reads its form.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { writeTinyChatModel } from '../../../experiments/tiny-chat-model.ts';
import { typed } from '../../support/typed.ts';

const folder = mkdtempSync(join(tmpdir(), 'longplay-trainers-'));
afterAll(() => rmSync(folder, { recursive: true }));

const model = join(folder, 'model');
const run = join(folder, 'run');
const call = (id: string, name: string, args: string) => ({
  id,
  type: 'function',
  function: { name, arguments: args },
});
/** Conversations whose tools have nothing in common: a table has one shape for all rows. */
const conversations = [
  {
    tools: [
      {
        type: 'function',
        function: { name: 'f', parameters: { type: 'object', properties: { x: { type: 'number' } } } },
      },
    ],
    messages: [
      { role: 'system', content: 'S' },
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: null, tool_calls: [call('a', 'f', '{"x": 1}'), call('b', 'f', '{"y": [2]}')] },
      { role: 'tool', tool_call_id: 'a', content: 'one' },
      { role: 'tool', tool_call_id: 'b', content: 'two' },
      { role: 'assistant', content: 'ok' },
    ],
    reward: 1,
  },
  {
    tools: [
      { type: 'function', function: { name: 'g', description: 'G', parameters: { type: 'object', required: ['q'] } } },
    ],
    messages: [
      { role: 'user', content: 'ho' },
      { role: 'assistant', content: 'bye' },
    ],
    reward: 0,
  },
];

/** Template that prints arguments as JSON values, as most do: a text would be printed within quotation marks. */
const TEMPLATE = [
  '{% if tools %}<tools>{% for t in tools %}{{ t | tojson }}{% endfor %}</tools>\n{% endif %}',
  '{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content or "" }}',
  '{% for c in message.tool_calls or [] %}<tool_call>{"name": "{{ c.function.name }}", ',
  '"arguments": {{ c.function.arguments | tojson }}}</tool_call>{% endfor %}<|im_end|>\n{% endfor %}',
  '{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}',
].join('');

beforeAll(async () => {
  const source = join(folder, 'source.jsonl');
  writeFileSync(source, conversations.map((one) => `${JSON.stringify(one)}\n`).join(''));
  expect((await typed('import', source, '--from', 'openai', '--out', run)).status).toBe(0);
  writeTinyChatModel(model);
});

const python = process.env.LONGPLAY_TRAINER_PYTHON ?? 'python3';
const OPEN = `
import sys, json
from transformers import AutoTokenizer
tok = AutoTokenizer.from_pretrained(sys.argv[2])
tok.chat_template = sys.argv[3]
`;
const LOAD = `
from datasets import load_dataset
rows = load_dataset('json', data_files=sys.argv[1], split='train', cache_dir=sys.argv[1] + '.cache')
`;

/** Trainers: what they import, their form, and a script that prints what they learn, a JSON text a row. */
const TRAINERS = [
  {
    name: 'TRL',
    needs: 'from trl import SFTTrainer',
    form: 'trl',
    ending: 'jsonl',
    script: `${LOAD}
from trl import SFTTrainer, SFTConfig
args = SFTConfig(output_dir=sys.argv[1] + '.out', max_steps=1, save_strategy='no', report_to=[], use_cpu=True, bf16=False, max_length=2048)
trainer = SFTTrainer(model=sys.argv[2], args=args, train_dataset=rows, processing_class=tok)
assert 0 < trainer.train().training_loss < 100
for row in trainer.train_dataset: print(json.dumps(tok.decode(row['input_ids'])))
`,
  },
  {
    name: 'Axolotl',
    needs: 'from axolotl.prompt_strategies.chat_template import ChatTemplateStrategy',
    form: 'chatml',
    ending: 'jsonl',
    script: `${LOAD}
from axolotl.prompt_strategies.chat_template import ChatTemplatePrompter, ChatTemplateStrategy
prompter = ChatTemplatePrompter(tok, chat_template=sys.argv[3], message_property_mappings={'role': 'role', 'content': 'content'})
strategy = ChatTemplateStrategy(prompter, tokenizer=tok, train_on_inputs=False, sequence_len=2048, roles_to_train=['assistant'])
for row in rows:
    one = strategy.tokenize_prompt(row)
    print(json.dumps(tok.decode([i for i, label in zip(one['input_ids'], one['labels']) if label != -100])))
`,
  },
  {
    name: 'prime-rl',
    needs: 'from prime_rl.utils.chat_template import deserialize_tool_calls, normalize_messages, render_messages',
    form: 'chatml',
    ending: 'jsonl',
    script: `${LOAD}
from prime_rl.utils.chat_template import deserialize_tool_calls, normalize_messages, render_messages
for row in rows:
    messages = deserialize_tool_calls(normalize_messages(row['messages'], default_role='assistant'))
    print(json.dumps(tok.decode(render_messages(tok, messages, tools=row['tools']))))
`,
  },
  {
    name: 'verl',
    needs: 'from verl.utils.dataset.multiturn_sft_dataset import MultiTurnSFTDataset',
    form: 'verl',
    ending: 'parquet',
    script: `
from verl.utils.dataset.multiturn_sft_dataset import MultiTurnSFTDataset
rows = MultiTurnSFTDataset([sys.argv[1]], tok, {'max_length': 4096})
for i in range(len(rows)):
    print(json.dumps(tok.decode([int(t) for t, k in zip(rows[i]['input_ids'], rows[i]['loss_mask']) if k])))
`,
  },
] as const;

for (const { name, needs, form, ending, script } of TRAINERS) {
  const has = spawnSync(python, ['-c', needs], { timeout: 120_000 }).status === 0;
  if (!has) console.log(`skipped: no ${name} for Python (LONGPLAY_TRAINER_PYTHON names an interpreter that has it)`);
  it.skipIf(!has)(`${name} reads its form, calls of tools included`, { timeout: 300_000 }, async () => {
    const path = join(folder, `${name}.${ending}`);
    expect((await typed('export', run, '--format', form, '--out', path)).status).toBe(0);
    const program = spawnSync(python, ['-c', OPEN + script, path, model, TEMPLATE], { encoding: 'utf8' });
    expect(program.status, program.stderr).toBe(0);
    const learnt = program.stdout.split('\n').filter((line) => line.startsWith('"'));
    expect(learnt).toHaveLength(2);
    const [first, second] = learnt.map((line) => JSON.parse(line) as string);
    for (const text of ['{"name": "f", "arguments": {"x": 1}}', '{"name": "f", "arguments": {"y": [2]}}', 'ok']) {
      expect(first).toContain(text);
    }
    expect(second).toContain('bye');
  });
}
