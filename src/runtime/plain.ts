/** Plain form of system events, as other threads get them. Errors lose their class; name, message and code stay. */
import type { Down, StopReason, SystemEvent } from './actor.ts';
import { recordError, reviveError } from './envelope.ts';

export function plainEvent(event: SystemEvent): SystemEvent {
  if ('error' in event) return { ...event, error: reviveError(recordError(event.error)) };
  if ('reason' in event) return { ...event, reason: plainReason(event.reason) };
  return event;
}

export function plainDown(down: Down): Down {
  return { ...down, reason: plainReason(down.reason) };
}

function plainReason(reason: StopReason): StopReason {
  return reason.kind === 'crashed' ? { kind: 'crashed', error: new Error(reason.error.message) } : reason;
}
