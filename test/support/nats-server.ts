/** A NATS server of a test's own, on a free port of the loopback address, with its files in a folder. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { createServer } from 'node:net';

/** Why tests with a server are skipped; undefined where there is one. */
export const noServer: string | undefined =
  spawnSync('nats-server', ['--version']).status === 0 ? undefined : 'skipped: there is no nats-server on the PATH';
if (noServer) console.log(noServer);

export interface NatsServer {
  readonly url: string;
  readonly port: number;
  /** Its process; undefined while there is none. */
  readonly pid: number | undefined;
  kill(): Promise<void>;
  /** Starts it again on its files and its port. */
  start(): Promise<void>;
}

/**
 * Starts a server; `kill` ends it.
 * @param of its configuration and the port that it names; by default anyone on this machine may do anything
 */
export async function startNats(
  dir: string,
  of?: { readonly config: string; readonly port: number },
): Promise<NatsServer> {
  mkdirSync(dir, { recursive: true });
  const port = of?.port ?? (await freePort());
  let child: ChildProcess | undefined;
  const start = async () => {
    const args = of ? ['-c', of.config] : ['-a', '127.0.0.1', '-p', String(port), '-js', '-sd', dir];
    const started = spawn('nats-server', args, { stdio: ['ignore', 'ignore', 'pipe'] });
    child = started;
    await new Promise<void>((resolve, reject) => {
      let log = '';
      started.stderr.on('data', (text) => {
        log += text;
        if (log.includes('Server is ready')) resolve();
      });
      started.once('exit', () => reject(new Error(`nats-server ended: ${log.slice(-2000)}`)));
    });
  };
  await start();
  return {
    url: `nats://127.0.0.1:${port}`,
    port,
    get pid() {
      return child?.pid;
    },
    start,
    async kill() {
      const running = child;
      child = undefined;
      if (!running || running.exitCode !== null) return;
      const gone = new Promise((resolve) => running.once('exit', resolve));
      running.kill('SIGKILL');
      await gone;
    },
  };
}

/** A port of the loopback address that is free now. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}
