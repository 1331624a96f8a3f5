/**
 * Trace of command lines on two machines whose commands alternate, as JSON: `node machine-trace.js <seed> <commands>`. The test of
 * repeatable traces runs it in this process, and in others with another time zone, language and clock.
 */
import { argv } from 'node:process';
import { fileURLToPath } from 'node:url';
import { filesOf } from '../../../envs/terminal/families/task.ts';
import { Shell } from '../../../envs/terminal/shell.ts';
import { Rng } from '../../../src/core/rng.ts';
import { drawCommand } from './texts.ts';

const FILES = filesOf({ 'a.txt': 'b\na\nB\n', 'x.csv': 'k,v\n1,2\n2,3\n', 'sub/deep.json': '{"a": [1, 2]}\n' });

/** Plays random commands. @param beside how many other machines run commands in between */
export async function traceMachine(seed: number, commands: number, beside: number): Promise<string> {
  const rng = Rng.fromSeed(seed);
  const lines = Array.from({ length: commands }, () => drawCommand(rng));
  const shell = await Shell.open({ files: FILES }, seed);
  const trace: unknown[] = [];
  for (const line of lines) {
    const others = Array.from({ length: beside }, async (_, i) => {
      const other = await Shell.open({ files: FILES }, seed + 1 + i);
      await other.run('date; echo $RANDOM; sleep 5; touch x; ls -l');
      await other.run(lines[i % lines.length]!);
    });
    trace.push([line, await shell.run(line)]);
    await Promise.all(others);
  }
  const { files, folders } = await shell.read();
  return JSON.stringify([
    trace,
    [...files],
    [...folders],
    await shell.run('ls -lR --full-time; date +%s%N; echo $RANDOM'),
  ]);
}

if (argv[1] === fileURLToPath(import.meta.url)) {
  const [seed, commands] = argv.slice(2).map(Number) as [number, number];
  console.log(await traceMachine(seed, commands, 0));
}
