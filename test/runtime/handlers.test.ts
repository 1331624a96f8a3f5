/** Promises of the types about messages and handlers. The compiler is the test: each expected error must be one. */
import { describe, expect, it } from 'vitest';
import type { ActorRef, ActorSystem, BehaviorFactory, ReplyTo } from '../../src/runtime/actor.ts';

type Door =
  | { readonly type: 'open'; readonly key: number }
  | { readonly type: 'close' }
  | { readonly type: 'isOpen'; readonly replyTo: ReplyTo<boolean> };

const whole: BehaviorFactory<Door> = (ctx) => ({
  handlers: { open: ({ key }) => void key.toFixed(), close() {}, isOpen: ({ replyTo }) => ctx.reply(replyTo, true) },
});

const lacking: BehaviorFactory<Door> = () => ({
  // @ts-expect-error: there is no handler for `close`
  handlers: { open() {}, isOpen() {} },
});

const wrongReply: BehaviorFactory<Door> = (ctx) => ({
  // @ts-expect-error: a boolean is expected, not a text
  handlers: { open() {}, close() {}, isOpen: ({ replyTo }) => ctx.reply(replyTo, 'yes') },
});

function senders(door: ActorRef<Door>, system: ActorSystem): void {
  void door.tell({ type: 'open', key: 1 });
  // @ts-expect-error: a door has no lock
  void door.tell({ type: 'lock' });
  // @ts-expect-error: the key is missing
  void door.tell({ type: 'open' });
  void system.ask<boolean, Door>(door, (replyTo) => ({ type: 'isOpen', replyTo }), { deadlineMs: 1 });
  // @ts-expect-error: no ask without a deadline
  void system.ask<boolean, Door>(door, (replyTo) => ({ type: 'isOpen', replyTo }), {});
}

describe('types', () => {
  it('are checked by `tsc`, which `npm run check` and the build run over this file', () => {
    expect([whole, lacking, wrongReply, senders].map((one) => typeof one)).toEqual(Array(4).fill('function'));
  });
});
