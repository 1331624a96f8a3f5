/** Searches for prompts as they are typed: a policy that heeds its prompt, and a proposer, behind stand-ins of their servers. */
import { existsSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { loadRunConfig } from '../../../src/config/load.ts';
import { planPromptSearch } from '../../../src/run/prompt-search/optimize-prompt.ts';
import { type ChatServer, startChatServer } from '../../support/chat-server.ts';
import { temporaryFolder } from '../../support/small-run.ts';
import { typed } from '../../support/typed.ts';

const root = temporaryFolder('prompts');
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** A world whose task says which button is right. */
const world = join(root, 'buttons.mjs');
writeFileSync(
  world,
  `const colors = ['red', 'green', 'blue'];
export const prompt = { role: 'You press buttons.', forms: [], hints: [], format: 'action' };
export function createEnv({ holdsOut = true } = {}) {
  const all = Array.from({ length: 60 }, (_, i) => i);
  return {
    id: 'buttons',
    description: 'Press the right button.',
    tasks: {
      count: 60, labels: ['all'], label: () => 'all', evalSeed: 0,
      split: (split) => all.filter((i) => (split === 'test') === (holdsOut && i >= 40)),
    },
    rewardRange: [0, 1],
    maxObservationChars: 100,
    open: ({ index }) => ({
      first: { kind: 'first', observation: 'The lamp is ' + colors[index % 3] + '.' },
      step(action) {
        const success = action === 'press ' + colors[index % 3];
        return { kind: 'terminated', observation: success ? 'click' : 'nothing', reward: success ? 1 : 0, success };
      },
      actions: () => colors.map((color) => 'press ' + color),
      close() {},
    }),
  };
}
`,
);

let server: ChatServer;
/** Replies of the proposer, before it writes what helps. */
let first: string[] = [];
let folder = '';
let made = 0;
let proposals = 0;

type Body = {
  readonly model: string;
  readonly messages: readonly { readonly role: string; readonly content: string }[];
};

/** Presses the lamp's colour where the system message speaks of that colour. */
function playTurn({ messages }: Body): string {
  const system = messages.find(({ role }) => role === 'system')?.content ?? '';
  const lamp = /lamp is (\w+)/.exec(messages.at(-1)!.content)![1]!;
  return system.includes(lamp) ? `press ${lamp}` : 'press none';
}

/** Adds the colour of the first episode that was not solved to the prompt. */
function propose({ messages }: Body): string {
  proposals++;
  const early = first.shift();
  if (early !== undefined) return early;
  const { content } = messages[0]!;
  const old = /```\n([\s\S]*?)\n```/.exec(content)![1]!;
  const failed = content.split('## Episode').find((part) => part.includes('was not solved'));
  const lamp = /lamp is (\w+)/.exec(failed ?? '')?.[1];
  return lamp === undefined ? 'I see nothing to mend.\n```\n```' : `\`\`\`\n${old} Mind ${lamp}.\n\`\`\``;
}

beforeEach(async () => {
  [first, proposals] = [[], 0];
  server = await startChatServer(
    (body) => {
      const asked = body as unknown as Body;
      const content = asked.model === 'writer' ? propose(asked) : playTurn(asked);
      return { message: { role: 'assistant', content } };
    },
    { models: ['player', 'writer'] },
  );
  folder = join(root, `search-${made++}`);
});
afterEach(() => server.close());

function configFile(more: object = {}): string {
  const path = join(root, `remote-${made++}.yaml`);
  const config = {
    env: { id: world },
    horizon: { type: 'fixed', rounds: 2 },
    policy: { kind: 'openai', openai: { baseUrl: server.url, model: 'player' } },
    evaluation: { horizons: [2] },
    stop: { updates: 1 },
    ...more,
  };
  writeFileSync(path, stringify(config));
  return path;
}

async function search(config: string, ...more: readonly string[]) {
  const proposer = ['--proposer-url', server.url, '--proposer-model', 'writer'];
  const counts = ['--budget', '120', '--selection', '9', '--held-out', '12'];
  return run(config, ...proposer, ...counts, '--out', folder, ...more);
}

async function run(...args: readonly string[]) {
  const { status, stdout, stderr } = await typed('optimize-prompt', ...args, '--json');
  return { status, stderr, json: stdout === '' ? undefined : JSON.parse(stdout) };
}

const stepsOf = () =>
  readFileSync(join(folder, 'search.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .slice(1)
    .map((line) => JSON.parse(line));

describe('a search for a prompt', { timeout: 180_000 }, () => {
  it('finds what helps, within its budget, and shows it on tasks that no step has seen', async () => {
    first = ['```\nPress gently.\n```', '```\n```'];
    const { status, stderr, json } = await search(configFile());
    expect(status, stderr).toBe(0);
    expect(json.best.prompt).toMatch(/Mind/);
    for (const color of ['red', 'green', 'blue']) expect(json.best.prompt).toContain(color);
    expect(json).toMatchObject({
      own: { score: 0 },
      found: { score: 1 },
      isBetter: true,
      difference: { value: 1, n: 12 },
    });
    const steps = stepsOf();
    expect(steps[0]).toMatchObject({ kind: 'candidate', parent: null, prompt: '', episodes: 9 });
    expect(steps[1]).toMatchObject({ kind: 'rejected', prompt: 'Press gently.', episodes: 6, minibatch: [0, 0] });
    expect(steps[2]).toMatchObject({ kind: 'unusable', episodes: 3 });
    const spent = steps.reduce((sum: number, { episodes = 0 }) => sum + episodes, 0);
    expect(json.spent).toBe(spent);
    expect(spent).toBeLessThanOrEqual(120);
    const plan = JSON.parse(readFileSync(join(folder, 'search.jsonl'), 'utf8').split('\n', 1)[0]!);
    // No task is in two parts, and those that decide are held out.
    const all = [...plan.feedback, ...plan.selection, ...plan.heldOut];
    expect(new Set(all).size).toBe(all.length);
    expect(plan.heldOut.every((index: number) => index >= 40)).toBe(true);
    expect(all.length).toBe(52);
    // The policy's requests are those of the budget and of the held-out tasks, and no other.
    const played = server.bodies.filter(({ model }) => model === 'player').length;
    expect(played).toBe(spent + 24);
    const best = parse(readFileSync(join(folder, 'best.yaml'), 'utf8'));
    expect(best.policy.chat.system).toBe(json.best.prompt);
    expect(existsSync(join(folder, 'lock.json'))).toBe(false);
  });

  it('keeps tasks apart in a world that holds none out', async () => {
    const text = readFileSync(configFile({ env: { id: world, options: { holdsOut: false } } }), 'utf8');
    const rest = { seed: 1, budget: 300, minibatch: 3, horizon: 2, proposer: { url: server.url, model: 'writer' } };
    const counts = { selection: 40, heldOut: 12 };
    const { feedback, selection, heldOut } = await planPromptSearch(loadRunConfig(text, 'test', []), counts, rest);
    // A third of 60 tasks may decide, and no more than half of the others select.
    expect([feedback.length, selection.length, heldOut.length]).toEqual([20, 20, 12]);
    expect(new Set([...feedback, ...selection, ...heldOut]).size).toBe(52);
  });

  it('that was stopped at any step goes on to the same end', async () => {
    const config = configFile();
    const whole = await search(config);
    const path = join(folder, 'search.jsonl');
    const text = readFileSync(path, 'utf8');
    const lines = text.split('\n');
    let resumed = 0;
    for (const kept of [1, 2, lines.length - 3]) {
      // A kill in the middle of a line, too.
      const bytes = Buffer.byteLength(`${lines.slice(0, kept).join('\n')}\n`);
      writeFileSync(path, text);
      truncateSync(path, bytes + 7);
      const { status, json } = await run('--resume', folder);
      expect([status, json]).toEqual([0, whole.json]);
      expect(readFileSync(path, 'utf8')).toBe(text);
      resumed++;
    }
    expect(resumed).toBe(3);
  });

  it('that finds nothing keeps its own prompt, and gives the proposer up', async () => {
    first = Array(20).fill('Nothing comes to my mind.\n```\n```');
    const { status, stderr, json } = await search(configFile());
    expect(status).toBe(0);
    expect(stderr).toContain('5 replies of the proposer one after another held no new prompt');
    expect(json).toMatchObject({
      best: { candidate: 0, prompt: '' },
      candidates: 1,
      isBetter: false,
      difference: { value: 0 },
    });
    expect(proposals).toBe(5);
    expect(existsSync(join(folder, 'best.yaml'))).toBe(false);
  });

  it('whose server goes away keeps what is finished', async () => {
    const config = configFile();
    await search(config);
    const path = join(folder, 'search.jsonl');
    const text = readFileSync(path, 'utf8');
    const kept = `${text.split('\n').slice(0, 2).join('\n')}\n`;
    writeFileSync(path, kept);
    const port = Number(new URL(server.url).port);
    await server.close();
    const gone = await run('--resume', folder);
    expect(gone.status).not.toBe(0);
    expect(gone.stderr).toContain(String(port));
    expect(readFileSync(path, 'utf8')).toBe(kept);
    server = await startChatServer(
      (body) => {
        const asked = body as unknown as Body;
        return { message: { role: 'assistant', content: asked.model === 'writer' ? propose(asked) : playTurn(asked) } };
      },
      { models: ['player', 'writer'] },
    );
    const moved = ['--proposer-url', server.url, '--set', `policy.openai.baseUrl=${server.url}`];
    const { status, stderr } = await run('--resume', folder, ...moved);
    expect(status, stderr).toBe(0);
    expect(readFileSync(path, 'utf8')).toBe(text);
  });
});

describe('a search is refused', { timeout: 60_000 }, () => {
  it.each([
    ['of a policy without a prompt', { policy: { kind: 'random' } }, [], /'random' reads no prompt/],
    ['in a world of tools', { env: { id: 'tau2', options: { domain: 'mock' } } }, [], /a world of calls/],
    ['within too small a budget', {}, ['--budget', '20'], /--budget 20: one step takes 24 episodes/],
    ['of more tasks than there are', {}, ['--minibatch', '50'], /expected tasks to reflect on \(50\)/],
  ])('%s', async (_, more, flags, reason) => {
    const { status, stderr } = await search(configFile(more), ...flags);
    expect([status, existsSync(folder)]).toEqual([2, false]);
    expect(stderr).toMatch(reason);
    expect(stderr.trim().split('\n')).toHaveLength(1);
  });
});
