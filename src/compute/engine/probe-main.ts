/** Process of a probe (probe.ts): computes one number on the device named by its argument, or reports why it cannot. */
import { messageOf } from '../../core/errors.ts';
import { firstLineOf } from '../../core/first-line.ts';
import type { EngineDevice } from './engine.ts';
import { tryDevice } from './onnxruntime-node.ts';
import type { Probed } from './probe.ts';
import { disableTelemetry } from './telemetry.ts';

let probed: Probed = {};
try {
  await disableTelemetry();
  await tryDevice(await import('onnxruntime-node'), process.argv[2] as EngineDevice);
} catch (thrown) {
  probed = { trouble: firstLineOf(messageOf(thrown)) };
}
process.send?.(probed);
