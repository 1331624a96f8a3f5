/** A NATS server of a bench's or study's own, on a free port of this machine. */
import { spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { UserError } from '../src/core/errors.ts';

export interface StartedServer {
  readonly url: string;
  readonly pid: number;
  close(): Promise<void>;
}

/** @throws {UserError} BAD_ARGUMENT where there is no nats-server */
export async function startNatsServer(store: string): Promise<StartedServer> {
  mkdirSync(store, { recursive: true });
  const port = await freePort();
  const args = ['-a', '127.0.0.1', '-p', String(port), '-js', '-sd', store];
  const server = spawn('nats-server', args, { stdio: ['ignore', 'ignore', 'pipe'] });
  await new Promise<void>((resolve, reject) => {
    let log = '';
    server.once('error', () =>
      reject(new UserError('BAD_ARGUMENT', 'this needs nats-server on the PATH: apt-get install nats-server')),
    );
    server.stderr.on('data', (text) => {
      log = `${log}${text}`.slice(-4000);
      if (log.includes('Server is ready')) resolve();
    });
    server.once('exit', () => reject(new Error(`nats-server ended: ${log}`)));
  });
  return {
    url: `nats://127.0.0.1:${port}`,
    pid: server.pid!,
    async close() {
      const gone = new Promise((resolve) => server.once('exit', resolve));
      server.kill();
      await Promise.race([gone, sleep(2000)]);
    },
  };
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}
