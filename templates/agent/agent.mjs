// @ts-check
/**
 * NAME: look for a key where a note says it is, then answer.
 *
 * A task is a note. The program asks the model, runs the tool that it calls, and returns the reward. A throw is a failed episode, and
 * never a reward.
 */
const PLACES = ['drawer', 'shelf', 'basket', 'pocket'];

const TOOLS = [
  {
    type: 'function',
    function: {
      name: 'look',
      description: 'Looks in a place.',
      parameters: { type: 'object', properties: { place: { enum: PLACES } }, required: ['place'] },
    },
  },
  {
    type: 'function',
    function: { name: 'give_up', description: 'Ends the search.', parameters: { type: 'object', properties: {} } },
  },
];

/** Notes: each place is right in a quarter of them, and another one is named too. The last are held out. */
export const tasks = Array.from({ length: 120 }, (_, index) => {
  const place = PLACES[index % 4];
  const other = PLACES[(index + 1 + (Math.floor(index / 4) % 3)) % 4];
  const note =
    index % 8 < 4
      ? `The key is in the ${place}, not in the ${other}.`
      : `Not in the ${other}: the key is in the ${place}.`;
  return { note, place, split: index < 96 ? 'train' : 'test' };
});

/**
 * Plays one task.
 * @param {{ task: { note: string, place: string }, model: { baseURL: string, apiKey: string, name: string }, signal: AbortSignal }} episode
 */
export default async function agent({ task, model, signal }) {
  const messages = [
    { role: 'system', content: 'Find the key. You may look twice.' },
    { role: 'user', content: task.note },
  ];
  for (let looks = 1; looks <= 2; looks++) {
    const message = await ask(model, messages, signal);
    messages.push(message);
    const call = message.tool_calls?.[0];
    if (call?.function.name !== 'look') break;
    const { place } = JSON.parse(call.function.arguments);
    if (place === task.place) return { reward: looks === 1 ? 1 : 0.5, success: true, metrics: { looks } };
    messages.push({ role: 'tool', tool_call_id: call.id, content: `The ${place} is empty.` });
  }
  return { reward: 0 };
}

/** Asks the model that is trained; the URL is this episode's own. */
async function ask(model, messages, signal) {
  const response = await fetch(`${model.baseURL}/chat/completions`, {
    method: 'POST',
    signal,
    headers: { authorization: `Bearer ${model.apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: model.name, messages, tools: TOOLS, tool_choice: 'required' }),
  });
  if (!response.ok) throw new Error(`the model answered ${response.status}: ${await response.text()}`);
  const { choices } = await response.json();
  return choices[0].message;
}
