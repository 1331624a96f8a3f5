/**
 * Micro-batches: a minibatch that is too large for one pass is cut into passes of bounded size, whose gradients add up to
 * the minibatch's. Weights of decisions refer to the whole minibatch, so sums need no correction.
 */
import { setImmediate } from 'node:timers/promises';
import type { HostTensor, Program, RunTensor } from '../../compute/engine/engine.ts';
import { largestOf } from '../../core/extremes.ts';
import type { Replica } from './replica.ts';
import type { TrainGroup } from './training-batch.ts';

/**
 * Cuts groups into passes, the longest first, prompt and longest member together: passes of like lengths pad little, and
 * attention costs the square of the padded length. Members of a group may be parted; each part reads the prompt for itself. A pass
 * is of one world: the same length may be a long prompt in one and many turns in another, and lists differ as much.
 * @param maxTokens of one pass, padding included; a member that is longer gets a pass of its own
 * @param whole keeps all members of a trajectory in one pass, for losses of whole trajectories
 */
export function microBatches(groups: readonly TrainGroup[], maxTokens: number, whole = false): TrainGroup[][] {
  const worlds = new Set(groups.map(({ world }) => world));
  if (worlds.size > 1) {
    return [...worlds].flatMap((world) =>
      microBatches(
        groups.filter((group) => group.world === world),
        maxTokens,
        whole,
      ),
    );
  }
  if (whole) return wholeTrajectories(groups, maxTokens);
  const passes: TrainGroup[][] = [];
  for (const group of groups.toSorted((a, b) => longest(b) - longest(a))) {
    let begun = false;
    for (const member of group.members) {
      if (member.decisions.length === 0) continue;
      const alone = { ...group, members: [member] };
      const joined = passes.length > 0 ? withMember(passes.at(-1)!, alone, begun) : undefined;
      if (joined && countPaddedTokens(joined) <= maxTokens) passes[passes.length - 1] = joined;
      else passes.push([alone]);
      begun = true;
    }
  }
  return passes;
}

/** Passes that part no trajectory: those of several members (their prompt was rendered anew) come after the others. */
function wholeTrajectories(groups: readonly TrainGroup[], maxTokens: number): TrainGroup[][] {
  const parts = new Map<number, { readonly groups: TrainGroup[] }>();
  for (const group of groups) {
    for (const member of group.members) {
      const [decision] = member.decisions;
      if (!decision) continue;
      const part = parts.get(decision.trajectory) ?? { groups: [] };
      part.groups.push({ ...group, members: [member] });
      parts.set(decision.trajectory, part);
    }
  }
  const parted = [...parts.values()].filter((part) => part.groups.length > 1);
  if (parted.length === 0) return microBatches(groups, maxTokens);
  const apart = new Set(parted.flatMap((part) => part.groups.flatMap(({ members }) => members)));
  const others = groups.map((group) => ({ ...group, members: group.members.filter((member) => !apart.has(member)) }));
  return [
    ...microBatches(
      others.filter(({ members }) => members.length > 0),
      maxTokens,
    ),
    ...unitBatches(parted, maxTokens).map((units) => units.flatMap((unit) => unit.groups)),
  ];
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
    if (last && countPaddedTokens([...last, unit].flatMap(({ groups }) => groups)) <= maxTokens) last.push(unit);
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

/** Tokens of a group's prompt and of its longest member. */
function longest(group: TrainGroup): number {
  return group.prompt.tokens.length + longestMember(group);
}

function longestMember({ members }: TrainGroup): number {
  return largestOf(members.map(({ tokens }) => tokens.length));
}

/** Tokens of a pass as it is laid out: every prompt as long as the longest, every member too. */
function countPaddedTokens(groups: readonly TrainGroup[]): number {
  const prompt = largestOf(groups.map((group) => group.prompt.tokens.length));
  const most = largestOf(groups.map(({ members }) => members.length));
  const member = largestOf(groups.map(longestMember));
  return groups.length * (prompt + most * member);
}

/**
 * Runs that a replica has before it, the one under way among them, so that it need not wait for the next; where there are
 * but a few passes, one: a replica must not have two while another engine has none.
 */
const countAhead = (passes: number, engines: number) => (passes >= 2 * engines ? 2 : 1);

type Feeds = Readonly<Record<string, HostTensor>>;

/** Gradient program, and replicas of it in other threads. */
interface GradientProgram {
  /** A compiled `gradientGraph`. */
  readonly program: Program;
  readonly replicas: readonly Pick<Replica, 'hold' | 'run'>[];
}

/**
 * Runs a gradient program over several passes, shared with its replicas: each takes the next pass when it has time. Outputs
 * are added up in the order of the passes, whoever ran them, so the sums are the same to the bit for any number of replicas.
 * @param weights feeds of every pass
 * @param passes makes each pass's other feeds when its turn comes
 * @returns its outputs, each added up over the passes: `d/<name>`, `loss` and statistics
 */
export async function sumPasses(
  { program, replicas }: GradientProgram,
  weights: Feeds,
  passes: readonly (() => Feeds)[],
): Promise<Record<string, HostTensor>> {
  const sums = new Sums();
  let next = 0;
  let failed = false;
  const work = async (run: (feeds: Feeds) => Promise<Feeds>) => {
    try {
      while (next < passes.length && !failed) {
        const pass = next++;
        sums.add(pass, await run(passes[pass]!()));
      }
    } catch (error) {
      failed = true;
      throw error;
    }
  };
  const others = passes.length > 1 ? replicas : [];
  for (const replica of others) replica.hold(weights);
  const lanes = Array.from({ length: countAhead(passes.length, others.length + 1) }, () =>
    others.map((replica) => work((feeds) => replica.run(feeds))),
  ).flat();
  const own = work(async (feeds) => {
    const out = await program.run({ ...feeds, ...weights });
    // The run may have blocked this thread: let in what the replicas answered meanwhile, before the next pass is taken.
    if (lanes.length > 0) await setImmediate();
    return out;
  });
  // All of them, also when one fails: nothing may still run when the caller goes on.
  const outcomes = await Promise.allSettled([...lanes, own]);
  for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
  return sums.tensors;
}

/** Sums of outputs, added up in the order of their passes. */
class Sums {
  readonly tensors: Record<string, HostTensor> = {};
  readonly #early = new Map<number, Feeds>();
  #next = 0;

  add(pass: number, outputs: Feeds): void {
    this.#early.set(pass, outputs);
    for (let own = this.#early.get(this.#next); own; own = this.#early.get(this.#next)) {
      this.#early.delete(this.#next++);
      this.#addNext(own);
    }
  }

  #addNext(outputs: Feeds): void {
    for (const [name, tensor] of Object.entries(outputs)) {
      const { dtype, shape, data } = tensor;
      const sum = this.tensors[name]?.data as Float32Array | undefined;
      if (!sum) this.tensors[name] = { dtype, shape, data: (data as Float32Array).slice() };
      else for (let i = 0; i < sum.length; i++) sum[i]! += data[i]!;
      if ('dispose' in tensor) (tensor as RunTensor).dispose();
    }
  }
}
