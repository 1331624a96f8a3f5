/** Slots of episodes: those of one world share a cache, whose calls pad little. */
import { expect, it } from 'vitest';
import { smallModel } from '../../src/compute/model/config.ts';
import { CacheSlots } from '../../src/policy/cache-slots.ts';
import type { ActRequest } from '../../src/policy/policy.ts';
import { ReceivedTranscript } from '../../src/text/reading/received-transcript.ts';

const config = smallModel(50, { layers: 1, hiddenSize: 16, heads: 2 });

function request(episode: number, world: string | undefined): ActRequest {
  const ids = { episode, group: episode, member: 0, groupSize: 1, turn: 0, samplingSeed: 0, temperature: 1 };
  return {
    ...ids,
    observation: '',
    actions: new Int32Array(0),
    newActions: [],
    ...(world === undefined ? {} : { world }),
  };
}

it('opens a batch for each world, and one for all where requests name none', () => {
  const slots = new CacheSlots({ config, maxBatch: 8, isStored: true, onPromptDropped() {} });
  const open = (episode: number, world: string | undefined) => {
    const text = { prompt: Int32Array.of(5), after: Int32Array.of(1), focus: [], mentions: new Map() };
    const member = slots.open(request(episode, world), new ReceivedTranscript(text));
    member.group.batch.waiting.add(member);
    return member.group.batch;
  };
  const [a, b, again] = [open(1, 'a'), open(2, 'b'), open(3, 'a')];
  expect(again).toBe(a);
  expect(b).not.toBe(a);
  expect(open(4, undefined)).toBe(open(5, undefined));
  expect([a.world, b.world]).toEqual(['a', 'b']);
  // The fullest one is called first, and each is complete by itself.
  expect(slots.findBusiest()).toBe(a);
  expect(slots.hasCompleteBatch).toBe(true);
  expect(slots.waiting).toBe(5);
});
