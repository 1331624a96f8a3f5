/** Commands that read a clock or draw random numbers give the same trace: again, beside others, and in another process. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { filesOf, sortLines } from '../../../envs/terminal/families/task.ts';
import { editSource } from '../../../envs/terminal/just-bash.ts';
import { Shell } from '../../../envs/terminal/shell.ts';
import { createDate } from '../../../envs/terminal/virtual-date.ts';
import { traceMachine } from './machine-trace.ts';

const long = process.env.LONGPLAY_LONG === '1';
const seeds = Array.from({ length: long ? 60 : 6 }, (_, i) => 1000 + i);
const COMMANDS = 25;
const MAIN = fileURLToPath(new URL('../../../dist/test/envs/terminal/machine-trace.js', import.meta.url));

describe('a machine', () => {
  it.each(seeds)('gives one trace, seed %i: again, and beside two others', async (seed) => {
    const trace = await traceMachine(seed, COMMANDS, 0);
    expect(await traceMachine(seed, COMMANDS, 0)).toBe(trace);
    expect(await traceMachine(seed, COMMANDS, 2)).toBe(trace);
  });

  it.each(seeds.slice(0, long ? 12 : 2))('gives the same trace in another process, seed %i', async (seed) => {
    const env = { ...process.env, TZ: 'Asia/Kathmandu', LANG: 'da_DK.UTF-8', LC_ALL: 'da_DK.UTF-8' };
    const printed = execFileSync(process.execPath, [MAIN, String(seed), String(COMMANDS)], { env, encoding: 'utf8' });
    expect(printed.trim()).toBe(await traceMachine(seed, COMMANDS, 0));
  });

  it('has another clock and other random numbers under another seed', async () => {
    const outputs = await Promise.all(
      [1, 2].map(async (seed) => (await Shell.open({ files: {} }, seed)).run('date; echo $RANDOM')),
    );
    expect(outputs[0]!.stdout).not.toBe(outputs[1]!.stdout);
  });

  it('draws all of its chance and time from the machine', async () => {
    const shell = await Shell.open({ files: filesOf({ 'a.txt': 'x\n' }) }, 1);
    const lines = [
      'date +%s',
      'echo $RANDOM',
      "awk 'BEGIN { print rand() }'",
      'jq -n now',
      'stat a.txt',
      'ls -l a.txt',
    ];
    const outputs: string[] = [];
    for (const line of lines) outputs.push((await shell.run(line)).stdout);
    expect(outputs).toMatchInlineSnapshot(`
      [
        "1734253201
      ",
        "2157
      ",
        "0.476544
      ",
        "1734253204
      ",
        "  File: a.txt
        Size: 2		Blocks: 1
      Access: (0644/-rw-r--r--)
      Modify: 2024-12-15T09:00:00.000Z
      ",
        "-rw-r--r-- 1 user user     2 Dec 15 09:00 a.txt
      ",
      ]
    `);
  });
});

describe('a terminal', () => {
  it('measures no time of this machine', async () => {
    const shell = await Shell.open({ files: {} }, 1);
    const { stderr } = await shell.run('time for i in $(seq 900); do echo $i | cat > /dev/null; done');
    expect(stderr).toContain('real\t0m0.000s');
  });

  it('keeps folder, variables and files from command to command', async () => {
    const shell = await Shell.open({ files: filesOf({ 'sub/a.txt': 'x\n' }) }, 1);
    await shell.run('cd sub; export A=1; B=two');
    const { stdout } = await shell.run('pwd; echo $A $B; cat a.txt; cd - > /dev/null; pwd');
    expect(stdout).toBe('/home/user/sub\n1 two\nx\n/home/user\n');
  });

  it('keeps lines as they are written, in documents and in quotes', async () => {
    const shell = await Shell.open({ files: {} }, 1);
    const { stdout } = await shell.run("cat <<'EOF'\n  a:\n    - b\nEOF\necho 'c\n    d'\n");
    expect(stdout).toBe('  a:\n    - b\nc\n    d\n');
  });

  it.each([
    'while true; do :; done', 'for ((;;)); do :; done', 'f() { f; }; f', 'f() { f | f; }; f', 'until false; do echo x; done', 
    "awk 'BEGIN { while (1) x++ }'", "sed ':a;ba' a.txt", 'seq 1 1000000000', "jq -n '[range(1e9)] | length'", 'echo {1..100000000}',
    'a=x; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22; do a=$a$a$a; done; echo $a | wc -c', "printf '%*s' 1000000000 x",
    'while true; do cat a.txt >> b.txt; done', 'tail -f a.txt; while true; do date; done', 'bash -c "while true; do true; done"',
  ])('ends %s in words', async (line) => {
    const shell = await Shell.open({ files: filesOf({ 'a.txt': 'x\n'.repeat(100) }) }, 1);
    const { stdout, stderr, exitCode } = await shell.run(line);
    expect([exitCode > 0, stderr]).toEqual([true, expect.stringMatching(/exceeded|limit|maximum|too many/)]);
    expect(stdout.length).toBeLessThan(2 ** 21);
    expect((await shell.run('echo alive')).stdout).toBe('alive\n');
  }); // biome-ignore format: a list

  it.each([
    ['cp a.txt no/b.txt', 'cp: '],
    ['mv a.txt no/b.txt', 'mv: '],
    ['echo x > no/b.txt', 'bash: no/b.txt: No such file or directory'],
    ['echo x >> no/b.txt', 'bash: no/b.txt: No such file or directory'],
    ['cat < a.txt > no/b.txt', 'bash: no/b.txt: No such file or directory'],
    ['touch no/b.txt', 'touch: '],
    ['tee no/b.txt < a.txt', 'tee: '],
    ['ln -s a.txt no/b.txt', 'ln: '],
    ['mkdir no/deep', 'mkdir: '],
    ['echo x > a.txt/b.txt', 'bash: a.txt/b.txt: '],
  ])('writes into no folder that is not there: %s', async (line, error) => {
    const shell = await Shell.open({ files: filesOf({ 'a.txt': 'x\n' }) }, 1);
    const { stdout, stderr } = await shell.run(`${line} || echo failed; echo next`);
    expect([stdout.slice(-12), stderr.slice(0, error.length)]).toEqual(['failed\nnext\n', error]);
    expect([...(await shell.read()).files.keys()]).toEqual(['a.txt']);
  });

  it.each([
    ['chmod 640 a.txt; echo y >> a.txt; sed -i s/y/z/ a.txt; echo w > a.txt; stat -c %a a.txt', '640'],
    ['chmod 775 a.txt; cp a.txt b.txt; stat -c %a b.txt', '755'],
    [
      'chmod 600 b.txt 2> /dev/null; echo > b.txt; chmod 600 b.txt; chmod 755 a.txt; cp a.txt b.txt; stat -c %a b.txt',
      '600',
    ],
    ['ln -s a.txt l; echo y > l; echo z >> l; readlink l; cat a.txt', 'a.txt\ny\nz'],
    ['mkdir d; ln -s d l; echo y > l/f; cat d/f', 'y'],
    ['touch -d 2020-01-01 a.txt; cp a.txt b.txt; find . -newer a.txt -name b.txt', './b.txt'],
    ['chmod 700 a.txt; mv a.txt b.txt; stat -c %a b.txt', '700'],
    ['mkdir -p d/e; echo y > d/e/f; chmod 777 d/e/f; cp -r d c; cat c/e/f; stat -c %a c/e/f', 'y\n755'],
  ])('keeps files as Linux does: %s', async (line, output) => {
    const shell = await Shell.open({ files: filesOf({ 'a.txt': 'x\n' }) }, 1);
    expect((await shell.run(line)).stdout).toBe(`${output}\n`);
  });

  it.each([
    'curl http://localhost',
    'wget x',
    'python3 -c 1',
    'js-exec 1',
    'sqlite3 a.db',
    'node -e 1',
    'timeout 1 ls',
  ])('has no %s', async (line) => {
    const shell = await Shell.open({ files: {} }, 1);
    expect(await shell.run(line)).toMatchObject({ exitCode: 127, stderr: expect.stringContaining('not found') });
  });

  it('sorts by code points, halves of surrogates too', async () => {
    const shell = await Shell.open({ files: {} }, 1);
    const lines = ['\u{1F600}', '\uff5e', 'a', 'B', 'é'];
    const { stdout } = await shell.run(`printf '${lines.join('\\n')}\\n' | sort`);
    expect(stdout.trim().split('\n')).toEqual(sortLines(lines));
    expect(sortLines(lines)).toEqual(['B', 'a', 'é', '\uff5e', '\u{1F600}']);
  });

  it('sees no file of this machine', async () => {
    const shell = await Shell.open({ files: {} }, 1);
    const { stdout } = await shell.run(`cat ${fileURLToPath(import.meta.url)} /etc/passwd; ls /tmp /root`);
    expect(stdout).not.toMatch(/root:|vitest/);
  });

  it('leaves the globals of this process alone', async () => {
    const before = [Date, Math.random, String.prototype.localeCompare, globalThis.setTimeout, Function, process.env];
    const shell = await Shell.open({ files: {} }, 1);
    const running = shell.run('for i in 1 2 3; do date; done');
    const during = [Date, Math.random, String.prototype.localeCompare, globalThis.setTimeout, Function, process.env];
    await running;
    expect(during.every((one, i) => one === before[i])).toBe(true);
    expect(Math.abs(performance.timeOrigin + performance.now() - Date.now())).toBeLessThan(60_000);
  });
});

describe('the compiled package', () => {
  it('compares no text by the locale of the process', () => {
    const source = readFileSync(createRequire(import.meta.url).resolve('just-bash'), 'utf8');
    expect(source).toContain('.localeCompare(');
    expect(editSource(source)).not.toContain('localeCompare');
    expect(() => editSource('another build')).toThrow('just-bash: expected 18 times');
  });
});

describe('a date of a machine', () => {
  const VirtualDate = createDate(() => 1_000);
  it('knows the present of the machine, and UTC alone', () => {
    expect([new VirtualDate().getTime(), VirtualDate.now()]).toEqual([1_000, 1_000]);
    const parts = new VirtualDate(2024, 4, 1, 10, 30);
    expect(parts.toISOString()).toBe('2024-05-01T10:30:00.000Z');
    expect([parts.getHours(), parts.getMonth(), parts.getTimezoneOffset()]).toEqual([10, 4, 0]);
    parts.setHours(3);
    expect(parts.toISOString()).toBe('2024-05-01T03:30:00.000Z');
    expect(parts instanceof Date).toBe(true);
  });
  it.each([
    ['2024-05-01', '2024-05-01T00:00:00.000Z'],
    ['2024-05-01 10:00', '2024-05-01T10:00:00.000Z'],
    ['2024-05-01T10:00:00', '2024-05-01T10:00:00.000Z'],
    ['2024-05-01T10:00:00+02:00', '2024-05-01T08:00:00.000Z'],
    ['May 1 2024 10:00', '2024-05-01T10:00:00.000Z'],
  ])('reads %s in UTC', (text, iso) => {
    expect(new VirtualDate(text).toISOString()).toBe(iso);
    expect(new VirtualDate(VirtualDate.parse(text)).toISOString()).toBe(iso);
  });
  it('reads no date in other texts', () => expect(new VirtualDate('soon').getTime()).toBeNaN());
});
