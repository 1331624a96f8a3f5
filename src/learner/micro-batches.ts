/**
 * Micro-batches: a minibatch that is too large for one pass is cut into passes of bounded size, whose gradients add up to
 * the minibatch's. Weights of decisions refer to the whole minibatch, so sums need no correction.
 */
import type { HostTensor, Program } from '../engine/engine.ts';
import type { TrainGroup } from './training-batch.ts';

/**
 * Cuts groups into passes. Members of a group may be parted; each part reads the prompt for itself.
 * @param maxTokens of one pass, padding included; a member that is longer gets a pass of its own
 */
export function microBatches(groups: readonly TrainGroup[], maxTokens: number): TrainGroup[][] {
  const passes: TrainGroup[][] = [];
  let pass: {
    prompt: TrainGroup['prompt'];
    candidates: TrainGroup['candidates'];
    members: TrainGroup['members'][number][];
  }[] = [];
  const close = () => {
    if (pass.length > 0) passes.push(pass);
    pass = [];
  };
  for (const { prompt, candidates, members } of groups) {
    let part: (typeof pass)[number] | undefined;
    for (const member of members) {
      if (member.decisions.length === 0) continue;
      const joined = part
        ? pass.map((one) => (one === part ? { ...one, members: [...one.members, member] } : one))
        : [...pass, { prompt, candidates, members: [member] }];
      if (pass.length > 0 && paddedTokens(joined) > maxTokens) {
        close();
        part = undefined;
      }
      if (part) part.members.push(member);
      else pass.push((part = { prompt, candidates, members: [member] }));
    }
  }
  close();
  return passes;
}

/** Tokens of a pass as it is laid out: every prompt as long as the longest, every member too. */
function paddedTokens(groups: readonly Pick<TrainGroup, 'prompt' | 'members'>[]): number {
  const longest = Math.max(...groups.map(({ prompt }) => prompt.tokens.length));
  const most = Math.max(...groups.map(({ members }) => members.length));
  const member = Math.max(...groups.flatMap(({ members }) => members.map(({ tokens }) => tokens.length)));
  return groups.length * (longest + most * member);
}

/**
 * Runs a gradient program over several passes.
 * @param program a compiled `gradientGraph`
 * @param passes  makes each pass's feeds when its turn comes
 * @returns its outputs, each added up over the passes: `d/<name>`, `loss` and statistics
 */
export async function summed(
  program: Program,
  passes: readonly (() => Readonly<Record<string, HostTensor>>)[],
): Promise<Record<string, HostTensor>> {
  const sums: Record<string, HostTensor> = {};
  for (const feeds of passes) {
    for (const [name, tensor] of Object.entries(await program.run(feeds()))) {
      const { dtype, shape, data } = tensor;
      const sum = sums[name]?.data as Float32Array | undefined;
      if (!sum) sums[name] = { dtype, shape, data: (data as Float32Array).slice() };
      else for (let i = 0; i < sum.length; i++) sum[i]! += data[i]!;
      tensor.dispose();
    }
  }
  return sums;
}
