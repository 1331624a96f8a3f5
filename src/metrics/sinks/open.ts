/** Opens the sinks that a configuration asks for. */
import { join } from 'node:path';
import { messageOf, UserError } from '../../core/errors.ts';
import { prometheusSink } from './prometheus.ts';
import type { MetricSink } from './sink.ts';
import { tensorboardSink } from './tensorboard.ts';

export interface SinksConfig {
  readonly tensorboard: boolean;
  readonly prometheusPort?: number;
}

/**
 * Opens the sinks of a configuration.
 * @param dir the run's folder
 * @param onNotice receives a line for each sink that was opened or refused
 * @throws {UserError} BAD_CONFIG when the port cannot be opened
 */
export async function openSinks(
  config: SinksConfig,
  dir: string,
  onNotice: (line: string) => void,
): Promise<MetricSink[]> {
  const sinks: MetricSink[] = [];
  if (config.prometheusPort !== undefined) {
    const sink = prometheusSink(config.prometheusPort);
    try {
      const { port } = await sink.ready;
      onNotice(`metrics for Prometheus at http://127.0.0.1:${port}/metrics`);
    } catch (thrown) {
      throw new UserError(
        'BAD_CONFIG',
        `metrics.prometheusPort: cannot listen on 127.0.0.1:${config.prometheusPort}: ${messageOf(thrown)}; choose another port, or 0 for any`,
      );
    }
    sinks.push(sink);
  }
  if (config.tensorboard) {
    try {
      sinks.push(tensorboardSink(join(dir, 'tensorboard'), Date.now));
    } catch (thrown) {
      onNotice(`cannot write tensorboard: ${messageOf(thrown)}; the run goes on without it`);
    }
  }
  return sinks;
}
