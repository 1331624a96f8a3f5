/**
 * BabyAI's view: what it remembers is where it is, and it gives no way away. A rule that reads the memory and learns
 * nothing must not do better, by more than five points, than a player who merely counts what it did.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CorrectedSession } from '../../../envs/babyai/env.ts';
import { DX, DY } from '../../../envs/babyai/grid.ts';
import { heldOutTasks } from '../../../envs/babyai/index.ts';
import { listRemembered, type Memory } from '../../../envs/babyai/memory.ts';
import { nameOf } from '../../../envs/babyai/scene.ts';
import { view } from '../../../envs/babyai/view.ts';
import { Rng } from '../../../src/core/rng.ts';

const track = view.track!;
const kind = (name: string) => name.replace(/ (open|closed|locked) door$/, ' door');

describe('the memory of what was seen', () => {
  it('shows where things are for as long as turns and steps alone were taken', () => {
    let places = 0;
    fc.assert(
      fc.property(fc.constantFrom(...heldOutTasks), fc.array(fc.nat(100), { maxLength: 25 }), (index, choices) => {
        const session = new CorrectedSession(index);
        const { world } = session.text;
        let memory = track.begin(session.first);
        for (const choice of choices) {
          const listed = session.actions();
          // Boxes that were opened and things put elsewhere out of sight are what memory cannot know.
          const among = choice % 4 === 0 ? listed : listed.slice(0, 3);
          const safe = among.filter((one) => !/toggle|drop|pickup/.test(one));
          const action = safe[choice % safe.length]!;
          const step = session.step(action);
          memory = track.reduce(memory, { action, observation: step.observation });
          if (step.kind === 'terminated') break;
          for (const { name, place } of listRemembered(memory)) {
            if (!place) continue;
            const [fx, fy] = [DX[world.agentDir]!, DY[world.agentDir]!];
            const x = world.agentX + place.front * fx - place.right * fy;
            const y = world.agentY + place.front * fy + place.right * fx;
            expect(kind(nameOf(world.codes[world.cells[world.at(x, y)]!]!))).toBe(kind(name));
            places++;
          }
        }
      }),
      { numRuns: 300 },
    );
    expect(places).toBeGreaterThan(500);
  });

  it('stands in the text and in each candidate, and a new turn leaves the old state alone', () => {
    const observe = (things: string) =>
      `Your goal: go to the red ball\nIn front of you in this room, you can see several objects: ${things}The room has walls around you. You are not carrying anything.`;
    const first = {
      kind: 'first',
      observation: observe('There is a red ball 1 3 steps in front of you and 2 steps to your left.  '),
    } as const;
    const before = track.begin(first);
    const turn = { action: 'turn right', observation: observe('') };
    const after = track.reduce(before, turn);
    const read = (memory: Memory) => view.render(first, [turn], memory).segments.join('');
    expect(read(after)).toBe('go to red ball | turn right see clear was red ball 2 behind left 3');
    expect(listRemembered(before)).toEqual([]);
    expect(view.candidate!('turn right', after)).toBe('turn right done 1');
    expect(view.candidate!('turn right', before)).toBe('turn right done 0');
    const gone = track.reduce(after, { action: 'go to blue box 1', observation: observe('') });
    expect(read(gone)).toMatch(/was red ball 2 ago$/);
  });
});

/** A player: indices of the candidates it would choose among. */
type Player = (
  candidates: readonly string[],
  memory: Memory,
  done: ReadonlyMap<string, number>,
  actions: readonly string[],
) => readonly number[];

const least = (values: readonly number[]) => values.flatMap((value, i) => (value === Math.min(...values) ? [i] : []));
const doneIn = (text: string) => Number(/ done (\d+)$/.exec(text)![1]);
const isDoor = (text: string) => text.includes(' door ');
const first = (among: readonly number[], texts: readonly string[], wanted: (text: string) => boolean) => {
  const some = among.filter((i) => wanted(texts[i]!));
  return some.length > 0 ? some : among;
};

/** Players without a view, who count what they did. */
const PLAYERS: Readonly<Record<string, Player>> = {
  'least often': (_, __, done, actions) => least(actions.map((action) => done.get(action) ?? 0)),
  'least often, doors first': (_, __, done, actions) =>
    first(least(actions.map((action) => done.get(action) ?? 0)), actions, isDoor),
};
/** Rules on the view's fields: done least, and turning to where something was seen last. */
const RULES: Readonly<Record<string, Player>> = {
  'least done': (texts) => least(texts.map(doneIn)),
  'least done, doors first': (texts) => first(least(texts.map(doneIn)), texts, isDoor),
  'back to what was seen': (texts, memory) => {
    const place = listRemembered(memory)[0]?.place;
    const among = least(texts.map(doneIn));
    if (!place) return among;
    return first(among, texts, (text) => text.startsWith(place.right < 0 ? 'turn left' : 'turn right'));
  },
};
const HORIZON = 20;

/** Success in per cent on the 360 held-out tasks; ties are drawn at random. */
function success(player: Player): number {
  let won = 0;
  for (const index of heldOutTasks) {
    const rng = Rng.fromSeed(index);
    const session = new CorrectedSession(index);
    let memory = track.begin(session.first);
    const done = new Map<string, number>();
    for (let t = 0; t < HORIZON; t++) {
      const actions = session.actions();
      const texts = actions.map((action) => view.candidate!(action, memory));
      const action = actions[rng.pick(player(texts, memory, done, actions))]!;
      const step = session.step(action);
      memory = track.reduce(memory, { action, observation: step.observation });
      done.set(action, (done.get(action) ?? 0) + 1);
      if (step.kind !== 'terminated') continue;
      if (step.success) won++;
      break;
    }
  }
  return (100 * won) / heldOutTasks.length;
}

describe('a greedy rule on the memory, without learning', () => {
  it('is at most five points better than counting what was done', () => {
    const random = success((texts) => texts.map((_, i) => i));
    const figures = (players: Readonly<Record<string, Player>>) =>
      Object.entries(players).map(([name, player]) => [name, success(player)] as const);
    const [players, rules] = [figures(PLAYERS), figures(RULES)];
    const line = (entries: typeof rules) => entries.map(([name, value]) => `${name} ${value.toFixed(0)}`).join(', ');
    console.log(`random ${random.toFixed(0)}; without a view: ${line(players)}; with it: ${line(rules)}`);
    const best = (entries: typeof rules) => Math.max(...entries.map(([, value]) => value));
    expect(best(rules)).toBeLessThanOrEqual(Math.max(random, best(players)) + 5);
  });
});
