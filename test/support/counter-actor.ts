/** An actor for tests of the runtime: counts, answers, relays and breaks on demand. Runs in any placement. */
import type { BehaviorFactory, ReplyTo } from '../../src/runtime/actor.ts';
import { type Gate, standAt } from './gate.ts';

export type CounterMessage =
  | { readonly type: 'add'; readonly n: number }
  | { readonly type: 'get'; readonly replyTo: ReplyTo<CounterState> }
  | { readonly type: 'boom'; readonly how: 'throw' | 'reject' | 'exit' }
  | { readonly type: 'spin'; readonly gate: Gate }
  | { readonly type: 'nap'; readonly ms: number }
  | { readonly type: 'relay'; readonly to: string; readonly message: CounterMessage; readonly times: number }
  | { readonly type: 'askOther'; readonly to: string; readonly deadlineMs: number; readonly replyTo: ReplyTo<string> }
  | { readonly type: 'buffer'; readonly data: Float32Array; readonly replyTo: ReplyTo<Float32Array> }
  | { readonly type: 'spawnChild'; readonly name: string; readonly replyTo: ReplyTo<string> }
  | { readonly type: 'quit' }
  | { readonly type: 'urgent'; readonly n: number };

export interface CounterState {
  readonly seen: readonly number[];
  readonly incarnation: number;
  readonly random: number;
}

export interface CounterInit {
  readonly failStart?: boolean;
  /** Start that is one long call. */
  readonly slowStart?: Gate;
}

export default function counter(init: CounterInit): BehaviorFactory<CounterMessage> {
  return (ctx) => {
    if (init.failStart) throw new Error('cannot start');
    if (init.slowStart) standAt(init.slowStart);
    const seen: number[] = [];
    const random = ctx.rng.next();
    return {
      handlers: {
        add({ n }) {
          seen.push(n);
        },
        urgent({ n }) {
          seen.push(n);
        },
        get({ replyTo }) {
          ctx.reply(replyTo, { seen: [...seen], incarnation: ctx.incarnation, random });
        },
        boom({ how }) {
          if (how === 'exit') process.exit(7);
          if (how === 'reject') return Promise.reject(new Error('boom'));
          throw new Error('boom');
        },
        spin: ({ gate }) => standAt(gate),
        nap: ({ ms }) => ctx.sleep(ms),
        async relay({ to, message, times }) {
          const other = ctx.resolve<CounterMessage>(to);
          for (let i = 0; i < times; i++) {
            await other.tell(message.type === 'add' ? { type: 'add', n: message.n + i } : message);
          }
        },
        async askOther({ to, deadlineMs, replyTo }) {
          try {
            const make = (to: ReplyTo<CounterState>) => ({ type: 'get', replyTo: to }) as const;
            const state = await ctx.ask(ctx.resolve<CounterMessage>(to), make, { deadlineMs });
            ctx.reply(replyTo, `saw ${state.seen.length}`);
          } catch (error) {
            ctx.reply(replyTo, (error as Error).message);
          }
        },
        buffer({ data, replyTo }) {
          const twice = data.map((x) => 2 * x);
          ctx.reply(replyTo, twice, [twice.buffer as ArrayBuffer]);
        },
        async spawnChild({ name, replyTo }) {
          const child = await ctx.system.spawn(name, counter({}));
          ctx.reply(replyTo, child.path);
        },
        quit: () => ctx.stop(),
      },
    };
  };
}
