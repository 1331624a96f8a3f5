/** `longplay play` as a person meets it: the instructions, the grid, help, and how it ended. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { packageRoot } from '../../src/runtime/module-url.ts';

const main = fileURLToPath(new URL('dist/src/cli/main.js', packageRoot));

/** @param typed lines of one person; the program ends with them */
function play(args: readonly string[], typed: readonly string[]) {
  const { status, stdout } = spawnSync(process.execPath, [main, 'play', ...args], {
    encoding: 'utf8',
    timeout: 60_000,
    input: typed.map((line) => `${line}\n`).join(''),
  });
  return { status, stdout };
}

describe('longplay play', { timeout: 60_000 }, () => {
  it('draws the grid of BabyAI, lists, hints, and prints how it ended', () => {
    const { status, stdout } = play(['babyai', '--task', '4'], ['?', 'hint', 'turn left', 'turn right', '11', '11']);
    expect(status).toBe(0);
    expect(stdout).toMatch(/\? lists what can be done, hint asks the oracle, quit ends/);
    expect(stdout).toContain('█ o · · k o · █');
    expect(stdout).toMatch(/^ 14 {2}go to green key 1$/m);
    expect(stdout).toMatch(/^turn 1\/30 > go to green key 1$/m);
    expect(stdout.match(/── maze/g)).toHaveLength(5); // at the start and after each action, not after ? and hint
    expect(stdout).toMatch(/facing {4}down/);
  });

  it('takes an action by its number, and ends where the episode does', () => {
    const solved = play(['babyai', '--task', '4'], ['14', 'turn left']);
    expect(solved.stdout).toMatch(/solved after 1 turn, reward 0\.9578125/);
    expect(solved.stdout).not.toMatch(/turn 2\/30/);
    expect(play(['babyai', '--task', '4', '--horizon', '1'], ['turn left']).stdout).toMatch(
      /out of turns after 1 turn/,
    );
  });

  it('plays under options of the world, and refuses unknown ones', () => {
    const easy = play(['sciworld', '--option', 'tasks=scienceworld', '--option', 'simplifications=[easy]'], ['quit']);
    expect(easy.stdout).toMatch(/A door to the kitchen \(that is open\)/);
    const other = play(['textcraft', '--task', '31', '--option', 'order=agenttraj'], ['quit']);
    expect(other.status).toBe(0);
    expect(other.stdout).not.toEqual(play(['textcraft', '--task', '31'], ['quit']).stdout);
    expect(play(['sciworld', '--option', 'topk=3'], []).status).toBe(2);
    expect(play(['sciworld', '--option', 'topk'], []).status).toBe(2);
  });

  it('prints why there is no advice', () => {
    const { stdout } = play(['babyai', '--task', '4'], ['turn left', 'hint', 'quit']);
    expect(stdout).toMatch(/no advice once it is not followed/);
  });
});

describe('longplay play with a world of tools', { timeout: 60_000 }, () => {
  const mock = ['tau2', '--option', 'domain=mock', '--task', '0'];

  it('shows the conversation, asks for arguments, shows results, and follows the oracle', () => {
    const typed = ['hint', '1', '', 'user_1', 'Important Meeting', '', 'hint', 'All done.'];
    const { status, stdout } = play(mock, typed);
    expect(status).toBe(0);
    expect(stdout).not.toContain('{"call"');
    expect(stdout).toMatch(/^\[user\]\nI am a team member who needs to create a task/m);
    expect(stdout).toMatch(/^ {2}3 {2}update_task_status\n {7}Update the status of a task\./m);
    expect(stdout).toMatch(/^turn 1\/30 > create_task \{"user_id": "user_1", "title": "Important Meeting"\}$/m);
    expect(stdout).toMatch(/user_id \(required\): string > user_id: expected string, got nothing$/m);
    expect(stdout).toMatch(/\[result\]\n\{"task_id": "task_2", "title": "Important Meeting"/);
    expect(stdout).toMatch(/^turn 2\/30 > reply All done\.$/m);
    expect(stdout).toMatch(/solved after 2 turns, reward 1$/m);
  });

  it('ends with its input in the middle of a call, without a stack', () => {
    const { status, stdout } = play(mock, ['create_task', 'user_1']);
    expect(status).toBe(0);
    expect(stdout).toMatch(/title \(required\): string > $/);
  });
});
