/** Transcripts: what they read of an episode, live, taken up and read again, is the same. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Decision, Trajectory, Turn } from '../../../src/core/trajectory.ts';
import type { AppendView, View, WindowView } from '../../../src/core/view.ts';
import { trainUnits } from '../../../src/learning/learner/training-batch.ts';
import type { Codec } from '../../../src/text/reading/codec.ts';
import { defaultView } from '../../../src/text/reading/default-view.ts';
import { ReceivedTranscript, renderPrompt } from '../../../src/text/reading/received-transcript.ts';
import { advanceTranscript, replayTurns } from '../../../src/text/reading/replay-turns.ts';
import type { Observed, Transcript } from '../../../src/text/reading/transcript.ts';
import { ViewCodec } from '../../../src/text/reading/view-codec.ts';
import { ACT, END } from '../../../src/text/reading/word-tokenizer.ts';
import { OverflowingCodec } from '../../support/overflowing-codec.ts';

/** Memory of the tracking views: how many turns there were, and their last action. */
interface Memory {
  readonly turns: number;
  readonly last: string;
}
const words = ['left', 'right', 'at', 'held', 'goal', 'put', 'in'];
const track: NonNullable<View['track']> = {
  begin: ({ observation }) => ({ turns: 0, last: observation }),
  reduce: (state, { action }) => ({ turns: (state as Memory).turns + 1, last: action }),
};
const candidate = (action: string, state: unknown) => `${action} held ${(state as Memory).turns}`;
const append: AppendView = {
  id: 'append@1',
  mode: 'append',
  lexicon: [],
  words,
  track,
  candidate,
  prompt: ({ observation }) => ({ segments: ['goal', ` ${observation}`], focus: 'goal', mentions: () => [1] }),
  turn: ({ observation }, state) => `${observation} at ${(state as Memory).turns}`,
};
const window: WindowView = {
  id: 'window@1',
  mode: 'window',
  lexicon: [],
  words,
  track,
  candidate,
  render: ({ observation }, turns, state) => ({
    segments: [observation, ` ${turns.at(-1)?.observation ?? ''}`, ` at ${(state as Memory).turns}`],
    focus: '',
    mentions: () => [0],
  }),
};

const codecs: readonly (readonly [string, () => Codec])[] = [
  ['an append view', () => new ViewCodec(append)],
  ['a window view', () => new ViewCodec(window)],
  ['the default view', () => new ViewCodec(defaultView)],
  ['a context that fills up', () => new OverflowingCodec(new ViewCodec(append), 9)],
];

/** Turns of an episode: the observation, the action, which of them were stages, and sampled ids or a choice. */
const turnsOf = fc.array(
  fc.record({
    observation: fc.oneof(fc.constantFrom(...words), fc.string({ maxLength: 6 })),
    action: fc.constantFrom('left', 'right', 'put in'),
    partial: fc.boolean(),
    sampled: fc.option(fc.array(fc.integer({ min: END, max: 30 }), { minLength: 1, maxLength: 4 })),
  }),
  { minLength: 1, maxLength: 6 },
);
const table = ['left', 'right', 'put in'];
const listed = Int32Array.of(0, 1, 2);

/** Plays the turns with a live transcript. */
function live(codec: Codec, played: readonly PlayedTurn[]): Trajectory {
  let transcript: Transcript | undefined;
  const turns = played.map(({ observation, action, partial, sampled }, t): Turn => {
    const last = played[t - 1];
    transcript = advanceTranscript(codec, transcript, {
      turn: t,
      observation,
      actions: listed,
      newActions: t === 0 ? table : [],
      ...(last ? { lastAction: last.action } : {}),
      ...(last?.partial ? { partial: true as const } : {}),
    });
    const base = { version: 0, context: transcript.takeContext(), value: 0 };
    const decision: Decision = sampled
      ? {
          ...base,
          kind: 'tokens',
          tokens: Int32Array.from(sampled),
          logprobs: new Float32Array(sampled.length),
          masked: false,
        }
      : { ...base, kind: 'choice', choice: table.indexOf(action), logprob: -1 };
    if (sampled) transcript.write(sampled);
    const turn = { observation, actions: listed, action, decision, reward: 0, actMs: 0, envMs: 0 };
    return partial ? { ...turn, partial } : turn;
  });
  const rest = { horizon: 9, attempt: 1, actionTable: table, turns, finalObservation: 'left', success: false };
  return { episode: 0, group: 0, task: { env: 'toy', index: 0, seed: 0 }, end: 'truncated', ...rest };
}

