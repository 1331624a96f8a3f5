/** Every format reads back what it writes, and reads anything else without an exception. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { registry } from '../../../envs/registry.ts';
import type { FormatId, WorldPrompt } from '../../../src/core/prompt.ts';
import { localUrl } from '../../../src/runtime/module-url.ts';
import { callOf, fill } from '../../../src/text/prompts/action-form.ts';
import { conversation, instructions, renderObservation } from '../../../src/text/prompts/conversation.ts';
import { FORMATS } from '../../../src/text/prompts/formats.ts';
import { estimateTokens, type HistoryPolicy, selectTurns } from '../../../src/text/prompts/history.ts';
import { worldPrompt } from '../../../src/text/prompts/world-prompt.ts';
import { renderChat } from '../../../src/text/templates/plain-template.ts';
import { loadWorld } from '../../../src/world/open-world.ts';

const runs = process.env.LONGPLAY_LONG === '1' ? 5000 : 400;
const formats = Object.keys(FORMATS) as FormatId[];
/** The prompts of all worlds that are acted in by texts, by id. */
const WORLDS: Record<string, WorldPrompt> = {};
for (const [id, url] of Object.entries(registry)) {
  const world = await loadWorld(localUrl(url), id);
  if (!world.tools) WORLDS[id] = worldPrompt(world, {}, 'A world.');
}
const worlds = Object.keys(WORLDS);

/** Actions that the prompt of a world asks for. */
function actions(world: WorldPrompt): fc.Arbitrary<string> {
  const value = fc.stringMatching(/^[a-z0-9]+( [a-z0-9]+){0,3}$/);
  return fc
    .constantFrom(...world.forms)
    .chain((form) => fc.array(value, { minLength: 3, maxLength: 3 }).map((values) => [form, values] as const))
    .map(([form, values]) => {
      let i = 0;
      return form.template.replace(/\{[a-z_]+\}/g, () => values[i++]!);
    });
}

/** Thoughts without the marks that the formats themselves use. */
const thought = fc
  .string({ unit: 'grapheme', maxLength: 80 })
  .filter((text) => !/Action:|```|<\/?think>|\r/.test(text) && !/[\u2028\u2029]/.test(text));

/** Texts that look like answers and are wrong somewhere. */
const scraps = fc
  .array(
    fc.oneof(
      fc.string({ unit: 'binary', maxLength: 12 }),
      fc.constantFrom(
        'Action:',
        'Thought:',
        '```',
        '```python\n',
        '</think>',
        '<think>',
        '\n',
        '{',
        '}',
        '"',
        '(',
        ')',
      ),
      fc.constantFrom('"function_name": "get"', '"arguments": {"item": "1 oak log"}', 'get(', 'craft(makes="1 a", '),
      fc.constantFrom(
        'get 1 oak log',
        '"__proto__"',
        'toString(',
        '"function_name": "constructor"',
        '\\',
        ',',
        '#',
        '=',
      ),
    ),
    { maxLength: 12 },
  )
  .map((parts) => parts.join(''));

describe.each(formats)('the %s format', (id) => {
  const format = FORMATS[id];

  it.each(worlds)('reads back every answer it asks for in %s', (name) => {
    const world = WORLDS[name]!;
    fc.assert(
      fc.property(thought, actions(world), (why, action) => {
        const read = format.parse(format.print(why, action, world), world);
        expect(read).toEqual({ action, thought: id === 'action' ? '' : why.trim() });
      }),
      { numRuns: Math.ceil(runs / 4) },
    );
  });

  it('makes an action or a stated error of any text', () => {
    fc.assert(
      fc.property(scraps, fc.constantFrom(...worlds, 'unknown'), (text, name) => {
        const read = format.parse(text, WORLDS[name] ?? worldPrompt({}, {}, 'A world.'));
        if ('action' in read) expect(read.action.trim()).not.toBe('');
        else expect(read.error).toMatch(/^.{10,}/s);
      }),
      { numRuns: runs },
    );
  });

  it('reads no action out of a thought that was cut off', () => {
    const world = WORLDS.textcraft!;
    const inside = ['get 1 oak log', 'Action:\nget 1 oak log', '```get 1 oak log```', '{"function_name": "inventory"}'];
    for (const text of inside.flatMap((one) => [
      `<think>${one}`,
      `\n<think>\nso: ${one}`,
      `<think>a</think><think>${one}`,
    ])) {
      expect(format.parse(text, world), text).toEqual({ error: expect.stringMatching(/<think>/) });
    }
  });

  it('reads the answer behind a reasoning model’s own thoughts', () => {
    const world = WORLDS.textcraft!;
    const text = `<think>Action: no. \`\`\`x\`\`\` {"a":1}</think>\n${format.print('', 'get 1 oak log', world)}`;
    expect(format.parse(text, world)).toMatchObject({ action: 'get 1 oak log' });
  });
});

