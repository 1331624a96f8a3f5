/** Shows the scene in the terminal it runs in, again after a resize, until Ctrl-C. Argument: the mood. */
import { Subject } from 'rxjs';
import { openConsole } from '../../src/console/console.ts';
import { err, out } from '../../src/console/terminal.ts';
import { SimulatedClock } from '../../src/core/clock.ts';
import type { MetricsRow } from '../../src/metrics/metric-table.ts';
import { actors, type Mood, scene, sceneConfig } from './console-scene.ts';

const clock = new SimulatedClock();
const metrics$ = new Subject<MetricsRow>();
const options = { out, notices: err, json: false, cores: 4, name: 'scene' };
const display = openConsole(metrics$, { ...options, config: sceneConfig, clock });
display.watch(() => actors(clock.now()));
for (const event of scene(160, (process.argv[2] ?? 'learning') as Mood)) {
  if (event.type === 'row') metrics$.next(event.row);
  else if (event.type === 'progress') display.progress(event.progress);
  else if (event.type === 'notice') display.notice(event.text);
  else if (event.type === 'actors') clock.advance(event.at - clock.now());
}
clock.advance(250);
process.stdout.on('resize', () => clock.advance(250));
process.on('SIGINT', () => {
  display.close();
  process.exit(0);
});
setInterval(() => {}, 1000);