interface PlayedTurn {
  readonly observation: string;
  readonly action: string;
  readonly partial: boolean;
  readonly sampled: number[] | null;
}

const snapshot = ({ prompt, tokens, table: texts }: Transcript) => ({
  prompt: [...prompt.tokens],
  focus: [...prompt.focus],
  tokens: [...tokens],
  texts: [...texts],
});

describe.each(codecs)('a transcript of %s', (_, codecOf) => {
  it('read again, has the contexts that the policy recorded', () => {
    fc.assert(
      fc.property(turnsOf, (played) => {
        const trajectory = live(codecOf(), played);
        const seen: number[][] = [];
        const end = replayTurns(codecOf(), trajectory, (transcript) => seen.push([...transcript.takeContext()]));
        expect(seen).toEqual(trajectory.turns.map(({ decision }) => [...decision!.context]));
        expect(end.takeContext().length).toBeGreaterThan(0); // the final observation is read too
      }),
      { numRuns: 60 },
    );
  });

  it('taken up with its history, stands where it would have stood', () => {
    fc.assert(
      fc.property(turnsOf, (played) => {
        const { turns } = live(codecOf(), played);
        const now: Observed = { observation: 'right', actions: listed, newActions: [] };
        const partial = turns.at(-1)!.partial;
        const next = { turn: turns.length, ...now, lastAction: turns.at(-1)!.action, ...(partial ? { partial } : {}) };
        const recalled = advanceTranscript(codecOf(), undefined, { ...next, newActions: table, history: turns });
        const known = replayed(codecOf(), turns);
        known.observe(next.lastAction, next);
        expect(snapshot(recalled)).toEqual(snapshot(known));
        expect([...recalled.takeContext()]).toEqual([...known.takeContext()]);
        expect(recalled.candidate('left')).toBe(known.candidate('left'));
      }),
      { numRuns: 60 },
    );
  });

  it('becomes training rows that hold every token once, in order', () => {
    fc.assert(
      fc.property(turnsOf, (played) => {
        const trajectory = live(codecOf(), played);
        const groups = trainUnits(codecOf(), [trajectory], 0).flat();
        const ids = groups.flatMap(({ prompt, members }) => [
          ...prompt.tokens,
          ...members.flatMap(({ tokens }) => tokens),
        ]);
        const recorded = trajectory.turns.flatMap(({ decision }) => [
          ...decision!.context,
          ...(decision!.kind === 'tokens' ? decision!.tokens : []),
        ]);
        expect(ids).toEqual(recorded);
      }),
      { numRuns: 60 },
    );
  });
});

/** The turns through one transcript, up to the last decision. */
function replayed(codec: Codec, turns: readonly Turn[]): Transcript {
  let transcript: Transcript | undefined;
  turns.forEach(({ observation, decision }, t) => {
    const last = turns[t - 1];
    transcript = advanceTranscript(codec, transcript, {
      turn: t,
      observation,
      actions: listed,
      newActions: t === 0 ? table : [],
      ...(last ? { lastAction: last.action } : {}),
      ...(last?.partial ? { partial: true as const } : {}),
    });
    transcript.takeContext();
    if (decision!.kind === 'tokens') transcript.write(decision!.tokens);
  });
  return transcript!;
}

