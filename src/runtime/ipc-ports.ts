/** Ports: several message ports over one channel between two processes, with the interface of a thread's ports. */
import type { PortLike } from './comlink-endpoint.ts';

/** `process` in the child, the `ChildProcess` in the parent; made with `serialization: 'advanced'`. */
export interface IpcChannel {
  readonly connected?: boolean | undefined;
  send?(message: unknown, callback?: (error: Error | null) => void): boolean;
  on(event: 'message', listener: (message: never) => void): unknown;
}

type Listener = (value: never) => void;

/**
 * Ports by number: what one end posts on port n comes out of the other's port n, in order across all ports. Messages
 * posted after the other process is gone are lost, as with a closed MessagePort; its exit event reports its end.
 */
export function ipcPorts(channel: IpcChannel, count: number): PortLike[] {
  const listeners: Set<Listener>[] = Array.from({ length: count }, () => new Set());
  // Anything in the other process may send: what is no message of a port is dropped.
  channel.on('message', (message: unknown) => {
    if (!Array.isArray(message) || message.length !== 2) return;
    const own = listeners[message[0] as number];
    if (own instanceof Set) for (const listener of own) listener(message[1] as never);
  });
  return listeners.map((own, port) => ({
    postMessage(value) {
      if (channel.connected) channel.send!([port, value], () => {});
    },
    on: (_, listener) => own.add(listener),
    off: (_, listener) => own.delete(listener),
    start() {},
    close: () => own.clear(),
  }));
}
