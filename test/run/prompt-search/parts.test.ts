/** Parts of the search for prompts: which one is changed next, what the model is asked, and what is read of its reply. */
import { describe, expect, it } from 'vitest';
import { Rng } from '../../../src/core/rng.ts';
import { countParetoTasks, selectParent } from '../../../src/run/prompt-search/pareto.ts';
import { MAX_PROMPT_CHARS, makeReflection, readProposal } from '../../../src/run/prompt-search/reflection.ts';
import { trajectoryOf } from '../../support/traces.ts';

describe('the parent of the next prompt', () => {
  it.each([
    ['one candidate', [[0, 1]], [2]],
    [
      'two that are best on tasks of their own',
      [
        [1, 0, 0],
        [0, 1, 1],
      ],
      [1, 2],
    ],
    [
      'one that is nowhere best',
      [
        [1, 1],
        [0, 0],
      ],
      [2, 0],
    ],
    [
      'one that is best only where another is too',
      [
        [1, 1, 1],
        [1, 0, 0],
      ],
      [3, 0],
    ],
    [
      'two alike: the older stays',
      [
        [1, 0],
        [1, 0],
      ],
      [2, 0],
    ],
    [
      'a specialist that no other replaces',
      [
        [1, 1, 0],
        [0, 0, 1],
        [1, 0, 0],
      ],
      [2, 1, 0],
    ],
  ])('counts %s', (_, scores, counts) => {
    expect(countParetoTasks(scores)).toEqual(counts);
  });

  it('is drawn in proportion to these counts, and the same by the same seed', () => {
    const scores = [
      [1, 0, 0, 0],
      [0, 1, 1, 1],
      [0, 0, 0, 0],
    ];
    const rng = Rng.fromSeed(1);
    const drawn = Array.from({ length: 4000 }, () => selectParent(scores, rng));
    const share = (candidate: number) => drawn.filter((one) => one === candidate).length / drawn.length;
    expect(share(0)).toBeCloseTo(0.25, 1);
    expect(share(1)).toBeCloseTo(0.75, 1);
    expect(share(2)).toBe(0);
    expect(selectParent(scores, Rng.fromSeed(7))).toBe(selectParent(scores, Rng.fromSeed(7)));
  });
});

describe('the request for a better prompt', () => {
  it('has the present one, each episode as a conversation, and what came of it', () => {
    const { content } = makeReflection('Be quick.', [
      trajectoryOf({ episode: 1, success: true }),
      trajectoryOf({ episode: 2 }),
    ])[0]!;
    expect(content).toContain('```\nBe quick.\n```');
    expect(content).toContain(
      'World: observation 0 of 1\nAgent: look\nWorld: observation 1 of 1\nAgent: go\nWorld: the end',
    );
    expect(content).toContain(
      'Feedback: The task was solved; the sum of rewards is 1. It ended by itself after 2 turns.',
    );
    expect(content).toContain(
      'Feedback: The task was not solved; the sum of rewards is 0. It was cut off after 2 of 8 turns.',
    );
  });

  it('is bounded, whatever an episode holds, and names answers that could not be read', () => {
    const long = trajectoryOf({ observation: '\u{1F600}'.repeat(50_000) });
    const turns = long.turns.map((turn) => ({
      ...turn,
      response: { text: 'hm', formatError: 'no action', promptTokens: 1, completionTokens: 1 },
    }));
    const { content } = makeReflection('', [{ ...long, turns }])[0]!;
    expect(content.length).toBeLessThan(9000);
    expect(content.isWellFormed()).toBe(true);
    expect(content).toContain('2 answers could not be read as an action: no action');
  });
});

it.each([
  ['a fence', 'Here:\n```\nLook twice.\n```\nGood luck.', 'Look twice.'],
  ['a fence with a language', '```markdown\nLook twice.\n```', 'Look twice.'],
  ['a fence within', '```\nUse\n```\nx\n```\nnow.\n```', 'Use\n```\nx\n```\nnow.'],
  ['no fence', '  Look twice.\n', 'Look twice.'],
  ['nothing', '', undefined],
  ['an empty fence', '```\n```', undefined],
  ['the old one', '```\nBe quick.\n```', undefined],
  ['far too much', 'x'.repeat(MAX_PROMPT_CHARS + 1), undefined],
])('reads a prompt from %s', (_, reply, prompt) => {
  expect(readProposal(reply, 'Be quick.')).toBe(prompt);
});
