/** Entry module of an actor's thread: a small system holding one actor, whose other addresses lie behind the port. */
import { parentPort, workerData } from 'node:worker_threads';
import type { ActorModule, Message, StopReason } from './actor.ts';
import { handlerBegan, handlerEnded } from './busy-time.ts';
import type { ActorCell } from './cell.ts';
import { type Envelope, recordError } from './envelope.ts';
import type { Begun } from './message-order.ts';
import { System } from './system.ts';
import type { ThreadData } from './thread.ts';
import { type Frame, type Lane, Outbox } from './wire.ts';

const data = workerData as ThreadData;
const port = parentPort!;
const handled = { data: 0, control: 0 };
let begun: Begun[] = [];

const outbox = new Outbox(
  port,
  (frame, error) => system.kernel.router.unsendable(frame, error),
  () => {
    if (begun.length > 0) {
      outbox.post(['begun', begun]);
      begun = [];
    }
    if (handled.data + handled.control === 0) return;
    const { data: plain, control } = handled;
    handled.data = handled.control = 0;
    outbox.post(['handled', plain, control]);
  },
);
// The main thread receives the events over the uplink; nobody here listens to them.
const system = new System({ mode: 'async', seed: data.seed }, () => {}, { root: data.path, uplink: outbox });

let root: ActorCell | undefined;

port.on('message', (frames: readonly Frame[]) => {
  for (const frame of frames) receive(frame);
});
void start();

function receive(frame: Frame): void {
  if (frame[0] === 'deliver') {
    const [, message, ask] = frame;
    root?.receive({ message, ask, transfer: undefined, at: system.clock.now(), windowed: true });
  } else if (frame[0] === 'stop') void stop(frame[1]);
  else if (frame[0] === 'ping') outbox.post(['pong']);
  else system.kernel.router.receiveFrame(frame, outbox);
}

async function start(): Promise<void> {
  try {
    const module = (await import(data.url)) as { default: ActorModule<unknown, Message> };
    const options = {
      restart: 'temporary',
      mailbox: { capacity: Number.POSITIVE_INFINITY, overflow: 'wait' }, // bounded by the window of the other side
      control: data.control,
      startMs: 2 ** 31 - 1, // the other side decides when to lose patience, at a start and at an end
      shutdownMs: 2 ** 31 - 1,
    } as const;
    let lane: Lane | undefined;
    const hooks = {
      onBegin(cell: ActorCell, envelope: Envelope) {
        if (data.record) begun.push({ type: envelope.message.type, self: envelope.self === true });
        handlerBegan(data.busy);
        lane = envelope.windowed && (cell.isControl(envelope.message) ? 'control' : 'data');
      },
      onHandled(cell: ActorCell, envelope: Envelope, busyMs: number) {
        handlerEnded(data.busy, busyMs);
        if (!envelope.windowed) return;
        if (cell.isControl(envelope.message)) handled.control++;
        else handled.data++;
        outbox.schedule();
      },
    };
    const factory = module.default(data.init);
    root = await system.spawnRoot(factory, data.incarnation, options, hooks, (reason) => reportEnded(reason, lane));
    outbox.post(['ready']);
  } catch (thrown) {
    outbox.post(['failed', recordError(thrown)]);
    await exit();
  }
}

/** Reports that the actor ended by itself. */
async function reportEnded(reason: StopReason, lane: Lane | undefined): Promise<void> {
  // The acknowledgements first: what is left unacknowledged had not been begun.
  outbox.flush();
  outbox.post(reason.kind === 'crashed' ? ['crashed', lane, recordError(reason.error)] : ['ended']);
  await exit();
}

async function stop(reason: StopReason): Promise<void> {
  // Patience is over. To be here is to be outside of native calls, whatever handler waits for the next one.
  if (reason.kind === 'killed') process.exit(0);
  await system.stopRoot(reason);
  await exit();
}

/** Exits the thread, never inside a native call: a thread ended there takes the process along. */
async function exit(): Promise<void> {
  outbox.flush();
  await system.kernel.dispatcher.outsideDone();
  outbox.flush();
  process.exit(0);
}