describe('a transcript', () => {
  const opening: Observed = { observation: 'left', actions: listed, newActions: table };

  it("folds a view's memory once per turn, and reads candidates by it", () => {
    let folded = 0;
    const after: NonNullable<View['track']>['reduce'] = (state, turn) => {
      folded++;
      return track.reduce(state, turn);
    };
    const counting: AppendView = { ...append, track: { begin: track.begin, reduce: after } };
    const transcript = new ViewCodec(counting).open(opening);
    for (let n = 1; n <= 3; n++) {
      transcript.observe('right', { observation: 'left', actions: listed, newActions: [] });
      expect([folded, transcript.candidate('put in')]).toEqual([n, `put in held ${n}`]);
    }
  });

  it('reads a stage as its own few tokens, whatever the world observes meanwhile', () => {
    const transcript = new ViewCodec(append).open(opening);
    const before = transcript.tokens.length;
    const long = { observation: 'x'.repeat(500), actions: listed, newActions: [], partial: true } as const;
    transcript.observe('put', long);
    transcript.observe('in', long);
    expect(transcript.tokens.slice(before).filter((id) => id === ACT)).toHaveLength(2);
    expect(transcript.tokens.length - before).toBe(4);
  });

  it('shares the prompt of equal openings, and its members stay together in training', () => {
    const codec = new ViewCodec(append);
    expect(codec.open(opening).prompt).toBe(codec.open({ ...opening }).prompt);
    // What a client makes up may be long: 256 of those would be gigabytes.
    const wordy = { ...opening, observation: `${opening.observation}\n${'again '.repeat(4000)}` };
    expect(codec.open(wordy).prompt).not.toBe(codec.open({ ...wordy }).prompt);
    const trajectory = live(codec, [{ observation: 'left', action: 'left', partial: false, sampled: null }]);
    const [unit, ...others] = trainUnits(new ViewCodec(append), [trajectory, { ...trajectory, episode: 1 }], 0);
    expect([others.length, unit!.length, unit![0]!.members.length]).toEqual([0, 1, 2]);
    const overflown = new OverflowingCodec(new ViewCodec(append), 4);
    const played = ['left', 'right', 'at', 'in'].map((observation) => ({
      observation,
      action: 'left',
      partial: false,
      sampled: null,
    }));
    const long = live(overflown, played);
    const [kept, ...none] = trainUnits(overflown, [long, { ...long, episode: 1 }], 0);
    expect(none).toEqual([]);
    expect(kept!.map(({ members }) => members.length)).toEqual([2, ...Array(kept!.length - 1).fill(1)]);
    expect(kept!.length).toBeGreaterThan(2);
  });

  it('refuses to train on tokens that it would not have read', () => {
    const trajectory = live(new ViewCodec(append), [
      { observation: 'left', action: 'left', partial: false, sampled: null },
      { observation: 'right', action: 'left', partial: false, sampled: null },
    ]);
    const other = { ...append, turn: () => 'in' };
    expect(() => trainUnits(new ViewCodec(other), [trajectory], 0)).toThrow(/turn 1 are not what this view/);
  });

  it('survives the way to a server and back', () => {
    const here = new ViewCodec(append).open(opening);
    const there = new ReceivedTranscript(renderPrompt(here, table), opening);
    expect(there.prompt.mentions('left')).toEqual(here.prompt.mentions('left'));
    expect(there.candidate('left')).toBe('left held 0');
    expect([...there.prompt.focus]).toEqual([...here.prompt.focus]);
    expect([...there.takeContext()]).toEqual([...here.takeContext()]);
    expect(() => there.observe()).toThrow(RangeError);
  });
});

describe('the default view', () => {
  const codec = new ViewCodec(defaultView);
  const first = {
    observation: 'You are in a kitchen.\nYour task is to: put the apple in drawer 12.',
    newActions: table,
  };

  it('reads goal, last actions and the newest observation, each word once known a token', () => {
    const transcript = codec.open({ ...first, actions: listed });
    transcript.observe('go to drawer 12', { observation: 'The drawer 12 is closed.', actions: listed, newActions: [] });
    transcript.observe('put', { observation: 'Which?', actions: listed, newActions: [], partial: true });
    expect(codec.decode(transcript.prompt.tokens)).toBe(
      'your task is to put the apple in drawer 12 | go to drawer 12 ; | the drawer 12 is closed | put',
    );
  });

  it('points at the rarest words that an action shares with the text', () => {
    const { prompt } = codec.open({ ...first, actions: listed });
    const [place] = prompt.mentions('open drawer 12');
    expect(codec.decode(prompt.tokens.subarray(place!, place! + 1))).toBe('drawer');
    expect(prompt.mentions('dance')).toEqual([0]);
  });

  it('stays within its budget for any observation', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.string({ maxLength: 60 }).map((text) => text.repeat(40)),
          { minLength: 1, maxLength: 8 },
        ),
        (texts) => {
          const transcript = codec.open({ observation: texts[0]!, actions: listed, newActions: table });
          for (const text of texts.slice(1))
            transcript.observe(text, { observation: text, actions: listed, newActions: [] });
          expect(transcript.prompt.tokens.length).toBeLessThan(1000);
        },
      ),
      { numRuns: 25 },
    );
  });
});
