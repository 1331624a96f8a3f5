/** Texts that policies of the terminal might send: right calls, broken ones, and command lines that use time and chance. */
import type { Rng } from '../../../src/core/rng.ts';

const usage = { promptTokens: 0, completionTokens: 0 };

/** Prints a reply of some calls. */
export function reply(...calls: readonly (readonly [name: string, args: unknown])[]): string {
  const listed = calls.map(([name, args]) => ({
    name,
    arguments: typeof args === 'string' ? args : JSON.stringify(args),
  }));
  return JSON.stringify({ content: '', calls: listed, finish: 'calls', usage });
}

/** Command lines, alone or in pipes; many depend on a clock or on random numbers. */
const COMMANDS = [
  'ls -la', 'date', 'date +%s', 'date -d yesterday', 'date -d "2024-05-01 10:00" +%s', 'echo $RANDOM $RANDOM $SECONDS $EPOCHSECONDS $$',
  "awk 'BEGIN { srand(); print rand(), rand() }'", "awk 'BEGIN { srand(7); print rand() }'", 'jq -n now', 'jq -n "now | todate"',
  'touch new.txt; stat new.txt', 'echo $RANDOM > dice.txt; cat dice.txt', 'find . -newer new.txt', 'find . -mtime -1 | sort', 'ls -lt', 'sleep 7; date',
  'cd ..', 'cd -', 'pwd', 'X=$RANDOM', 'echo "$X"', 'export Y=$(date +%N)', 'env | sort', 'mkdir -p deep/er; touch deep/er/x; ls -lR deep',
  'printf "b\\nA\\na\\nB\\naa\\n" | sort', 'ls | sort -r | head -3', 'touch -d "2030-01-01 12:00" future.txt; ls -l future.txt', 'time true',
  'tar cf all.tar . ; md5sum all.tar', 'gzip -kf new.txt; md5sum new.txt.gz', 'rm -rf *', 'cp -r . /tmp/copy; ls -l /tmp/copy', 'seq 5 | sort -R', 'du -a',
  'while true; do :; done', 'f() { f; }; f', 'sqlite3 :memory: "select random()"', 'curl http://example.com', 'python3 -c 1', 'cat /proc/uptime', 'sort <(date) <(echo x)',
  'for f in *; do echo "$f"; done', 'nonsense', 'echo "open', 'ln -s new.txt link; ls -l link', 'chmod 600 *; ls -l', 'echo {1..5}', 'history', 'xan shuffle --seed 1 x.csv', 'whoami; hostname',
]; // biome-ignore format: a list

/** Draws a command line. */
export function drawCommand(rng: Rng): string {
  return rng.int(5) === 0 ? `${rng.pick(COMMANDS)} | cat; ${rng.pick(COMMANDS)}` : rng.pick(COMMANDS);
}

const ARGUMENTS = ['', '[]', 'null', '{"command": 5}', '{"command": "\\ud800"}', '{"a": 1', '{"command": "\\u0000"}'];
const NAMES = ['bash', 'submit', 'move', 'no_such_tool', '', '🜂'];

/** Draws the text of an action. */
export function drawText(rng: Rng): string {
  if (rng.int(6) === 0) return rng.pick(['', 'Done.', 'submit', 'move', '{"a":1}', ...NAMES]);
  const calls = Array.from({ length: rng.int(4) }, (): readonly [string, unknown] =>
    rng.int(4) === 0 ? [rng.pick(NAMES), rng.pick(ARGUMENTS)] : ['bash', { command: drawCommand(rng) }],
  );
  return reply(...calls);
}
