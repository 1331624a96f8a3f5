/** Runs that workers can play for; others are refused before anything starts. */
import type { ChaosSpec } from '../chaos/spec.ts';
import type { ModelConfig } from '../compute/model/config.ts';
import { parameterSpecs } from '../compute/model/parameters.ts';
import { kindsThat, policyKindOf } from '../config/policy-kinds.ts';
import type { RunConfig } from '../config/run-config.ts';
import { requireOneWorld } from '../config/worlds.ts';
import type { Env } from '../core/env.ts';
import { UserError } from '../core/errors.ts';
import { isMcpId } from '../core/tool-world.ts';
import { namesPrograms } from '../world/env-id.ts';
import { MAX_WEIGHTS_BYTES } from './broker.ts';

/** Facts of a run that decide whether workers can play for it. */
export interface CheckedRun {
  readonly config: RunConfig;
  readonly mode: 'async' | 'serial';
  readonly chaos?: ChaosSpec | undefined;
  /** Share of workers' results that are played again, in [0, 1]. Default 0. */
  readonly verify?: number | undefined;
}

/**
 * Checks that workers can play for a run.
 * @param model of its policy; undefined where it has none of its own
 * @throws {UserError} BAD_CONFIG naming what they cannot play, and what to do
 */
export function checkClusterRun(
  { config, mode, chaos, verify = 0 }: CheckedRun,
  { replay }: Pick<Env, 'replay'>,
  model: ModelConfig | undefined,
): void {
  const refuse = (why: string) => new UserError('BAD_CONFIG', `--cluster: ${why}`);
  requireOneWorld(config, '--cluster');
  if (mode === 'serial') throw refuse('a serial run is one event loop; leave --serial out');
  if (chaos) throw refuse('faults are injected on one machine; leave --chaos out');
  if (namesPrograms(config.env)) {
    throw refuse(
      isMcpId(config.env.id)
        ? 'workers play an MCP server of a file on their machine: write env.options into one (env.id: mcp:./server.yaml)'
        : 'workers start no agent and no module that a configuration names; leave --cluster out',
    );
  }
  if (verify > 0 && replay === 'never') {
    throw refuse("--verify plays episodes again, and this world's actions have effects outside; leave it out");
  }
  if (!policyKindOf(config).hasWorkers) {
    throw refuse(`workers play policy.kind ${kindsThat('hasWorkers')}, not '${config.policy.kind}'`);
  }
  const bytes = model && !policyKindOf(config).isServed ? weightBytes(model) : 0;
  if (bytes > MAX_WEIGHTS_BYTES) {
    const [has, max] = [bytes, MAX_WEIGHTS_BYTES].map((n) => Math.ceil(n / 2 ** 20));
    throw refuse(
      `the weights of this model have ${has} MiB, expected at most ${max} MiB; use policy.kind: server, or a smaller model`,
    );
  }
}

/** Bytes of the weights that are trained, float32. */
function weightBytes(model: ModelConfig): number {
  return parameterSpecs(model).reduce((sum, { shape }) => sum + 4 * shape.reduce((a, b) => a * b, 1), 0);
}
