/** Gateways that are closed at the end of their test, and what its answers say. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished } from 'vitest';
import type { DialectId } from '../../src/gateway/dialects/dialect.ts';
import type { Episode } from '../../src/gateway/episode.ts';
import { type GatewayOptions, type OpenGateway, openGateway } from '../../src/gateway/server.ts';
import { foldReply } from './fold.ts';
import type { Received, Turn } from './lab.ts';

/** Opens a gateway for the running test. */
export async function start(options?: GatewayOptions): Promise<OpenGateway> {
  const gateway = await openGateway(options);
  onTestFinished(() => gateway.close());
  return gateway;
}

/** Opens an episode of a gateway of its own. */
export async function openEpisode(options?: GatewayOptions): Promise<Episode> {
  return (await start(options)).open();
}

/** Waits until a condition holds. */
export async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await sleep(1);
}

/** Conversation of one message. */
export const question = (text: string): Turn[] => [{ user: text }];

/** Reads the reply that a client got. */
export function readReply(dialect: DialectId, { status, text, headers }: Received): string {
  expect(status).toBe(200);
  return foldReply(dialect, text, headers['content-type']!).reply.content;
}

/** Reads an error in a dialect's form. */
export function errorIn(
  dialect: DialectId,
  { text }: { readonly text: string },
): { readonly message: string; readonly code?: string } {
  const body = JSON.parse(text) as { type?: string; error: { message: string; type: string } };
  expect(body.type).toBe(dialect === 'messages' ? 'error' : undefined);
  expect(body.error.type).toMatch(/^[a-z_]+$/);
  return body.error;
}

/** True where no call waits. */
export async function hasNone(episode: Episode): Promise<boolean> {
  const next = episode.next(AbortSignal.timeout(20));
  return next.then(
    () => false,
    () => true,
  );
}

/** Counts the sockets of this process. */
export function countSockets(): number {
  return process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length;
}
