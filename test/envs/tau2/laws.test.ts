/** The env laws hold of τ²-bench in each domain and with each user. */
import * as tau2 from '../../../envs/tau2/index.ts';
import type { Rng } from '../../../src/core/rng.ts';
import { testEnvLaws } from '../laws.ts';

const NAMES = [
  'get_order_details',
  'calculate',
  'transfer_to_human_agents',
  'done',
  'get_users',
  'toggle_airplane_mode',
  'set_apn_settings',
  'no_such_tool',
  '',
  '🜂',
];
const ARGUMENTS = [
  '{}', '', '[]', 'null', '{"order_id": "#W2378156"}', '{"expression": "2 * (3 - 1"}', '{"expression": "9**9**9"}',
  '{"summary": "x"}', '{"a": 1', '{"order_id": {"a": [1.0, null]}}', '{"order_id": "\\ud800"}', '{"self": 1}', '{"apn_settings": 2.5}',
]; // biome-ignore format: a list
const CONTENTS = ['', ' ', 'Hello', '###STOP###', '{"a":1}', '\u2028'];

/** Replies, right ones and broken ones. */
function texts(rng: Rng): string {
  if (rng.int(4) === 0) return rng.pick([...CONTENTS, ...NAMES]);
  const calls = Array.from({ length: rng.int(4) }, () => ({ name: rng.pick(NAMES), arguments: rng.pick(ARGUMENTS) }));
  const usage = { promptTokens: 0, completionTokens: 0 };
  return JSON.stringify({ content: rng.pick(CONTENTS), calls, finish: 'stop', usage });
}

for (const options of [
  { domain: 'mock', user: 'solo' },
  { domain: 'mock' },
  { domain: 'retail' },
  { domain: 'airline' },
  { domain: 'telecom' },
  { domain: 'telecom', user: 'scripted' },
]) {
  const share = options.domain === 'mock' ? 0.05 : 0.02; // half a minute in all; LONGPLAY_LONG has ten times as many
  const subject = { createEnv: () => tau2.createEnv(options), texts };
  testEnvLaws(
    `tau2, ${Object.values(options).join(' ')},`,
    subject,
    share,
    !['airline', 'telecom'].includes(options.domain),
  );
}
