/** Schema of a group's ticket, as journals, checkpoints and workers' results hold it. */
import { z } from 'zod';
import { taskSchema } from './trajectory-schema.ts';

const count = z.int().min(0);
const uint32 = z.int().min(0).max(0xffffffff);

/** Largest number of episodes of a group. */
export const MAX_GROUP = 100_000;

/** `GroupTicket` of src/core/ticket.ts. */
export const ticketSchema = z.looseObject({
  group: count,
  task: taskSchema,
  horizon: count.min(1),
  size: count.min(1).max(MAX_GROUP),
  purpose: z.looseObject({
    name: z.string().min(1),
    temperature: z.number().min(0),
    sampling: z.record(z.string(), z.number()).exactOptional(),
    stop: z.array(z.string()).exactOptional(),
    seed: uint32,
  }),
  version: count,
});
