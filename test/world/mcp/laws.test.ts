/** Laws of environments, on MCP worlds whose servers are functions of the calls: in memory, and as processes. */
import { afterAll } from 'vitest';
import type { EnvOptions } from '../../../src/core/env.ts';
import { testEnvLaws } from '../../envs/laws.ts';
import { act, fixtures, openMcp, switches } from './lab.ts';

const COLORS = ['red', 'green', 'blue', 'pink'] as const;

async function testMcpLaws(name: string, options: EnvOptions, share: number) {
  const { createEnv, world, dispose } = await openMcp({ ...options, replay: 'exact' });
  afterAll(dispose);
  const texts = (rng: { pick<T>(of: readonly T[]): T }) =>
    rng.pick([
      act([['press', { color: rng.pick(COLORS) }]]),
      act([
        ['write', { text: rng.pick(['a', 'b', 'z']) }],
        ['read', {}],
      ]),
      act([['press', '{"color"']]),
      act([['nothing', {}]]),
      act([], rng.pick(COLORS)),
    ]);
  testEnvLaws(name, { createEnv: () => createEnv(), texts, module: world }, share, false);
}

await testMcpLaws('a server in memory', { module: `${fixtures}/memory.mjs` }, 0.1);
await testMcpLaws(
  'a server as a process, used again',
  { ...switches({ tools: ['press', 'state'] }), reset: { tool: 'reset' } },
  0.1,
);
await testMcpLaws('a server as a process', switches({ tools: ['press', 'state'] }), 0.01);
