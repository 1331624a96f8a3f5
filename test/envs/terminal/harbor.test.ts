/** Tasks in Harbor's form: what is opened and played, and what is refused by the name of what it needs. */
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { createEnv, createOracle } from '../../../envs/terminal/index.ts';
import { readAgentCall } from '../../../src/core/agent-call.ts';
import type { EnvOptions, TimeStep } from '../../../src/core/env.ts';
import { reply } from './texts.ts';

const root = mkdtempSync(join(tmpdir(), 'longplay-harbor-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const PLAIN: Readonly<Record<string, string>> = {
  'task.toml': 'version = "1.0"\n\n[metadata]\ndifficulty = "easy"\n\n[verifier]\ntimeout_sec = 120.0\n',
  'instruction.md': 'Write the number of lines of /app/data/words.txt to /app/count.txt.\n',
  'environment/Dockerfile': `FROM ubuntu:24.04
# the words
WORKDIR /app
ENV LEVEL=easy \\
    GREETING="hello you"
COPY data ./data
COPY --chmod=755 tool.sh extra.txt /opt/tools/
CMD ["sleep", "infinity"]
`,
  'environment/data/words.txt': 'a\nb\nc\n',
  'environment/data/deep/more.txt': 'd\n',
  'environment/tool.sh': '#!/bin/bash\necho tool\n',
  'environment/extra.txt': 'extra\n',
  'tests/test.sh': `#!/bin/bash
check() { [ "$(tr -d ' \\n' < count.txt)" = "$(cat /tests/wanted.txt)" ]; }
mkdir -p /logs/verifier
if check; then echo 1 > /logs/verifier/reward.txt; else echo 0 > /logs/verifier/reward.txt; fi
`,
  'tests/wanted.txt': '3\n',
  'solution/solve.sh': '#!/bin/bash\nwc -l < /app/data/words.txt > /app/count.txt\n',
};

let made = 0;
/** Writes a task that differs from the plain one. @returns its folder */
function writeTask(changes: Readonly<Record<string, string | undefined>> = {}): string {
  const folder = join(root, `task-${made++}`);
  for (const [path, text] of Object.entries({ ...PLAIN, ...changes })) {
    if (text === undefined) continue;
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  return folder;
}

async function play(folder: string, ...commands: readonly string[]): Promise<readonly string[]> {
  const session = await createEnv({ folder }).open({ env: 'terminal', index: 0, seed: 1 });
  let step: TimeStep = session.first;
  const texts: string[] = [];
  for (const command of commands) texts.push(contentOf((step = await session.step(reply(['bash', { command }])))));
  step = await session.step(reply(['submit', {}]));
  return [...texts, contentOf(step), `${step.kind === 'terminated' && step.reward}`];
}
const contentOf = ({ observation }: TimeStep) => readAgentCall(observation).messages.at(-1)!.content;

describe('a task of a folder', () => {
  it('begins with its files, folder and variables, and pays what its test writes', async () => {
    const folder = writeTask();
    expect(
      await play(
        folder,
        'pwd; find . -type f | sort; ls /tests /opt/tools; stat -c %a /opt/tools/*',
        'echo $LEVEL, $GREETING; /opt/tools/tool.sh',
      ),
    ).toEqual([
      '/app\n./data/deep/more.txt\n./data/words.txt\n/opt/tools:\nextra.txt\ntool.sh\n755\n755\nls: /tests: No such file or directory',
      'easy, hello you\ntool',
      'Not solved: reward 0.',
      '0',
    ]);
    expect(await play(folder, 'cd /; wc -l < /app/data/words.txt > /app/count.txt')).toEqual([
      '[no output]',
      'Solved.',
      '1',
    ]);
  });

  it('is solved by its solution', async () => {
    const folder = writeTask();
    const env = createEnv({ folder });
    const task = { env: 'terminal', index: 0, seed: 0 };
    const session = await env.open(task);
    const next = createOracle({ folder })(task);
    let step: TimeStep = session.first;
    for (let action = next(step); action !== undefined; action = next(step)) step = await session.step(action);
    expect(step).toMatchObject({ kind: 'terminated', reward: 1, success: true });
  });

  it.each([
    ['echo 0.25 > /logs/verifier/reward.txt', 'Not solved: reward 0.25.', '0.25'],
    ['echo 7 > /logs/verifier/reward.txt', 'Solved.', '1'],
    [`echo '{"reward": 0.5, "style": 1}' > /logs/verifier/reward.json`, 'Not solved: reward 0.5.', '0.5'],
    ['echo yes > /logs/verifier/reward.txt', 'Not solved: no reward was written.', '0'],
    ['echo "cannot see it" >&2', 'Not solved: no reward was written. cannot see it', '0'],
    ['while true; do :; done', /^Not solved: no reward was written\. bash: too many commands/, '0'],
  ])('reads the reward of %s', async (script, text, reward) => {
    const folder = writeTask({ 'tests/test.sh': `${script}\n` });
    expect(await play(folder)).toEqual([typeof text === 'string' ? text : expect.stringMatching(text), reward]);
  });

  it.each([
    'mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt; echo \'{"reward": 1}\' > /logs/verifier/reward.json',
    'mkdir -p /tests; echo "echo 1 > /logs/verifier/reward.txt" > /tests/test.sh',
    'mkdir /x; printf "#!/bin/bash\\ncat /tests/wanted.txt\\n" > /x/tr; chmod 755 /x/tr; export PATH=/x:$PATH',
    'export BASH_ENV=/x; tr() { cat /tests/wanted.txt; }; export -f tr',
  ])('pays nothing for what is not the work: %s', async (command) => {
    expect((await play(writeTask(), command)).slice(-2)).toEqual(['Not solved: reward 0.', '0']);
  });

  it.each([
    'mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt; rm -f /bin/bash /usr/bin/bash /bin/rm /usr/bin/rm',
    'rm -f /bin/rm /usr/bin/rm; touch /tests /logs',
    'i=0; while [ $i -lt 30 ]; do head -c 900000 /dev/zero > /big$i; i=$((i+1)); done',
  ])('pays nothing, and does not fail, where the machine was broken: %s', async (command) => {
    const [text, reward] = (await play(writeTask(), command)).slice(-2);
    expect([text, reward]).toEqual([expect.stringMatching(/^Not solved: /), '0']);
  });

  it('is read again where reading it failed', async () => {
    const folder = writeTask({ 'environment/Dockerfile': 'FROM scratch\nRUN make\n' });
    const env = createEnv({ folder });
    const open = async () => env.open({ env: 'terminal', index: 0, seed: 1 });
    await expect(open()).rejects.toThrow('needs');
    writeFileSync(join(folder, 'environment/Dockerfile'), PLAIN['environment/Dockerfile']!);
    expect((await open()).first.kind).toBe('first');
  });

  it('is one of several, by name', async () => {
    const parent = join(root, 'several');
    mkdirSync(parent);
    for (const name of ['b', 'a']) {
      mkdirSync(join(parent, name));
      writeFileSync(join(parent, name, 'task.toml'), '');
    }
    const { tasks } = createEnv({ folder: parent });
    expect([tasks.count, tasks.split('train'), tasks.split('test'), tasks.numbering]).toEqual([
      2,
      [0, 1],
      [0, 1],
      'folder',
    ]);
    await expect(createEnv({ folder: parent }).open({ env: 'terminal', index: 0, seed: 0 })).rejects.toThrow(
      `terminal: the task ${join(parent, 'a')} needs the file instruction.md`,
    );
  });
});

describe('a task that needs more', () => {
  const docker = (line: string) => ({ 'environment/Dockerfile': `FROM debian:12\n${line}\nCOPY data /app\n` });
  it.each([
    [
      docker('RUN apt-get update && apt-get install -y git'),
      'Docker, for RUN apt-get update && apt-get install -y git',
    ],
    [docker('VOLUME /x'), 'Docker, for VOLUME /x'],
    [docker('COPY --from=build /x /y'), 'Docker, for COPY --from=build /x /y'],
    [docker('COPY *.txt /y'), 'Docker, for COPY *.txt /y'],
    [docker('COPY gone.txt /y'), 'the file environment/gone.txt'],
    [docker('COPY ../../../etc/passwd /y'), 'the file environment/../../../etc/passwd'],
    [docker('ENV PATH=/opt/bin:$PATH'), 'Docker, for ENV PATH=/opt/bin:$PATH'],
    [docker('COPY ["a" ./'), 'Docker, for COPY ["a" ./'],
    [{ 'tests/a': 'x'.repeat(5e6), 'tests/b': 'x'.repeat(5e6) }, 'room for 10'],
    [docker('FROM scratch'), 'the image scratch'],
    [{ 'environment/Dockerfile': 'FROM python:3.12\n' }, 'the image python:3.12'],
    [{ 'environment/docker-compose.yaml': 'services: {}\n' }, 'Docker, for environment/docker-compose.yaml'],
    [{ 'task.toml': '[environment]\ndocker_image = "ghcr.io/x/y:1"\n' }, 'the image ghcr.io/x/y:1'],
    [
      { 'tests/test.sh': 'apt-get install -y curl\nuvx pytest /tests/test_state.py\n' },
      'apt-get, uvx in tests/test.sh',
    ],
    [{ 'tests/test.sh': 'if true; then\n' }, 'another bash, for tests/test.sh: '],
    [{ 'tests/test.sh': undefined }, 'the file tests/test.sh'],
    [{ 'instruction.md': undefined }, 'the file instruction.md'],
    [{ 'instruction.md': 'x'.repeat(65_537) }, 'an instruction of more than 65536 characters'],
    [{ 'environment/Dockerfile': undefined }, 'the file environment/Dockerfile'],
  ])('is refused: %#', async (changes, what) => {
    const folder = writeTask(changes);
    const opened = createEnv({ folder }).open({ env: 'terminal', index: 0, seed: 0 });
    await expect(opened).rejects.toThrow(`terminal: the task ${folder} needs ${what}`);
  });

  it.each(['environment/data', 'instruction.md', 'tests'])(
    'is refused where %s is a link that leads out',
    async (name) => {
      const folder = writeTask({});
      const outside = join(root, `outside-${name.replace('/', '-')}`);
      renameSync(join(folder, name), outside);
      symlinkSync(outside, join(folder, name));
      await expect(createEnv({ folder }).open({ env: 'terminal', index: 0, seed: 0 })).rejects.toThrow(
        `${join(folder, name)}, a link that leads out of it`,
      );
    },
  );

  it.each([
    [{ folder: join(root, 'nowhere') }, 'folder: there is no folder'],
    [{ folder: root }, undefined],
    [{ folder: 5 }, 'folder must be the path of a folder of tasks, got 5'],
    [{ folder: root, tools: 'forms' }, 'folder goes with maxCalls alone, got tools: forms beside it'],
    [{ folder: root, heldOut: ['logs'] }, 'folder goes with maxCalls alone, got heldOut beside it'],
  ])('options %j', (options, message) => {
    const tasks = () => createEnv(options as EnvOptions).tasks;
    if (message === undefined) expect(tasks().count).toBeGreaterThan(10);
    else expect(tasks).toThrow(message);
  });

  it('names a folder without tasks', () => {
    const empty = join(root, 'empty');
    mkdirSync(empty);
    expect(() => createEnv({ folder: empty }).tasks).toThrow('expected tasks with a task.toml in');
  });
});
