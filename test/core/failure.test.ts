/** Cures of failures: what helps an environment does not help an agent. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { AGENT } from '../../src/core/agent-call.ts';
import { cureOf, FAILURE_CAUSES } from '../../src/core/failure.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));

describe('the cure of a failure', () => {
  it('is the check of an environment where its code failed', () => {
    expect(cureOf('threw', 'tau2')).toBe('run `longplay check-env`');
    expect(cureOf('unreachable', 'openenv')).toBe("start the environment's server again, then resume");
  });

  it.each(FAILURE_CAUSES)('%s of an agent is none of an environment', (cause) => {
    expect(cureOf(cause, AGENT)).not.toMatch(/check-env|environment/);
  });

  it('is written in one place: no other message of a run advises a check of the environment', () => {
    let files = 0;
    const naming: string[] = [];
    for (const folder of ['src', 'actors', 'envs']) {
      for (const path of readdirSync(`${root}${folder}`, { recursive: true, encoding: 'utf8' })) {
        if (!path.endsWith('.ts') || `${folder}/${path}`.startsWith('src/cli/')) continue;
        files++;
        const code = readFileSync(`${root}${folder}/${path}`, 'utf8').replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, '');
        if (code.includes('longplay check-env')) naming.push(`${folder}/${path}`);
      }
    }
    expect(files).toBeGreaterThan(300);
    expect(naming).toEqual(['src/core/failure.ts']);
  });
});
