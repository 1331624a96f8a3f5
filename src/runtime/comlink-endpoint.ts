/** A Node MessagePort as comlink sees one. (comlink's own adapter ships without types.) */
import type { MessagePort } from 'node:worker_threads';
import type { Endpoint } from 'comlink';

type Listener = Parameters<Endpoint['addEventListener']>[1];

export function comlinkEndpoint(port: MessagePort): Endpoint {
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
