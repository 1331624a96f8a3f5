/** `longplay replay` in a real terminal: stepping by keys, a resize, and the terminal given back. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { episodeFrame, episodeLines } from '../../src/console/episode-frame.ts';
import { render } from '../../src/console/text.ts';
import { printAgentCall, printAgentReply } from '../../src/core/agent-call.ts';
import type { TimeStep } from '../../src/core/env.ts';
import type { Turn } from '../../src/core/trajectory.ts';
import { findWorld } from '../../src/run/find-world.ts';
import { workerUrl } from '../../src/runtime/module-url.ts';
import { TraceFiles } from '../../src/storage/trace-files.ts';
import { longplay } from '../support/longplay-command.ts';
import { trajectoryOf } from '../support/traces.ts';

const main = fileURLToPath(workerUrl(new URL('../../src/cli/main.ts', import.meta.url)));
const tmux = spawnSync('tmux', ['-V']).status === 0;
if (!tmux) console.log('skipped: tmux is not installed, so no real terminal is driven');

it.skipIf(!tmux || !existsSync(main))('steps through episodes by keys', { timeout: 90_000 }, async () => {
  const root = mkdtempSync(join(tmpdir(), 'longplay-replay-'));
  const server = `longplay-replay-${process.pid}`;
  const run = (...args: string[]) => spawnSync('tmux', ['-L', server, ...args], { encoding: 'utf8' }).stdout;
  const screen = () => run('capture-pane', '-p');
  const until = async (...parts: readonly RegExp[]) => {
    for (let i = 0; i < 150 && !parts.every((part) => part.test(screen())); i++) await sleep(100);
    for (const part of parts) expect(screen()).toMatch(part);
  };
  try {
    const turns = await record(join(root, 'traces'));
    const command = `NO_COLOR=1 ${process.execPath} ${main} replay ${root}`;
    run('new-session', '-d', '-x', '100', '-y', '30', `${command}; echo left; sleep 60`);
    await until(/episode 0\b/, new RegExp(`turn 1 of ${turns}`));
    const first = screen();
    run('send-keys', 'Right');
    await until(new RegExp(`turn 2 of ${turns}`));
    run('send-keys', 'Left');
    for (let i = 0; i < 50 && screen() !== first; i++) await sleep(100);
    expect(screen()).toBe(first);
    run('send-keys', 'End');
    await until(/solved|success/i);
    run('send-keys', 'Down');
    await until(/episode 1\b/, /observation 0 of 1/);
    run('send-keys', 'Up');
    await until(/episode 0\b/);
    run('resize-window', '-x', '60', '-y', '20');
    await until(/episode 0\b/);
    for (const line of screen().split('\n')) expect([...line].length).toBeLessThanOrEqual(60);
    expect(run('display', '-p', '#{alternate_on}').trim()).toBe('1');
    run('send-keys', 'q');
    await until(/left/);
    expect(run('display', '-p', '#{cursor_flag} #{alternate_on}').trim()).toBe('1 0');
  } finally {
    run('kill-server');
    rmSync(root, { recursive: true, force: true });
  }
});

it('prints a word of 300 kB on lines that fit, all of it', () => {
  const root = mkdtempSync(join(tmpdir(), 'longplay-replay-'));
  try {
    // Wrapping that asks for a line's width at every character needs minutes for the wide ones.
    const word = `${'x'.repeat(100_000)}${'日'.repeat(50_000)}${'\u{1f4a5}'.repeat(25_000)}`;
    expect(Buffer.byteLength(word)).toBeGreaterThan(300_000);
    const files = new TraceFiles({ dir: join(root, 'traces'), config: {}, rotateBytes: 1e9, keepBytes: 1e12 });
    files.episodes([trajectoryOf({ observation: word, actions: ['look'] })], 'train', 'easy');
    files.close();
    const { status, stdout, stderr } = longplay('replay', root);
    expect(stderr).toBe('');
    expect(status).toBe(0);
    expect(stdout.replaceAll('\n', '')).toContain(word);
    for (const line of stdout.split('\n')) expect(line.length).toBeLessThan(1000);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
});

/** An episode of TextCraft by its oracle, and one of an unknown world. @returns turns of the first */
async function record(dir: string): Promise<number> {
  const { world: module, env } = await findWorld('textcraft');
  const task = { env: 'textcraft', index: 3, seed: 11 };
  const session = await env.open(task);
  const solver = module.createOracle!()(task);
  const turns: Turn[] = [];
  let step: TimeStep = session.first;
  while (step.kind === 'first' || step.kind === 'mid') {
    const { observation } = step;
    const action = solver(step)!;
    const next = await session.step(action);
    turns.push({ observation, actions: new Int32Array(0), action, reward: next.reward, actMs: 0, envMs: 0 });
    step = next;
  }
  const { view: _, ...toy } = trajectoryOf({});
  const solved = { ...toy, task, turns, finalObservation: step.observation, end: 'terminated', success: true } as const;
  const files = new TraceFiles({ dir, config: {}, rotateBytes: 1e9, keepBytes: 1e12 });
  files.episodes([solved], 'train', 'depth 1');
  files.episodes([trajectoryOf({ episode: 1, group: 1 })], 'train', 'easy');
  files.close();
  return turns.length;
}

it('prints more lines of one observation than a call takes arguments', () => {
  const episode = trajectoryOf({});
  const turns = episode.turns.map((turn) => ({ ...turn, observation: 'a\n'.repeat(300_000) }));
  const lines = episodeLines({ ...episode, purpose: 'train', turns, finalObservation: '\n'.repeat(300_000) }, 80);
  expect(lines.length).toBeGreaterThan(300_000 * (turns.length + 1));
});

it('shows calls and results of tools as a conversation', () => {
  const tools = [{ name: 'add', parameters: {} }];
  const usage = { promptTokens: 0, completionTokens: 0 };
  const made = { content: '', calls: [{ name: 'add', arguments: '{"n":2}' }], finish: 'calls', usage } as const;
  const seen = [
    printAgentCall({ call: 0, parent: null, messages: [{ role: 'user', content: 'Add 2.' }], tools }),
    printAgentCall({ call: 1, parent: 0, messages: [{ role: 'tool', callId: 'call_0_0', content: 'too\nmuch' }] }),
  ];
  const { turns: plain, ...episode } = trajectoryOf({});
  const turns = seen.map((observation, t) => ({
    ...plain[0]!,
    observation,
    action: t === 0 ? printAgentReply(made) : 'bye',
    reward: t,
  }));
  const finalObservation = printAgentCall({ call: 2, parent: 1, messages: [{ role: 'user', content: 'Bye.' }] });
  const line = { ...episode, purpose: 'train', turns, finalObservation } as const;
  const shown = episodeLines(line, 80).map((one) => render(one, false).trimEnd());
  for (const text of [
    '[tools] add',
    '[user]',
    'Add 2.',
    '> add {"n":2}',
    '[result]',
    'too',
    'much',
    '> bye  reward 1',
    'Bye.',
  ]) {
    expect(shown).toContain(text);
  }
  expect(shown.join('\n')).not.toContain('{"call"');
  const frame = (turn: number) =>
    episodeFrame(line, turn, undefined, { width: 80, height: 30 }).map((one) => render(one, false).trimEnd());
  expect(frame(0)).toContain('> add {"n":2}');
  expect(frame(2)).toContain('Bye.');
});
