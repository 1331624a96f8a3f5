/**
 * Adapter of a Node MessagePort, or anything that behaves like one, for comlink. (Comlink's own adapter has no types.)
 */
import type { Endpoint } from 'comlink';

/** Port: what a thread's and a process's channel have in common. */
export interface PortLike {
  postMessage(value: unknown, transfer?: readonly ArrayBuffer[]): void;
  on(event: 'message', listener: (value: never) => void): unknown;
  off(event: 'message', listener: (value: never) => void): unknown;
  start(): void;
  close(): void;
}

type Listener = Parameters<Endpoint['addEventListener']>[1];

export function comlinkEndpoint(port: PortLike): Endpoint {
  const installed = new Map<Listener, (data: unknown) => void>();
  return {
    postMessage: (message, transfer) => port.postMessage(message, transfer as readonly ArrayBuffer[]),
    addEventListener(_, listener) {
      const onMessage = (data: unknown) => {
        const event = { data } as MessageEvent;
        if ('handleEvent' in listener) listener.handleEvent(event);
        else listener(event);
      };
      installed.set(listener, onMessage);
      port.on('message', onMessage);
    },
    removeEventListener(_, listener) {
      const onMessage = installed.get(listener);
      if (onMessage) port.off('message', onMessage);
      installed.delete(listener);
    },
    start: () => port.start(),
  };
}
