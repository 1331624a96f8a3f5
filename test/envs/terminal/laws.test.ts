/** The env laws hold of the terminal, with a free command line and with typed tools. */
import * as terminal from '../../../envs/terminal/index.ts';
import { testEnvLaws } from '../laws.ts';
import { drawText } from './texts.ts';

for (const options of [{}, { tools: 'forms', heldOut: ['logs'] }]) {
  const subject = { createEnv: () => terminal.createEnv(options), texts: drawText, module: terminal };
  testEnvLaws(`terminal, ${options.tools ?? 'shell'},`, subject, 0.02); // half a minute; LONGPLAY_LONG has ten times as many
}
