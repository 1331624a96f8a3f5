/**
 * Micro-batches: a minibatch that is too large for one pass is cut into passes of bounded size, whose gradients add up to
 * the minibatch's. Weights of decisions refer to the whole minibatch, so sums need no correction.
 */
import { largestOf } from '../core/extremes.ts';
import type { HostTensor, Program } from '../engine/engine.ts';
import type { TrainGroup } from './training-batch.ts';

/**
 * Cuts groups into passes, those with the longest members first: passes of like lengths pad little, and attention costs
 * the square of the padded length. Members of a group may be parted; each part reads the prompt for itself.
 * @param maxTokens of one pass, padding included; a member that is longer gets a pass of its own
 */
export function microBatches(groups: readonly TrainGroup[], maxTokens: number): TrainGroup[][] {
  const passes: TrainGroup[][] = [];
  for (const group of groups.toSorted((a, b) => longestMember(b) - longestMember(a))) {
    let begun = false;
    for (const member of group.members) {
      if (member.decisions.length === 0) continue;
      const alone = { ...group, members: [member] };
      const joined = passes.length > 0 ? withMember(passes.at(-1)!, alone, begun) : undefined;
      if (joined && paddedTokens(joined) <= maxTokens) passes[passes.length - 1] = joined;
      else passes.push([alone]);
      begun = true;
    }
  }
  return passes;
}

/**
 * Cuts units that must not be parted, such as pairs, into passes.
 * @param maxTokens of one pass, padding included; a unit that is longer gets a pass of its own
 */
export function unitBatches<T extends { readonly groups: readonly TrainGroup[] }>(
  units: readonly T[],
  maxTokens: number,
): T[][] {
  const passes: T[][] = [];
  for (const unit of units) {
    const last = passes.at(-1);
    if (last && paddedTokens([...last, unit].flatMap(({ groups }) => groups)) <= maxTokens) last.push(unit);
    else passes.push([unit]);
  }
  return passes;
}

/** Pass with one member more: beside those of its group where they have begun, else under a prompt of its own. */
function withMember(pass: readonly TrainGroup[], alone: TrainGroup, begun: boolean): TrainGroup[] {
  if (!begun) return [...pass, alone];
  const last = pass.at(-1)!;
  return [...pass.slice(0, -1), { ...last, members: [...last.members, ...alone.members] }];
}

function longestMember({ members }: TrainGroup): number {
  return largestOf(members.map(({ tokens }) => tokens.length));
}

/** Tokens of a pass as it is laid out: every prompt as long as the longest, every member too. */
function paddedTokens(groups: readonly TrainGroup[]): number {
  const longest = largestOf(groups.map(({ prompt }) => prompt.tokens.length));
  const most = largestOf(groups.map(({ members }) => members.length));
  const member = largestOf(groups.map(longestMember));
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