describe('what models write', () => {
  const world = WORLDS.textcraft!;
  it.each([
    ['react', 'Thought: a\nAction: get 1 oak log', 'get 1 oak log'],
    ['react', '**Thought:** a\n\n**Action:** `get 1 oak log`.', 'get 1 oak log'],
    ['react', 'Action:\n\nget 1 oak log\nObservation: Got 1 oak log', 'get 1 oak log'],
    [
      'function-calling',
      '```json\n{"function_name": "get", "arguments": "{\\"item\\": \\"1 oak log\\"}"}\n```',
      'get 1 oak log',
    ],
    ['function-calling', 'Sure! {"thought": "t", "function_name": "inventory"} Good luck', 'inventory'],
    ['code', "```python\nget('1 oak log')  # done\n```", 'get 1 oak log'],
    ['code', 'craft("4 stick", uses="2 oak planks",)', 'craft 4 stick using 2 oak planks'],
    ['fenced', 'I will ```inventory```', 'inventory'],
  ] as const)('%s: %s', (id, text, action) => {
    expect(FORMATS[id].parse(text, world)).toMatchObject({ action });
  });

  it.each([
    ['react', 'Action: a\nAction: b', 'Only one'],
    ['react', 'get 1 oak log', "no 'Action:'"],
    ['react', 'Thought: x\nAction:', 'empty'],
    ['function-calling', '{"function_name": "fly", "arguments": {}}', 'no function "fly"'],
    ['function-calling', '{"function_name": "get", "arguments": {"item": "1 oak log", "x": 1}}', 'no parameter "x"'],
    ['function-calling', '{"function_name": "get", "arguments": {}}', 'needs "item"'],
    ['code', 'get("1 oak log")\nget("1 oak log")', 'exactly one'],
    ['code', 'import os', 'exactly one'],
    ['code', 'get(item=open("x"))', 'quotes or numbers'],
    ['fenced', '```a``` and ```b```', 'only one'],
    ['think', 'get 1 oak log', '<think>'],
  ] as const)('%s refuses %s', (id, text, reason) => {
    expect(FORMATS[id].parse(text, world)).toEqual({ error: expect.stringContaining(reason) });
  });
});

it('takes every action apart and puts it together again', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.constantFrom(...worlds), (text, name) => {
      const { form, args } = callOf(WORLDS[name]!.forms, text);
      expect(fill(form, args)).toBe(text);
    }),
    { numRuns: runs },
  );
});

describe('history', () => {
  const policy: fc.Arbitrary<HistoryPolicy> = fc.oneof(
    fc.constant({ type: 'full' } as const),
    fc.nat(8).map((turns) => ({ type: 'window', turns }) as const),
    fc.nat(4000).map((promptTokens) => ({ type: 'budget', promptTokens }) as const),
  );

  it('keeps whole turns: the first, and the newest without a gap', () => {
    fc.assert(
      fc.property(
        policy,
        fc.array(fc.integer({ min: 1, max: 900 }), { maxLength: 30 }),
        fc.nat(500),
        (how, costs, fixed) => {
          const kept = selectTurns(how, costs, fixed);
          expect([...kept]).toEqual([...new Set(kept)].sort((a, b) => a - b));
          const rest = kept.filter((turn) => turn > 0);
          if (rest.length > 0) {
            expect(kept[0]).toBe(0);
            expect(rest.at(-1)).toBe(costs.length - 1);
            expect(rest.length).toBe(costs.length - rest[0]!);
          }
          if (how.type === 'full') expect(kept.length).toBe(costs.length);
          if (how.type === 'window') expect(rest.length).toBe(Math.min(how.turns, Math.max(0, costs.length - 1)));
          if (how.type === 'budget' && kept.length > 0) {
            const used = fixed + kept.reduce((sum, turn) => sum + costs[turn]!, 0);
            expect(used).toBeLessThanOrEqual(how.promptTokens);
            const next = rest.length > 0 ? rest[0]! - 1 : costs.length - 1;
            if (next > 0) expect(used + costs[next]!).toBeGreaterThan(how.promptTokens);
          }
        },
      ),
      { numRuns: runs },
    );
  });

  it('makes conversations in which the speakers take turns', () => {
    const turns = Array.from({ length: 9 }, (_, i) => ({ message: `message ${i}`, answer: `answer ${i}` }));
    for (const type of ['full', 'window'] as const) {
      const messages = conversation('start', turns, 'now', type === 'full' ? { type } : { type, turns: 2 });
      messages.forEach(({ role }, i) => {
        expect(role).toBe(i % 2 === 0 ? 'user' : 'assistant');
      });
      expect(messages.at(-1)!.content).toBe('now');
      expect(messages.map(({ content }) => content)).toContain('message 0');
      expect(messages.length).toBe(3 + 2 * (type === 'full' ? 9 : 3));
    }
  });
});

it('writes instructions that name every action and the form of the answer', () => {
  for (const [name, world] of Object.entries(WORLDS)) {
    for (const id of formats) {
      const text = instructions(world, FORMATS[id]);
      for (const { meaning } of world.forms) expect(text, `${name} ${id}`).toContain(meaning);
      expect(estimateTokens(text)).toBeLessThan(1200);
    }
  }
});

it('puts errors before and actions after the observation, and renders chats as text', () => {
  expect(renderObservation('seen', 'wrong', ['a', 'b'])).toBe('wrong\n\nseen\n\nAvailable actions:\na\nb');
  const messages = [{ role: 'user', content: 'hi' }] as const;
  for (const template of ['plain', 'chatml', 'llama3'] as const) {
    const { prompt, stop } = renderChat(template, messages);
    expect(prompt).toContain('hi');
    expect(stop.length).toBeGreaterThan(0);
  }
});

describe('short instructions', () => {
  const shortened = worlds.filter((id) => WORLDS[id]!.short !== undefined);

  it('are there for every world', () => {
    expect(shortened).toEqual(worlds.filter((id) => WORLDS[id]!.forms.length > 0));
  });

  it.each(shortened)('of %s name every form, in few words, and the format', (id) => {
    const world = WORLDS[id]!;
    const text = instructions(world, FORMATS.action, 'short');
    const words = new Set(text.match(/[a-z0-9_]+/gi));
    // Parameters are named otherwise here; what is written word for word must stand there.
    const missing = world.forms.flatMap(({ template }) =>
      template
        .replaceAll(/\{[a-z_]+\}/g, ' ')
        .match(/[a-z0-9_]+/gi)!
        .filter((word) => !words.has(word)),
    );
    expect(missing).toEqual([]);
    expect(text).toContain(FORMATS.action.describe(world));
    // 120 tokens: SmolLM2's tokenizer makes 0.3 of a character of these texts at the most.
    expect(text.length).toBeLessThan(400);
  });

  it('are the full ones where a world has none', () => {
    const { short: _, ...world } = WORLDS.textcraft!;
    expect(instructions(world, FORMATS.react, 'short')).toBe(instructions(world, FORMATS.react));
  });
});
